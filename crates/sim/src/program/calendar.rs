//! Calendar of the ranks to visit: one list of ranks per window of time.
//!
//! The order within a window does not matter (see [`super`]), so lists suffice and messages need no heap operation.
//! Windows far ahead wait in a heap. Empty windows are skipped 64 at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Number of windows ahead that have lists. A power of 2, at least 64.
const AHEAD: u64 = 1024;

pub struct Calendar {
    now: u64,
    lists: Vec<Vec<u32>>,
    /// Used lists for reuse, the most recent on top because its memory is still in a near cache.
    spare: Vec<Vec<u32>>,
    taken: Vec<u64>,
    /// Windows beyond those of `lists`.
    far: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Calendar {
    pub fn new() -> Self {
        Self {
            now: 0,
            lists: vec![Vec::new(); AHEAD as usize],
            spare: Vec::new(),
            taken: vec![0; (AHEAD / 64) as usize],
            far: BinaryHeap::new(),
        }
    }

    /// Schedules a visit to a rank in a window that is not over.
    #[inline]
    pub fn add(&mut self, window: u64, rank: u32) {
        debug_assert!(window >= self.now, "window {window} is over");
        if window - self.now < AHEAD {
            let at = (window % AHEAD) as usize;
            let list = &mut self.lists[at];
            if list.is_empty() {
                self.taken[at / 64] |= 1 << (at % 64);
                *list = self.spare.pop().unwrap_or_default();
            }
            list.push(rank);
        } else {
            self.far.push(Reverse((window, rank)));
        }
    }

    /// Returns the first window with visits. `None` if no visits are left.
    pub fn first(&self) -> Option<u64> {
        let far = self.far.peek().map(|&Reverse((window, _))| window);
        match (self.nearest(), far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    /// Puts the ranks to visit in a window into `ranks`, replacing what it held. No earlier window has visits.
    pub fn take(&mut self, window: u64, ranks: &mut Vec<u32>) {
        debug_assert!(self.first().is_none_or(|first| window <= first), "window {window} leaves out visits");
        ranks.clear();
        let is_near = window - self.now < AHEAD;
        self.now = window;
        let at = (window % AHEAD) as usize;
        if is_near && !self.lists[at].is_empty() {
            self.spare.push(std::mem::replace(ranks, std::mem::take(&mut self.lists[at])));
            self.taken[at / 64] &= !(1 << (at % 64));
        }
        while let Some(&Reverse((at, rank))) = self.far.peek() {
            if at != window {
                break;
            }
            self.far.pop();
            ranks.push(rank);
        }
    }

    /// Returns the first window whose list is not empty.
    fn nearest(&self) -> Option<u64> {
        let start = self.now % AHEAD;
        let words = self.taken.len();
        for step in 0..=words {
            let word = ((start / 64) as usize + step) % words;
            let mut bits = self.taken[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let at = word as u64 * 64 + u64::from(bits.trailing_zeros());
                return Some(self.now + (at + AHEAD - start) % AHEAD);
            }
        }
        None
    }
}

/// Sorts many ranks with one bit per rank, which is faster than a comparison sort.
pub struct Order {
    first: u32,
    bits: Vec<u64>,
}

impl Order {
    pub fn of(ranks: Range<u32>) -> Self {
        Self { first: ranks.start, bits: vec![0; ranks.len().div_ceil(64)] }
    }

    /// Sorts the ranks and removes duplicates.
    pub fn sort(&mut self, ranks: &mut Vec<u32>) {
        for &rank in ranks.iter() {
            let at = rank - self.first;
            self.bits[at as usize / 64] |= 1 << (at % 64);
        }
        ranks.clear();
        for (word, first) in self.bits.iter_mut().zip((self.first..).step_by(64)) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                ranks.push(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_put_into_their_order_and_each_comes_once() {
        let mut order = Order::of(77..1077);
        for seed in 1..50u64 {
            let mut ranks: Vec<u32> = (0..300).map(|at| 77 + (at * seed * 7919 % 1000) as u32).collect();
            let mut expected = ranks.clone();
            expected.sort_unstable();
            expected.dedup();
            order.sort(&mut ranks);
            assert_eq!(ranks, expected);
        }
    }

    #[test]
    fn a_window_without_visits_may_be_taken_and_leaves_out_none() {
        let (mut calendar, mut ranks) = (Calendar::new(), Vec::new());
        for window in [3, AHEAD + 3, 5 * AHEAD] {
            calendar.add(window, window as u32);
        }
        for (window, expected) in [(0, 0), (2, 0), (3, 1), (4, 0), (AHEAD + 3, 1), (3 * AHEAD, 0), (5 * AHEAD, 1)] {
            calendar.take(window, &mut ranks);
            assert_eq!(ranks.len(), expected, "{window}");
        }
        assert_eq!(calendar.first(), None);
    }

    #[test]
    fn windows_come_in_order_however_far_apart_and_in_whatever_order_they_were_added() {
        let mut calendar = Calendar::new();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut state = 1u64;
        let mut got = Vec::new();
        let mut ranks = Vec::new();
        let mut now = 0;
        for round in 0..3000u32 {
            for _ in 0..3 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let far = [3, 70, AHEAD, AHEAD + 4, 1_000_000][(state >> 40) as usize % 5];
                let window = now + 1 + (state >> 33) % far;
                calendar.add(window, round);
                expected.push((window, round));
            }
            now = calendar.first().unwrap();
            calendar.take(now, &mut ranks);
            got.extend(ranks.iter().map(|&rank| (now, rank)));
        }
        while let Some(window) = calendar.first() {
            calendar.take(window, &mut ranks);
            got.extend(ranks.iter().map(|&rank| (window, rank)));
        }
        assert!(got.is_sorted_by_key(|&(window, _)| window));
        expected.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, expected);
    }
}
