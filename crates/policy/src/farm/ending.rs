//! The end of a run: which children get none of the last tasks, because others would finish them earlier.
//!
//! While there are tasks for all, each requesting child gets one. With the last ones, a slow node would still be
//! computing when all others are done. So a child gets a task only if, at the known rates, it finishes by the time at
//! which all tasks could be done. Let `L` be the number of tasks that no node has. Computer `i` is a child's subtree or
//! the own processor, with `o_i` tasks without a result and rate `u_i`. Child `c` computes what it has at rate `e_c`,
//! and a send to it takes `s_c`. It is served if
//!
//! ```text
//! max(s_c, o_c / e_c) + 1 / e_c <= max((L + sum o_i) / sum u_i, (L + o_0) / (u_0 + S))
//! ```
//! where `S` is the rate in tasks/s of the port or the send limit, and computer 0 is the own processor.
//!
//! The right side is a lower bound on the makespan. Exceeding it slightly costs little if the task goes to a fast node,
//! and much if all wait for a slow one. `c` is also served if no computer that has or requests tasks would finish one
//! earlier, so a task waits only for a node that will request it.
//!
//! This rule is skipped while enough tasks are left for even the slowest node to be in time: see `last`. In a
//! short run, or one with a very slow node, that is never the case.
//!
//! With several ports, `s_c` is the time of a send at the child's pace. The send may take longer, because what will be
//! left of the send limit is unknown.
//!
//! A node learns the number of remaining tasks from its parent, and the root from the user. Without results it is
//! unknown which node has which tasks, and all are served in the order of preference.

use super::last::Last;
use super::settings::Settings;
use super::waiting::ChildState;

/// With the last 1/`LAST` of all tasks the end begins at the latest if rates or nodes may change. From then on no send
/// is slowed or held.
const LAST: u64 = 5;

/// A node's view of the end of a run: tasks still to arrive, tasks outstanding, and rates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    on: bool,
    /// Whether results come back, which show how many tasks a child has.
    returns: bool,
    root: bool,
    /// Number of tasks still to arrive from above. `None`: unknown.
    remaining: Option<u64>,
    came: u64,
    /// Tasks/s of the own processor. `all` includes all children that are served.
    own: f64,
    all: f64,
    /// Maximum rate at which it can send, tasks/s.
    sends: f64,
    last: Last,
    /// Tasks that served children hold.
    out: u64,
    /// Whether the children have been informed that nothing is to come.
    pub is_announced: bool,
}

impl Ending {
    pub fn new(settings: &Settings) -> Self {
        let own = if settings.computes { settings.own_tasks_per_s } else { 0.0 };
        Self {
            on: settings.level_end.is_some() && settings.returns, // without results it is unknown which node has which tasks
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

    /// Number of tasks that no node has yet. `None` until the end has begun.
    #[inline]
    pub fn left(&self, ready: u64) -> Option<u64> {
        if !self.on {
            return None;
        }
        let left = self.remaining?.saturating_add(ready); // a parent may announce any number
        let Last { late_s, may_change } = self.last;
        let has_begun = left <= (late_s * self.all) as u64 || may_change && self.is_close(left);
        (!self.root || has_begun).then_some(left)
    }

    /// Whether the last fifth of the tasks has begun. Sends that have begun are then not interrupted.
    #[inline]
    pub fn is_close(&self, left: u64) -> bool {
        left <= self.came.saturating_add(self.remaining.unwrap_or(0)) / LAST
    }

    /// Lower bound on the time by which all tasks can be computed, s.
    pub fn horizon_s(&self, left: u64, computing: bool) -> f64 {
        let here = left as f64 + f64::from(u8::from(computing));
        ((here + self.out as f64) / self.all).max(here / (self.own + self.sends))
    }

    /// When the own processor would finish a task that it begins now, s.
    pub fn own_s(&self) -> f64 {
        1.0 / self.own
    }

    /// A child's share of `left` tasks.
    pub fn share(&self, left: u64, child: &ChildState) -> u64 {
        (left as f64 * child.uses / self.all).ceil() as u64
    }

    /// Adds a served child to the sums, or (`false`) removes it.
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

    /// A child was sent a task.
    #[inline]
    pub fn lent(&mut self, child: &mut ChildState) {
        if !self.returns {
            return;
        }
        child.out += 1;
        self.out += u64::from(child.is_counted());
    }

    /// A child returned a task.
    #[inline]
    pub fn settled(&mut self, child: &mut ChildState) {
        if child.out > 0 {
            child.out -= 1;
            self.out -= u64::from(child.is_counted());
        }
    }
}
