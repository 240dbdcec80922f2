//! Timers: at most one time per slot, and the earliest of all, found by a tournament.
//!
//! The slots are few and all known from the start. Setting a timer costs one match per level; nothing is pushed or
//! popped. Ties go to the lower slot.

use crate::time::{NEVER, Nanos};

pub(super) struct Slots {
    times: Vec<Nanos>,
    /// Winner of each match. The final is at index 1, and match i is played by the winners at 2i and 2i + 1.
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

    /// Sets a slot's time, replacing the previous one.
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

    /// Returns the earliest time and its slot. [`NEVER`] means that no timer is set.
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
