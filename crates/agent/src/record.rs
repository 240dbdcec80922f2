//! An agent's record of a run: rows of activities, totals, and the log for replays.

use std::fmt::Write as _;

use crosswind_policy::farm::{ChildSettings, Command, Event};
use crosswind_schema::run::ObservedNode;
use serde::{Deserialize, Serialize};

/// Part of a report: totals, as JSON.
pub const TOTALS: u8 = 0;
/// Part of a report: rows.
pub const ROWS: u8 = 1;
/// Part of a report: the replay log.
pub const LOG: u8 = 2;

/// `child` of a row without a child.
pub const NO_NODE: u32 = u32::MAX;

/// Kind of activity, in the terms of `crosswind_schema::trace::Activity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// The node computes the task.
    Compute = 0,
    /// `node` sends `task` to `child`.
    Send = 1,
    /// `child` sends the result of `task` up to `node`.
    Result = 2,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub activity: Activity,
    pub node: u32,
    /// The node at the other end.
    pub child: u32,
    pub task: u64,
    /// Start, ns. On the agent's own clock; on the root's clock in gathered reports.
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub work: f64,
}

const ROW_BYTES: usize = 1 + 4 + 4 + 8 * 5;

impl Row {
    /// Appends the row to `out`, with its times shifted by `shift_ns` to another clock.
    pub fn encode(&self, shift_ns: i64, out: &mut Vec<u8>) {
        out.push(self.activity as u8);
        out.extend(self.node.to_be_bytes());
        out.extend(self.child.to_be_bytes());
        out.extend(self.task.to_be_bytes());
        out.extend(self.start_ns.saturating_add_signed(shift_ns).to_be_bytes());
        out.extend(self.end_ns.saturating_add_signed(shift_ns).to_be_bytes());
        out.extend(self.bytes.to_be_bytes());
        out.extend(self.work.to_bits().to_be_bytes());
    }

    /// Decodes rows. Skips rows of unknown kind and an incomplete one at the end.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Vec<Self> {
        let word = |row: &[u8], at: usize| u64::from_be_bytes(std::array::from_fn(|i| row[at + i]));
        let half = |row: &[u8], at: usize| u32::from_be_bytes(std::array::from_fn(|i| row[at + i]));
        bytes
            .chunks_exact(ROW_BYTES)
            .filter_map(|row| {
                let activity = match row[0] {
                    0 => Activity::Compute,
                    1 => Activity::Send,
                    2 => Activity::Result,
                    _ => return None,
                };
                Some(Self {
                    activity,
                    node: half(row, 1),
                    child: half(row, 5),
                    task: word(row, 9),
                    start_ns: word(row, 17),
                    end_ns: word(row, 25),
                    bytes: word(row, 33),
                    work: f64::from_bits(word(row, 41)),
                })
            })
            .collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    pub name: String,
    pub tasks: u64,
    /// Time for which its processor was computing, ns.
    pub busy_ns: u64,
    /// Bytes of tasks received from the parent.
    pub received_bytes: u64,
    pub tried_again: u64,
    /// What was observed of its processor.
    pub seen: ObservedNode,
    /// What was observed of its children's links.
    pub links: Vec<ObservedLink>,
}

/// What was observed of a child's link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedLink {
    pub number: u32,
    /// Rate of the link and interference of sending.
    pub seen: ObservedNode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEvent {
    /// Time on the root's clock, ns.
    pub root_ns: u64,
    pub code: String,
    pub node: Option<String>,
    /// Its number, in events of a node that joined.
    pub number: Option<u32>,
    pub tasks: Option<u64>,
    pub message: String,
}

/// Events passed to a node's policy and the commands it issued, one line per event: `TIME EVENT > COMMAND; COMMAND;`.
#[derive(Debug, Default)]
pub struct Log(pub String);

impl Log {
    pub fn note(&mut self, at_ns: u64, event: &Event, commands: &[Command]) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{at_ns} {} >", event_words(event));
        for command in commands {
            let _ = write!(self.0, " {};", command_words(command));
        }
        self.0.push('\n');
    }
}

fn limit_words(limit: Option<f64>) -> String {
    limit.map_or("-".into(), |limit| format!("{limit:?}"))
}

fn settings_words(known: &ChildSettings) -> String {
    let ChildSettings { key, receive_limit_mb_per_s, pace_mb_per_s, uses_tasks_per_s, empties_tasks_per_s, send_s } =
        known;
    let rates = format!("{receive_limit_mb_per_s:?} {pace_mb_per_s:?} {uses_tasks_per_s:?} {empties_tasks_per_s:?}");
    format!("{} {rates} {send_s:?}", limit_words(*key))
}

fn settings_of<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<ChildSettings> {
    let key = match words.next()? {
        "-" => None,
        key => Some(key.parse().ok()?),
    };
    let mut rate = || words.next()?.parse().ok();
    Some(ChildSettings {
        key,
        receive_limit_mb_per_s: rate()?,
        pace_mb_per_s: rate()?,
        uses_tasks_per_s: rate()?,
        empties_tasks_per_s: rate()?,
        send_s: rate()?,
    })
}

