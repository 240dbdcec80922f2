//! Outcome of a parallel program's run.

use crosswind_program::Rank;

use super::wires::Totals;
use crate::error::SimError;

/// Number of ranks named in a deadlock's error message.
const NAMED: usize = 5;

#[derive(Debug)]
pub struct Outcome<R> {
    /// Time at which the last rank ended or had handled its last message, ns.
    pub makespan_ns: u64,
    /// Counts of messages, packets and the like.
    pub totals: Totals,
    pub times: Vec<RankTimes>,
    /// Final state of each rank.
    pub ranks: Vec<R>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTimes {
    /// Time at which its last operation ended or its last message was handled.
    pub end_ns: u64,
    /// Work of its processor for the program, in ns of an undisturbed processor: computing, overheads, handlers.
    pub busy_ns: u64,
    pub stalled_ns: u64,
}

impl<R: Rank> Outcome<R> {
    /// Returns the ranks' results, for [`crosswind_program::Program::check`].
    #[must_use]
    pub fn results(&self) -> Vec<Vec<u64>> {
        self.ranks.iter().map(Rank::result).collect()
    }
}

impl<R> Outcome<R> {
    /// Returns the outcome without the ranks' final state.
    #[must_use]
    pub fn without_ranks(self) -> Outcome<()> {
        Outcome { makespan_ns: self.makespan_ns, totals: self.totals, times: self.times, ranks: Vec::new() }
    }

    /// Returns the time spent waiting for credits, summed over all ranks, ns.
    #[must_use]
    pub fn stalled_ns(&self) -> u64 {
        self.times.iter().map(|times| times.stalled_ns).sum()
    }
}

/// Checks that every rank has finished when no event is pending.
///
/// # Errors
/// [`SimError::Deadlock`] when any rank still waits. `waiting`: those ranks and what each waits for; `last`: time of
/// the last event, ns.
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
