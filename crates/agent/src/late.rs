//! Delay queue for input from an emulated link with latency, which takes effect only when the latency is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Items with their due times. Items due at the same time are taken in the order of insertion.
#[derive(Debug)]
pub struct Late<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<T> {
    due: u64,
    number: u64,
    thing: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl<T> Default for Late<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }
}

impl<T> Late<T> {
    /// Inserts an item that is due at `due`.
    pub fn put(&mut self, due: u64, thing: T) {
        self.heap.push(Reverse(Entry { due, number: self.next, thing }));
        self.next += 1;
    }

    /// Returns when the earliest item is due. `None` if the queue is empty.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.due)
    }

    /// Removes the earliest item if it is due by `now`. Returns it with its due time.
    pub fn take(&mut self, now: u64) -> Option<(u64, T)> {
        self.due().filter(|due| *due <= now)?;
        self.heap.pop().map(|Reverse(entry)| (entry.due, entry.thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_the_order_of_time_then_of_coming() {
        let mut late = Late::default();
        for (due, name) in [(5, "a"), (3, "b"), (5, "c"), (9, "d")] {
            late.put(due, name);
        }
        let taken: Vec<_> = std::iter::from_fn(|| late.take(5)).collect();
        assert_eq!(taken, [(3, "b"), (5, "a"), (5, "c")]);
        assert_eq!(late.due(), Some(9));
    }
}
