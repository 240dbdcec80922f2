//! What came of a parallel program's run.

use crosswind_program::Rank;

use super::wires::Totals;
use crate::error::SimError;

/// Ranks named in the message about a deadlock.
const NAMED: usize = 5;

#[derive(Debug)]
pub struct Outcome<R> {
    /// When the last rank was at its end, or had handled its last message, ns.
    pub makespan_ns: u64,
    /// Messages, packets and so on.
    pub totals: Totals,
    /// Each rank's times.
    pub times: Vec<RankTimes>,
    /// The ranks as they are at their end.
    pub ranks: Vec<R>,
}

/// One rank's times, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTimes {
    /// When its last operation was over, or its last message handled.
    pub end_ns: u64,
    /// What its processor did for the program, of an undisturbed processor: computing, overheads, handlers.
    pub busy_ns: u64,
    pub stalled_ns: u64,
}

impl<R: Rank> Outcome<R> {
    /// What the ranks hold at their end, for [`crosswind_program::Program::check`].
    #[must_use]
    pub fn results(&self) -> Vec<Vec<u64>> {
        self.ranks.iter().map(Rank::result).collect()
    }
}

impl<R> Outcome<R> {
    /// Waited for credits, all ranks together, ns.
    #[must_use]
    pub fn stalled_ns(&self) -> u64 {
        self.times.iter().map(|times| times.stalled_ns).sum()
    }
}

/// Nothing can happen any more.
///
/// # Errors
/// [`SimError::Deadlock`] when any rank still waits. `waiting`: which do, and for what; `last`: when the last thing happened, ns.
pub(super) fn all_are_done(ranks: usize, waiting: &[(u32, String)], last: u64) -> Result<(), SimError> {
    if waiting.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> =
        waiting.iter().take(NAMED).map(|(rank, what)| format!("rank {rank}: {what}")).collect();
    if waiting.len() > NAMED {
        named.push(format!("and {} more", waiting.len() - NAMED));
    }
    Err(SimError::Deadlock { waiting: waiting.len(), ranks, time_s: last as f64 * 1e-9, named: named.join("; ") })
}
