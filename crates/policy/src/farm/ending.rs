//! The end of a run: which children get none of the last tasks, since others would finish them earlier.
//!
//! While there are tasks for all, each child that asks gets one. Of the last ones a slow node would still be computing when
//! all others are done. So a child gets a task only if it is done with it, at the rates that are known, by the time that
//! all could be. With `L` tasks that no node has, `o_i` that computer `i` (a child's subtree, or the own processor) has and
//! has not given back a result of, the rate `u_i` that it uses, the rate `e_c` at which child `c` computes what it has and
//! the time `s_c` of a send to it, it is served if
//!
//! ```text
//! max(s_c, o_c / e_c) + 1 / e_c <= max((L + sum o_i) / sum u_i, (L + o_0) / (u_0 + S))
//! ```
//! with `S` the tasks/s that the port, or the send limit, lets out and 0 the own processor.
//!
//! The right side is a lower bound of the makespan. To exceed it by little costs little if the task goes to a fast node, and
//! much if all wait for a slow one. Or `c` is served if no computer that has tasks or asks for some would be done with one
//! earlier: so a task waits only for a node that will request it.
//!
//! While so much is left that even the slowest node would be in time, nothing of this is looked at: see `last`. In a short
//! run, or one with a very slow node, that is never.
//!
//! With several ports a send takes what it does at the child's pace, or longer: how much of the send limit is left for it later is
//! not known.
//!
//! A node learns from its parent, the root from the user, how many tasks are still to come. Without results it is not known
//! which node has what, and all are served as they ask.

use super::last::Last;
use super::settings::Settings;
use super::waiting::ChildState;

/// The part of all tasks, one in so many, with which the end begins at the latest where rates or nodes may change; and no
/// send is slowed or held any more.
const LAST: u64 = 5;

/// What a node knows of a run's end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    on: bool,
    /// Whether results come back: they tell how many tasks a child has.
    returns: bool,
    root: bool,
    /// Tasks still to come from above; none: unknown.
    remaining: Option<u64>,
    came: u64,
    /// Tasks/s of the own processor, and of it and all served children.
    own: f64,
    all: f64,
    /// Tasks/s that it can send, at most.
    sends: f64,
    last: Last,
    /// Tasks that served children have.
    out: u64,
    /// Whether the children know that nothing is to come.
    pub told: bool,
}

impl Ending {
    pub fn new(settings: &Settings) -> Self {
        let own = if settings.computes { settings.own_tasks_per_s } else { 0.0 };
        Self {
            on: settings.level_end.is_some() && settings.returns, // without results it is unknown which node has what
            returns: settings.returns,
            root: settings.root,
            own,
            all: own,
            sends: settings.sends_tasks_per_s,
            last: settings.level_end.unwrap_or_default(),
            ..Self::default()
        }
    }

    pub fn expect(&mut self, tasks: u64) {
        self.remaining = Some(tasks);
    }

    #[inline]
    pub fn came(&mut self, tasks: u64) {
        if !self.on {
            return;
        }
        self.came += tasks;
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(tasks));
    }

    /// Tasks that no node has yet, once the end has begun.
    #[inline]
    pub fn left(&self, ready: u64) -> Option<u64> {
        if !self.on {
            return None;
        }
        let left = self.remaining?.saturating_add(ready); // a parent may say anything
        let Last { late_s, may_change } = self.last;
        let has_begun = left <= (late_s * self.all) as u64 || may_change && self.is_close(left);
        (!self.root || has_begun).then_some(left)
    }

    /// Whether the last fifth has begun: what has begun to be sent is let through.
    #[inline]
    pub fn is_close(&self, left: u64) -> bool {
        left <= self.came.saturating_add(self.remaining.unwrap_or(0)) / LAST
    }

    /// Lower bound of the time by which all tasks can be computed, s.
    pub fn horizon_s(&self, left: u64, computing: bool) -> f64 {
        let here = left as f64 + f64::from(u8::from(computing));
        ((here + self.out as f64) / self.all).max(here / (self.own + self.sends))
    }

    /// When the own processor would be done with a task that it begins now, s.
    pub fn own_s(&self) -> f64 {
        1.0 / self.own
    }

    /// A child's part of what is left.
    pub fn share(&self, left: u64, child: &ChildState) -> u64 {
        (left as f64 * child.uses / self.all).ceil() as u64
    }

    /// Counts a child that is served, or (`false`) does so no more.
    pub fn count(&mut self, child: &ChildState, counts: bool) {
        if !child.is_counted() {
            return;
        }
        let out = u64::from(child.out);
        if counts {
            (self.all, self.out) = (self.all + child.uses, self.out + out);
        } else {
            (self.all, self.out) = (self.all - child.uses, self.out - out);
        }
    }

    /// A child has a task more.
    #[inline]
    pub fn lent(&mut self, child: &mut ChildState) {
        if !self.returns {
            return;
        }
        child.out += 1;
        self.out += u64::from(child.is_counted());
    }

    /// A child has a task less.
    #[inline]
    pub fn settled(&mut self, child: &mut ChildState) {
        if child.out > 0 {
            child.out -= 1;
            self.out -= u64::from(child.is_counted());
        }
    }
}
