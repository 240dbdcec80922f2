//! Ledger: which tasks are outstanding, and under which child.
//!
//! It makes the loss of a child harmless: its tasks return to the queue, and a second result of a task is dropped.
//! Without faults and results there is nothing to recover, and no ledger is kept.

use std::collections::BTreeMap;

use super::event::{Child, TaskId};

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    out: BTreeMap<TaskId, Child>,
}

impl Ledger {
    /// Records a task that is being sent to a child.
    pub fn lend(&mut self, task: TaskId, child: Child) {
        self.out.insert(task, child);
    }

    /// Records a task's result. Returns `false` if the task is not outstanding, because its result arrived before or it
    /// was never sent.
    pub fn settle(&mut self, task: TaskId) -> bool {
        self.out.remove(&task).is_some()
    }

    /// Removes and returns the tasks outstanding under a child that left, lowest number first.
    pub fn recall(&mut self, child: Child) -> Vec<TaskId> {
        let lost: Vec<TaskId> = self.out.iter().filter(|&(_, &c)| c == child).map(|(&task, _)| task).collect();
        for task in &lost {
            self.out.remove(task);
        }
        lost
    }

    /// Number of tasks outstanding under a child.
    #[must_use]
    pub fn lent_to(&self, child: Child) -> usize {
        self.out.values().filter(|&&c| c == child).count()
    }

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
