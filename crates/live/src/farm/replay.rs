//! Replays a live node's log through a fresh policy: the same events must give the same commands.

use crosswind_agent::record::{command_words, event_of};
use crosswind_agent::settings::RunSettings;
use crosswind_policy::farm::{Command, Node};

use crate::error::LiveError;

/// Replays the log of a node and returns the number of events.
///
/// # Errors
/// The first line whose commands differ, or that is not a line of a log.
pub fn replay(run: &RunSettings, node: &str, log: &str) -> Result<usize, LiveError> {
    let mut policy = Node::new(run.of_node(node)?);
    let mut commands: Vec<Command> = Vec::new();
    let mut events = 0;
    for (at, line) in log.lines().enumerate() {
        let differs = |why: String| LiveError::Replay { node: node.into(), line: at + 1, why };
        let parsed = line.split_once(" >").and_then(|(left, recorded)| {
            let (_, words) = left.split_once(' ')?;
            Some((event_of(words)?, recorded))
        });
        let Some((event, recorded)) = parsed else { return Err(differs(format!("{line:?} is no line of a log"))) };
        commands.clear();
        policy.handle(event, &mut commands);
        let again: String = commands.iter().map(|command| format!(" {};", command_words(command))).collect();
        if again != recorded {
            return Err(differs(format!(
                "{words:?} gave{recorded}, and now gives{again}",
                words = line.split(" >").next().unwrap_or_default()
            )));
        }
        events += 1;
    }
    Ok(events)
}
