//! GOAL: programs from schedules in the format of LogGOPSim (Hoefler, Schneider, Lumsdaine, "LogGOPSim", 2010).
//!
//! A file lists, for each rank, operations (`calc`, `send`, `recv`) and which of them must have ended (`requires`) or
//! begun (`irequires`) before others begin. An operation begins as soon as the processor is free. A send also needs the
//! interface, and computing need not wait behind it. Operations begin in the order in which they became free; among
//! those that became free together, sends come first, then the order of the file decides. A receive is posted when it
//! becomes free, without the processor, and ends when a send with its source and tag has been handled. Sends are eager
//! at any size, unless [`Goal::with_rendezvous`] says from which size on they are not. Operations may name one of several processors (`cpu`) and interfaces (`nic`) of their rank.
//!
//! | question | module |
//! |---|---|
//! | how is a file parsed? | `parse` |
//! | what does a rank do next? | `rank` |
//! | what does each of a rank's several processors do next? | [`processors`] |
//! | which operations have become free? | `requirements` |
//! | how is a schedule made in memory? | [`build`] |

pub mod build;
mod parse;
pub mod processors;
mod rank;
mod requirements;

use std::sync::Arc;

pub use parse::GoalError;
pub use rank::GoalRank;

use self::processors::RankProcessors;
use crate::rank::Program;

/// Largest message, bytes: a packet of it is an event of the simulation.
pub const LARGEST_BYTES: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Send { to: u32, tag: u64, bytes: u64 },
    Receive { from: Option<u32>, tag: Option<u64> },
    Calc { ns: u64 },
}

impl Act {
    /// Order among operations that become free together: lower first.
    const fn turn(self) -> u8 {
        match self {
            Self::Send { .. } => 0,
            Self::Receive { .. } | Self::Calc { .. } => 1,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Schedule {
    acts: Vec<Act>,
    /// For each operation, the number of others that it waits for.
    needs: Vec<u32>,
    /// For each operation, the index of its first follower, plus one final entry.
    starts: Vec<u32>,
    /// Followers, and whether they wait only for the operation's beginning.
    followers: Vec<(u32, bool)>,
    /// Where each operation runs; empty if all run on processor 0 and interface 0.
    places: Vec<Place>,
}

impl Schedule {
    fn place(&self, operation: u32) -> Place {
        self.places.get(operation as usize).copied().unwrap_or_default()
    }
}

/// The processor and the interface of an operation, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub cpu: u8,
    pub nic: u8,
}

/// A schedule for all ranks.
#[derive(Clone, Debug)]
pub struct Goal {
    schedules: Vec<Arc<Schedule>>,
    /// Sends of more bytes end when their receive has matched the message. `None`: all are eager.
    rendezvous_above: Option<u64>,
}

impl Goal {
    /// Parses a GOAL file.
    ///
    /// # Errors
    /// The first error, with its line: text that is not GOAL, ranks and labels that do not exist, operations that wait
    /// for each other, sizes beyond [`LARGEST_BYTES`].
    ///
    /// # Examples
    /// ```
    /// use crosswind_program::{Goal, Program};
    ///
    /// let text = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 8b to 1 tag 5\nl2 requires l1\n}\nrank 1 {\nrecv 8b from 0 tag 5\n}\n";
    /// assert_eq!(Goal::parse(text.as_bytes()).unwrap().ranks(), 2);
    /// assert!(Goal::parse(b"num_ranks 2\nrank 5 {\n}\n").is_err());
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, GoalError> {
        let whole = |schedules: Vec<Schedule>| schedules.into_iter().map(Arc::new).collect();
        parse::parse(text).map(|schedules| Self { schedules: whole(schedules), rendezvous_above: None })
    }

    /// Returns the schedule with messages of more bytes as rendezvous. Only [`Goal::processors`] takes that into account.
    #[must_use]
    pub fn with_rendezvous(self, above_bytes: u64) -> Self {
        Self { rendezvous_above: Some(above_bytes), ..self }
    }

    /// Whether a send may wait for its receive.
    #[must_use]
    pub fn has_rendezvous(&self) -> bool {
        self.rendezvous_above.is_some()
    }

    /// Returns the number of operations of all ranks.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.schedules.iter().map(|schedule| schedule.acts.len() as u64).sum()
    }

    /// Returns the first rank with an operation on another processor or interface than 0. `None` if every rank has one of
    /// each, as [`Program`] requires.
    #[must_use]
    pub fn several_processors(&self) -> Option<u32> {
        self.schedules.iter().position(|schedule| !schedule.places.is_empty()).map(|rank| rank as u32)
    }

    /// Returns a rank in its initial state, with all of its processors.
    #[must_use]
    pub fn processors(&self, rank: u32) -> RankProcessors {
        let above = self.rendezvous_above.unwrap_or(u64::MAX);
        RankProcessors::new(Arc::clone(&self.schedules[rank as usize]), above)
    }
}

impl Program for Goal {
    type Rank = GoalRank;

    fn ranks(&self) -> u32 {
        self.schedules.len() as u32
    }

    fn rank(&self, rank: u32) -> GoalRank {
        GoalRank::new(Arc::clone(&self.schedules[rank as usize]))
    }

    /// All operations must have ended, and every message must have found its receive.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        for (rank, result) in results.iter().enumerate() {
            if let [unended, unexpected] = result[..] {
                if unended > 0 {
                    return Err(format!("rank {rank}: {unended} operations have not ended"));
                }
                if unexpected > 0 {
                    return Err(format!("rank {rank}: {unexpected} messages came that no recv asked for"));
                }
            }
        }
        Ok(())
    }
}
