//! When which rank is looked at next: a calendar of windows of time, each a list of ranks.
//!
//! The order within a window does not matter (see [`super`]), so a list is enough, and no heap is on the way of a message. Windows
//! far ahead wait in a heap; empty ones are skipped 64 at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Windows ahead for which there are lists. A power of 2, at least 64.
const AHEAD: u64 = 4096;

/// Ranks by window.
pub struct Calendar {
    /// The window that is being worked on.
    now: u64,
    lists: Vec<Vec<u32>>,
    /// Which lists hold anything.
    taken: Vec<u64>,
    /// Windows beyond those of `lists`.
    far: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Calendar {
    pub fn new() -> Self {
        Self {
            now: 0,
            lists: vec![Vec::new(); AHEAD as usize],
            taken: vec![0; (AHEAD / 64) as usize],
            far: BinaryHeap::new(),
        }
    }

    /// A rank is to be looked at in a window, which is not over.
    #[inline]
    pub fn add(&mut self, window: u64, rank: u32) {
        debug_assert!(window >= self.now, "window {window} is over");
        if window - self.now < AHEAD {
            let at = (window % AHEAD) as usize;
            self.lists[at].push(rank);
            self.taken[at / 64] |= 1 << (at % 64);
        } else {
            self.far.push(Reverse((window, rank)));
        }
    }

    /// The next window in which anything is to be done, and its ranks, which replace what `ranks` held.
    pub fn next(&mut self, ranks: &mut Vec<u32>) -> Option<u64> {
        ranks.clear();
        let near = self.nearest();
        let far = self.far.peek().map(|&Reverse((window, _))| window);
        let window = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (near, far) => near.or(far)?,
        };
        self.now = window;
        if near == Some(window) {
            let at = (window % AHEAD) as usize;
            std::mem::swap(ranks, &mut self.lists[at]);
            self.taken[at / 64] &= !(1 << (at % 64));
        }
        while let Some(&Reverse((at, rank))) = self.far.peek() {
            if at != window {
                break;
            }
            self.far.pop();
            ranks.push(rank);
        }
        Some(window)
    }

    /// The first window with a list that holds anything.
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

#[cfg(test)]
mod tests {
    use super::*;

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
                let far = [3, 70, 4096, 4100, 1_000_000][(state >> 40) as usize % 5];
                let window = now + 1 + (state >> 33) % far;
                calendar.add(window, round);
                expected.push((window, round));
            }
            now = calendar.next(&mut ranks).unwrap();
            got.extend(ranks.iter().map(|&rank| (now, rank)));
        }
        while let Some(window) = calendar.next(&mut ranks) {
            got.extend(ranks.iter().map(|&rank| (window, rank)));
        }
        assert!(got.is_sorted_by_key(|&(window, _)| window));
        expected.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, expected);
    }
}
