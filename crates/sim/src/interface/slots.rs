//! What happens next: one time for each thing that can happen, and the least of them, by a tournament.
//!
//! There are few things, all known from the start, and every one of them has at most one time. To set one costs a match per
//! round; nothing is ever pushed or popped. Ties: the lower number.

use crate::time::{NEVER, Nanos};

pub(super) struct Slots {
    times: Vec<Nanos>,
    /// Winner of each match; the last is at 1, and the players of match i are the winners of 2i and 2i + 1.
    winners: Vec<u32>,
}

impl Slots {
    pub fn new(slots: usize) -> Self {
        let width = slots.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * width];
        for at in (1..2 * width).rev() {
            winners[at] = if at >= width { (at - width) as u32 } else { winners[2 * at] };
        }
        Self { times: vec![NEVER; width], winners }
    }

    /// It happens then, and not when it was to happen before.
    #[inline]
    pub fn set(&mut self, slot: usize, time: Nanos) {
        self.times[slot] = time;
        let mut at = (slot + self.times.len()) / 2;
        while at > 0 {
            let (left, right) = (self.winners[2 * at], self.winners[2 * at + 1]);
            let first = if self.times[right as usize] < self.times[left as usize] { right } else { left };
            self.winners[at] = first;
            at /= 2;
        }
    }

    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set(slot, NEVER);
    }

    #[inline]
    pub fn is_set(&self, slot: usize) -> bool {
        self.times[slot] < NEVER
    }

    /// When what happens next happens, and what it is; [`NEVER`]: nothing does.
    #[inline]
    pub fn first(&self) -> (Nanos, usize) {
        let slot = self.winners[1] as usize;
        (self.times[slot], slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_comes_first_and_of_equal_ones_the_lowest_number() {
        for count in 1..70usize {
            let mut slots = Slots::new(count);
            assert_eq!(slots.first().0, NEVER);
            let mut times = vec![NEVER; count];
            let mut state = count as u64;
            for _ in 0..500 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (slot, time) = ((state >> 33) as usize % count, (state >> 40) % 9);
                times[slot] = if time == 8 { NEVER } else { time };
                slots.set(slot, times[slot]);
                let least = *times.iter().min().unwrap();
                assert_eq!(slots.first().0, least);
                if least < NEVER {
                    assert_eq!(slots.first().1, times.iter().position(|&time| time == least).unwrap());
                }
                assert_eq!(slots.is_set(slot), time != 8);
            }
        }
    }
}
