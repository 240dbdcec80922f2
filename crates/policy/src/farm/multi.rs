//! Several concurrent sends, up to the send limit.
//!
//! In order of preference, children get their whole pace (their receive limit, or less: see `demand`) until the send
//! limit is used up. The last one gets the rest of it. A preferred child that requests a task takes its share from the
//! least preferred: the last one is slowed, and one that is left with nothing is held at the end of its chunk. Freed
//! capacity goes first to the one that was slowed, then to those held and those waiting. A child gets one task at a
//! time. Near the end of a run no share is taken away: the last tasks are placed by when they would finish, which
//! assumes that a send keeps its rate.
//!
//! With `arrival` there is no preference: all requesting children are served immediately, and the links determine the
//! rates.

use super::event::{Child, Command, Commands, TaskId};
use super::waiting::{ChildState, Transfer};
use crate::heap::{First, Heap, Last};

/// Relative rounding error below which a share counts as zero.
const NOTHING: f64 = 1e-9;

/// The shares of the send limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct MultiPort {
    send_limit: f64,
    /// Unused part of the send limit, MB/s.
    room: f64,
    /// Children with a share, least preferred first.
    running: Heap<f64, Last>,
    /// Children held in the middle of a task.
    paused: Heap<f64, First>,
}

impl MultiPort {
    pub fn new(send_limit: f64) -> Self {
        Self { send_limit, room: send_limit, ..Self::default() }
    }

    fn is_free(&self) -> bool {
        self.room == f64::INFINITY || self.room > NOTHING * self.send_limit
    }

    /// Ends or abandons a send, which frees its share.
    pub fn end(&mut self, children: &mut [ChildState], child: Child) {
        let state = &mut children[child as usize];
        self.running.remove(child);
        self.paused.remove(child);
        self.room += std::mem::take(&mut state.share);
        state.transfer = Transfer::None;
    }

    /// Records that a send has stopped at the end of a chunk.
    pub fn pause(&mut self, children: &mut [ChildState], child: Child) {
        let state = &mut children[child as usize];
        if state.transfer == Transfer::Holding {
            state.transfer = Transfer::Paused;
            self.paused.put(state.rank, child);
        }
    }

    /// Returns the more preferred of the held children and the waiting one with its key, and whether it was held.
    pub fn first(&mut self, fresh: Option<(f64, Child)>) -> Option<((f64, Child), bool)> {
        match (self.paused.first(), fresh) {
            (Some(paused), Some(fresh)) if fresh < paused => Some((fresh, false)),
            (Some(paused), _) => Some((paused, true)),
            (None, fresh) => fresh.map(|fresh| (fresh, false)),
        }
    }

    /// Gives the free capacity to the child that was slowed.
    pub fn raise_last(&mut self, children: &mut [ChildState], commands: &mut impl Commands) {
        if !self.is_free() {
            return;
        }
        let Some((_, last)) = self.running.first() else { return };
        let state = &mut children[last as usize];
        let more = (state.pace - state.share).min(self.room);
        if more > NOTHING * state.pace {
            state.share += more;
            self.room -= more;
            commands.push(Command::Limit { child: last, limit_mb_per_s: limit(state.share, state.receive_limit) });
        }
    }

    /// Takes a share for a candidate from the free capacity. Returns it, MB/s.
    pub fn take_free(&mut self, children: &[ChildState], candidate: Child) -> f64 {
        if !self.is_free() {
            return 0.0;
        }
        let share = children[candidate as usize].pace.min(self.room);
        self.room -= share;
        share
    }

    /// Adds to the candidate's share, up to its pace, from the shares of less preferred children. Returns the new
    /// share, MB/s.
    pub fn take_over(
        &mut self,
        children: &mut [ChildState],
        candidate: (f64, Child),
        mut share: f64,
        commands: &mut impl Commands,
    ) -> f64 {
        let wanted = children[candidate.1 as usize].pace;
        while wanted - share > NOTHING * wanted {
            let Some(last) = self.running.first().filter(|&last| last > candidate) else { break };
            let state = &mut children[last.1 as usize];
            let missing = wanted - share;
            if state.share - missing > NOTHING * self.send_limit {
                state.share -= missing;
                share = wanted;
                let limit_mb_per_s = limit(state.share, state.receive_limit);
                commands.push(Command::Limit { child: last.1, limit_mb_per_s });
            } else {
                share += std::mem::take(&mut state.share);
                state.transfer = Transfer::Holding;
                self.running.remove(last.1);
                commands.push(Command::Hold { child: last.1 });
            }
        }
        share
    }

    /// Begins to send a task to a child with that key. An infinite share does not count towards the send limit.
    pub fn begin(
        &mut self,
        children: &mut [ChildState],
        (key, child): (f64, Child),
        task: TaskId,
        share: f64,
        commands: &mut impl Commands,
    ) {
        let state = &mut children[child as usize];
        (state.task, state.rank, state.transfer) = (task, key, Transfer::Running);
        let limit_mb_per_s = limit(share, state.receive_limit);
        if share.is_finite() {
            state.share = share;
            self.running.put(key, child);
        }
        commands.push(Command::Send { child, task, limit_mb_per_s });
    }

    pub fn resume(&mut self, children: &mut [ChildState], child: Child, share: f64, commands: &mut impl Commands) {
        self.paused.remove(child);
        let state = &mut children[child as usize];
        (state.share, state.transfer) = (share, Transfer::Running);
        self.running.put(state.rank, child);
        commands.push(Command::Send { child, task: state.task, limit_mb_per_s: limit(share, state.receive_limit) });
    }
}

/// Returns the limit for a share. `None` if the share is the whole receive limit.
fn limit(share: f64, receive_limit: f64) -> Option<f64> {
    (share < receive_limit * (1.0 - NOTHING)).then_some(share)
}
