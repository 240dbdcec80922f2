//! The end of a run: which children get none of the last tasks, since others would finish them earlier.
//!
//! While there are tasks for all, each child that asks gets one. Of the last ones a slow node would still be computing when
//! all others are done. So when the last fifth has begun, a child gets a task only if it is done with it, at the rates
//! that are known, by the time that all could be. With `L` tasks that no node has, `o_i` that computer `i` (a child's
//! subtree, or the own processor) has and has not given back a result of, the rate `u_i` that it uses, the rate `e_c` at
//! which child `c` computes what it has and the time `s_c` of a send to it, it is served if
//!
//! ```text
//! max(s_c, o_c / e_c) + 1 / e_c <= (L + sum o_i) / sum u_i
//! ```
//!
//! The right side is a lower bound of the makespan. To exceed it by little costs little if the task goes to a fast node, and
//! much if all wait for a slow one. Or `c` is served if no computer that has tasks or asks for some would be done with one
//! earlier: so a task waits only for a node that will request it.
//!
//! With a single port only: where several sends share a port, the end of a send that begins is not known.
//!
//! A node learns from its parent, the root from the user, how many tasks are still to come. Without results it is not known
//! which node has what, and all are served as they ask.

use super::waiting::ChildState;

/// At the root the end has begun when no more than this part of all tasks is left: one in so many. The others are told
/// nothing before.
const LAST: u64 = 5;
/// Nodes with more children serve each child that asks: the time at which each would be done is looked up child by child.
const MOST_CHILDREN: u64 = 1_000;

/// What a node knows of a run's end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    on: bool,
    root: bool,
    /// Served children.
    children: u64,
    /// Tasks still to come from above; none: unknown.
    remaining: Option<u64>,
    /// Tasks that came.
    came: u64,
    /// Tasks/s of the own processor, and of it and all served children.
    own: f64,
    all: f64,
    /// Tasks that served children have.
    out: u64,
    /// Whether the children know that nothing is to come.
    pub told: bool,
}

impl Ending {
    pub fn new(on: bool, root: bool, own_tasks_per_s: f64) -> Self {
        Self { on, root, own: own_tasks_per_s, all: own_tasks_per_s, ..Self::default() }
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
        let remaining = self.remaining.filter(|_| self.children <= MOST_CHILDREN)?;
        let left = remaining.saturating_add(ready); // a parent may say anything
        (!self.root || left <= self.came.saturating_add(remaining) / LAST).then_some(left)
    }

    /// Lower bound of the time by which all tasks can be computed, s.
    pub fn horizon_s(&self, left: u64, computing: bool) -> f64 {
        (left as f64 + self.out as f64 + f64::from(u8::from(computing))) / self.all
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
            (self.all, self.children, self.out) = (self.all + child.uses, self.children + 1, self.out + out);
        } else {
            (self.all, self.children, self.out) = (self.all - child.uses, self.children - 1, self.out - out);
        }
    }

    /// A child has a task more.
    #[inline]
    pub fn lent(&mut self, child: &mut ChildState) {
        if !self.on {
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
