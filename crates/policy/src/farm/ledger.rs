//! Ledger: which tasks are out, under which child, and not yet returned.
//!
//! It is what makes a lost child harmless: its tasks go back to the queue, and a second result of a task is dropped.
//! Without faults and results there is nothing to recover, and no node keeps one.

use std::collections::BTreeMap;

use super::event::{Child, TaskId};

/// The tasks that are out.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    out: BTreeMap<TaskId, Child>,
}

impl Ledger {
    /// A task is on its way to a child.
    pub fn lend(&mut self, task: TaskId, child: Child) {
        self.out.insert(task, child);
    }

    /// A task's result is here. `false`: it was here before, or was never out.
    pub fn settle(&mut self, task: TaskId) -> bool {
        self.out.remove(&task).is_some()
    }

    /// The tasks that were out under a child that left, lowest number first. They are no longer out.
    pub fn recall(&mut self, child: Child) -> Vec<TaskId> {
        let lost: Vec<TaskId> = self.out.iter().filter(|&(_, &c)| c == child).map(|(&task, _)| task).collect();
        for task in &lost {
            self.out.remove(task);
        }
        lost
    }

    /// How many tasks are out under a child.
    #[must_use]
    pub fn lent_to(&self, child: Child) -> usize {
        self.out.values().filter(|&&c| c == child).count()
    }

    /// How many tasks are out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_counts_once_and_a_lost_childs_tasks_come_back() {
        let mut ledger = Ledger::default();
        for (task, child) in [(5, 0), (3, 1), (9, 0)] {
            ledger.lend(task, child);
        }
        assert!(ledger.settle(3));
        assert!(!ledger.settle(3));
        assert_eq!(ledger.recall(0), [5, 9]);
        assert!(!ledger.settle(5));
        assert!(ledger.is_empty());
    }
}
