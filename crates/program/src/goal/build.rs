//! Schedules made in memory, for programs that come from elsewhere than a GOAL file.

use std::sync::Arc;

use super::parse::Block;
use super::{Act, Goal};

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Calc {
        ns: u64,
    },
    Send {
        to: u32,
        tag: u64,
        bytes: u64,
    },
    /// `from`: the sender; `None`: any.
    Receive {
        from: Option<u32>,
        tag: u64,
    },
}

/// Builds a schedule, rank by rank.
pub struct Builder {
    blocks: Vec<Block<'static>>,
}

impl Builder {
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self { blocks: (0..ranks).map(|_| Block::default()).collect() }
    }

    /// Appends an operation to a rank. It begins when the required operations of the same rank are over. Returns its index.
    ///
    /// # Panics
    /// The rank is none of the schedule.
    pub fn add(&mut self, rank: u32, operation: Operation, required: &[u32]) -> u32 {
        let block = &mut self.blocks[rank as usize];
        let at = block.acts.len() as u32;
        block.acts.push(match operation {
            Operation::Calc { ns } => Act::Calc { ns },
            Operation::Send { to, tag, bytes } => Act::Send { to, tag, bytes },
            Operation::Receive { from, tag } => Act::Receive { from, tag: Some(tag) },
        });
        block.needs.extend(required.iter().map(|&required| (at, required, false)));
        at
    }

    /// Returns the schedule.
    ///
    /// # Errors
    /// Operations of a rank wait for each other.
    pub fn build(self) -> Result<Goal, String> {
        let schedules: Result<Vec<_>, _> =
            self.blocks.into_iter().map(|block| block.schedule().map(Arc::new)).collect();
        Ok(Goal { schedules: schedules?, rendezvous_above: None })
    }
}
