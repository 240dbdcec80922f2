//! The waiting tasks of a node, first in, first out.
//!
//! A root gets millions at once, which are kept as a range. All others are stored one by one.

use std::collections::VecDeque;
use std::ops::Range;

use super::event::TaskId;

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    len: u64,
    /// Tasks before the range: those that came back, and those that arrived before it was added.
    front: VecDeque<TaskId>,
    range: Range<TaskId>,
    back: VecDeque<TaskId>,
}

impl Queue {
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, task: TaskId) {
        self.len += 1;
        if self.range.is_empty() && self.back.is_empty() {
            self.front.push_back(task);
        } else {
            self.back.push_back(task);
        }
    }

    pub fn give(&mut self, first: TaskId, tasks: u64) {
        self.len += tasks;
        if self.range.is_empty() && self.back.is_empty() {
            self.range = first..first + tasks;
        } else if self.back.is_empty() && self.range.end == first {
            self.range.end += tasks;
        } else {
            self.back.extend(first..first + tasks);
        }
    }

    /// Puts a task back at the front.
    pub fn put_back(&mut self, task: TaskId) {
        self.len += 1;
        self.front.push_front(task);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<TaskId> {
        self.len = self.len.checked_sub(1)?;
        if let Some(task) = self.front.pop_front() {
            return Some(task);
        }
        self.range.next().or_else(|| self.back.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_goes_first_and_the_rest_in_the_order_of_coming() {
        let mut queue = Queue::default();
        queue.push(7);
        queue.give(10, 2);
        queue.give(12, 1);
        queue.push(3);
        queue.give(20, 1);
        queue.put_back(1);
        assert_eq!(queue.len(), 7);
        let order: Vec<TaskId> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [1, 7, 10, 11, 12, 3, 20]);
        assert!(queue.is_empty());
    }
}
