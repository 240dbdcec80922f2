//! Several sends at once, up to the send limit.
//!
//! In order of preference children get their whole pace (their receive limit, or less: see `demand`) until the send limit is used up; the last one gets what
//! is left of it. A preferred child that asks takes its share from the least preferred: the last is slowed, and one that
//! is left with nothing is held at the end of its chunk. What becomes free goes first to the one that was slowed, then to
//! those held and those waiting. A child gets one task at a time. Near the end of a run no share is taken: where the
//! last tasks go is decided by when they would be done there, and a send that has begun keeps to that.
//!
//! With `arrival` there is no preference: all children that asked are served immediately, and the links decide.

use super::event::{Child, Command, Commands, TaskId};
use super::waiting::{ChildState, Transfer};
use crate::heap::{First, Heap, Last};

/// Shares of the send limit below this part of it are none: sums of shares are rounded.
const NOTHING: f64 = 1e-9;

/// The share of each child.
#[derive(Clone, Debug, Default)]
pub(crate) struct MultiPort {
    send_limit: f64,
    /// What of the send limit is free.
    room: f64,
    /// Those with a share, least preferred first.
    running: Heap<f64, Last>,
    /// Those held in the middle of a task.
    paused: Heap<f64, First>,
}

impl MultiPort {
    pub fn new(send_limit: f64) -> Self {
        Self { send_limit, room: send_limit, ..Self::default() }
    }

    fn is_free(&self) -> bool {
        self.room == f64::INFINITY || self.room > NOTHING * self.send_limit
    }

    /// A send is over, or was stopped: its share is free.
    pub fn end(&mut self, children: &mut [ChildState], child: Child) {
        let state = &mut children[child as usize];
        self.running.remove(child);
        self.paused.remove(child);
        self.room += std::mem::take(&mut state.share);
        state.transfer = Transfer::None;
    }

    /// A send has stopped at the end of a chunk.
    pub fn pause(&mut self, children: &mut [ChildState], child: Child) {
        let state = &mut children[child as usize];
        if state.transfer == Transfer::Holding {
            state.transfer = Transfer::Paused;
            self.paused.put(state.rank, child);
        }
    }

    /// The more preferred of those held and of the one that waits, with its key, and whether it was held.
    pub fn first(&mut self, fresh: Option<(f64, Child)>) -> Option<((f64, Child), bool)> {
        match (self.paused.first(), fresh) {
            (Some(paused), Some(fresh)) if fresh < paused => Some((fresh, false)),
            (Some(paused), _) => Some((paused, true)),
            (None, fresh) => fresh.map(|fresh| (fresh, false)),
        }
    }

    /// The child that was slowed gets what is free.
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

    /// A share for a candidate of what is free.
    pub fn take_free(&mut self, children: &[ChildState], candidate: Child) -> f64 {
        if !self.is_free() {
            return 0.0;
        }
        let share = children[candidate as usize].pace.min(self.room);
        self.room -= share;
        share
    }

    /// The candidate's share with what it still wants of what less preferred children have.
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

    /// A task begins to leave for a child with that key; an infinite share is none of the send limit.
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

    /// A send that was held goes on.
    pub fn resume(&mut self, children: &mut [ChildState], child: Child, share: f64, commands: &mut impl Commands) {
        self.paused.remove(child);
        let state = &mut children[child as usize];
        (state.share, state.transfer) = (share, Transfer::Running);
        self.running.put(state.rank, child);
        commands.push(Command::Send { child, task: state.task, limit_mb_per_s: limit(share, state.receive_limit) });
    }
}

/// A whole receive limit is no limit.
fn limit(share: f64, receive_limit: f64) -> Option<f64> {
    (share < receive_limit * (1.0 - NOTHING)).then_some(share)
}
