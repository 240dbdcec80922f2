//! Several sends at once, up to the send limit.
//!
//! In order of preference children get their whole pace (their receive limit, or less: see `demand`) until the send limit is used up; the last one gets what
//! is left of it. A preferred child that asks takes its share from the least preferred: the last is slowed, and one that
//! is left with nothing is held at the end of its chunk. What becomes free goes first to the one that was slowed, then to
//! those held and those waiting. A child gets one task at a time.
//!
//! With `arrival` there is no preference: all children that asked are served immediately, and the links decide.

use super::event::{Child, Command};
use super::node::Node;
use super::order::Rule;
use super::waiting::Transfer;
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
}

impl Node {
    /// A send is over, or was stopped: its share is free.
    pub(crate) fn free_share(&mut self, child: Child) {
        self.multi.running.remove(child);
        let state = &mut self.children[child as usize];
        self.multi.room += std::mem::take(&mut state.share);
    }

    /// A send is over.
    pub(crate) fn end_multi(&mut self, child: Child) {
        self.free_share(child);
        self.multi.paused.remove(child);
        self.children[child as usize].transfer = Transfer::None;
        self.waiting.wait_again(&self.children, child);
    }

    /// A send has stopped at the end of a chunk.
    pub(crate) fn pause(&mut self, child: Child) {
        let state = &mut self.children[child as usize];
        if state.transfer == Transfer::Holding {
            state.transfer = Transfer::Paused;
            self.multi.paused.put(state.rank, child);
        }
    }

    /// Gives out the send limit.
    pub(crate) fn serve_multi(&mut self, commands: &mut Vec<Command>) {
        if self.waiting.rule == Rule::Arrival {
            while !self.ready.is_empty()
                && let Some((key, child)) = self.waiting.first(&self.children)
            {
                self.begin_multi(key, child, f64::INFINITY, commands);
            }
            return;
        }
        self.raise_last(commands);
        loop {
            let fresh = if self.ready.is_empty() { None } else { self.waiting.first(&self.children) };
            let (candidate, is_paused) = match (self.multi.paused.first(), fresh) {
                (Some(paused), Some(fresh)) if fresh < paused => (fresh, false),
                (Some(paused), _) => (paused, true),
                (None, Some(fresh)) => (fresh, false),
                (None, None) => return,
            };
            let share = self.make_room(candidate, commands);
            if share <= 0.0 {
                return;
            }
            let (key, child) = candidate;
            if is_paused {
                self.resume(child, share, commands);
            } else {
                self.begin_multi(key, child, share, commands);
            }
        }
    }

    /// The child that was slowed gets what is free.
    fn raise_last(&mut self, commands: &mut Vec<Command>) {
        if !self.multi.is_free() {
            return;
        }
        let Some((_, last)) = self.multi.running.first() else { return };
        let state = &mut self.children[last as usize];
        let more = (state.pace - state.share).min(self.multi.room);
        if more > NOTHING * state.pace {
            state.share += more;
            self.multi.room -= more;
            commands.push(Command::Limit { child: last, limit_mb_per_s: limit(state.share, state.receive_limit) });
        }
    }

    /// A share for a candidate: what is free, then what less preferred children have.
    fn make_room(&mut self, candidate: (f64, Child), commands: &mut Vec<Command>) -> f64 {
        let wanted = self.children[candidate.1 as usize].pace;
        let mut share = 0.0;
        if self.multi.is_free() {
            share = wanted.min(self.multi.room);
            self.multi.room -= share;
        }
        while wanted - share > NOTHING * wanted {
            let Some(last) = self.multi.running.first().filter(|&last| last > candidate) else { break };
            let state = &mut self.children[last.1 as usize];
            let missing = wanted - share;
            if state.share - missing > NOTHING * self.multi.send_limit {
                state.share -= missing;
                share = wanted;
                let limit_mb_per_s = limit(state.share, state.receive_limit);
                commands.push(Command::Limit { child: last.1, limit_mb_per_s });
            } else {
                share += std::mem::take(&mut state.share);
                state.transfer = Transfer::Holding;
                self.multi.running.remove(last.1);
                commands.push(Command::Hold { child: last.1 });
            }
        }
        share
    }

    fn begin_multi(&mut self, key: f64, child: Child, share: f64, commands: &mut Vec<Command>) {
        let Some(task) = self.ready.pop() else { return };
        self.waiting.take_out(&mut self.children, child);
        self.lend(task, child);
        self.sending += 1;
        let state = &mut self.children[child as usize];
        (state.task, state.rank, state.transfer) = (task, key, Transfer::Running);
        let limit_mb_per_s = limit(share, state.receive_limit);
        if share.is_finite() {
            state.share = share;
            self.multi.running.put(key, child);
        }
        commands.push(Command::Send { child, task, limit_mb_per_s });
    }

    fn resume(&mut self, child: Child, share: f64, commands: &mut Vec<Command>) {
        self.multi.paused.remove(child);
        let state = &mut self.children[child as usize];
        (state.share, state.transfer) = (share, Transfer::Running);
        self.multi.running.put(state.rank, child);
        commands.push(Command::Send { child, task: state.task, limit_mb_per_s: limit(share, state.receive_limit) });
    }
}

/// A whole receive limit is no limit.
fn limit(share: f64, receive_limit: f64) -> Option<f64> {
    (share < receive_limit * (1.0 - NOTHING)).then_some(share)
}