/// Formats an event for the log.
#[must_use]
pub fn event_words(event: &Event) -> String {
    match event {
        Event::Started => "started".into(),
        Event::Given { first, tasks } => format!("given {first} {tasks}"),
        Event::Arrived { task } => format!("arrived {task}"),
        Event::Requested { child, tasks } => format!("asked {child} {tasks}"),
        Event::Sent { child, task } => format!("sent {child} {task}"),
        Event::Held { child } => format!("held {child}"),
        Event::Computed { task } => format!("computed {task}"),
        Event::Returned { child, task } => format!("returned {child} {task}"),
        Event::Known { child, settings } => format!("known {child} {}", settings_words(settings)),
        Event::Places { tasks } => format!("places {tasks}"),
        Event::RemainingHint { tasks } => format!("to-come {tasks}"),
        Event::Joined { child } => format!("joined {}", settings_words(child)),
        Event::Left { child } => format!("left {child}"),
        Event::Draining { child } => format!("draining {child}"),
        Event::HandedBack { child, task } => format!("handed-back {child} {task}"),
        Event::Drain => "drain".into(),
    }
}

/// Formats a command for the log.
#[must_use]
pub fn command_words(command: &Command) -> String {
    match command {
        Command::Send { child, task, limit_mb_per_s } => {
            format!("send {child} {task} {}", limit_words(*limit_mb_per_s))
        }
        Command::HintRemaining { child, tasks } => format!("hint_remaining {child} {tasks}"),
        Command::Hold { child } => format!("hold {child}"),
        Command::Limit { child, limit_mb_per_s } => format!("limit {child} {}", limit_words(*limit_mb_per_s)),
        Command::Compute { task } => format!("compute {task}"),
        Command::Ask { tasks } => format!("ask {tasks}"),
        Command::Return { task } => format!("return {task}"),
        Command::HandBack { task } => format!("hand-back {task}"),
    }
}

/// Parses an event from a log. `None` if it is malformed.
#[must_use]
pub fn event_of(words: &str) -> Option<Event> {
    let mut words = words.split_whitespace();
    let name = words.next()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let event = match name {
        "started" => Event::Started,
        "given" => Event::Given { first: number()?, tasks: number()? },
        "arrived" => Event::Arrived { task: number()? },
        "asked" => Event::Requested { child: number()? as u32, tasks: number()? },
        "sent" => Event::Sent { child: number()? as u32, task: number()? },
        "held" => Event::Held { child: number()? as u32 },
        "computed" => Event::Computed { task: number()? },
        "returned" => Event::Returned { child: number()? as u32, task: number()? },
        "left" => Event::Left { child: number()? as u32 },
        "draining" => Event::Draining { child: number()? as u32 },
        "handed-back" => Event::HandedBack { child: number()? as u32, task: number()? },
        "drain" => Event::Drain,
        "known" => Event::Known { child: number()? as u32, settings: settings_of(&mut words)? },
        "places" => Event::Places { tasks: number()? },
        "to-come" => Event::RemainingHint { tasks: number()? },
        "joined" => Event::Joined { child: settings_of(&mut words)? },
        _ => return None,
    };
    words.next().is_none().then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        for event in [
            Event::Started,
            Event::Given { first: 3, tasks: 9 },
            Event::Arrived { task: 1 },
            Event::Requested { child: 2, tasks: 5 },
            Event::Sent { child: 2, task: 5 },
            Event::Held { child: 1 },
            Event::Computed { task: 4 },
            Event::Returned { child: 1, task: 4 },
            Event::Left { child: 9 },
            Event::Draining { child: 3 },
            Event::HandedBack { child: 3, task: 8 },
            Event::Drain,
            Event::Joined {
                child: ChildSettings {
                    key: Some(-0.1),
                    receive_limit_mb_per_s: f64::INFINITY,
                    pace_mb_per_s: 3.0,
                    uses_tasks_per_s: 1.5,
                    empties_tasks_per_s: 2.5,
                    send_s: 0.5,
                },
            },
            Event::Joined {
                child: ChildSettings {
                    key: None,
                    receive_limit_mb_per_s: 2.5,
                    pace_mb_per_s: 2.5,
                    uses_tasks_per_s: 0.0,
                    empties_tasks_per_s: 2.5,
                    send_s: 0.5,
                },
            },
            Event::Known {
                child: 7,
                settings: ChildSettings {
                    key: Some(-4.5),
                    receive_limit_mb_per_s: 2.5,
                    pace_mb_per_s: 2.0,
                    uses_tasks_per_s: 4.0,
                    empties_tasks_per_s: 2.5,
                    send_s: 0.5,
                },
            },
            Event::Places { tasks: 12 },
            Event::RemainingHint { tasks: 7 },
        ] {
            assert_eq!(event_of(&event_words(&event)), Some(event));
        }
        assert_eq!(event_of("sent 1"), None);
        assert_eq!(event_of("left 1 2"), None);
    }

    #[test]
    fn rows_are_read_as_they_were_written_and_a_torn_one_is_left_out() {
        let row = Row {
            activity: Activity::Send,
            node: 1,
            child: 2,
            task: 3,
            start_ns: 1_000,
            end_ns: 2_000,
            bytes: 6,
            work: 0.5,
        };
        let mut bytes = Vec::new();
        row.encode(-500, &mut bytes);
        row.encode(0, &mut bytes);
        bytes.pop();
        assert_eq!(Row::decode(&bytes), [Row { start_ns: 500, end_ns: 1_500, ..row }]);
    }
}
