//! Random data by numbered draws, so that any rank can reproduce any draw and need not store those of others.
//!
//! SplitMix64 with random access: draw n of a stream is the same at every rank, in any order.

pub use crosswind_schema::random::{GOLDEN, mixed};
use crosswind_schema::random::{below, unit};

/// A stream of numbered draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// Creates the stream of a seed, an owner and a purpose.
    #[must_use]
    pub const fn new(seed: u64, of: u64, purpose: u64) -> Self {
        let seeded = mixed(seed.wrapping_add(GOLDEN));
        let owned = mixed(seeded ^ of.wrapping_mul(GOLDEN).wrapping_add(1));
        Self(mixed(owned ^ purpose.wrapping_mul(GOLDEN).wrapping_add(2)))
    }

    /// Returns draw `number`: 64 random bits.
    #[must_use]
    pub const fn bits(self, number: u64) -> u64 {
        mixed(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Returns draw `number`: at least 0, below 1.
    #[must_use]
    pub const fn unit(self, number: u64) -> f64 {
        unit(self.bits(number))
    }

    /// Returns draw `number`: below `limit`, which must not be 0.
    #[must_use]
    pub const fn below(self, number: u64, limit: u64) -> u64 {
        below(self.bits(number), limit)
    }

    pub fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64, last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_streams_differ() {
        let stream = Stream::new(7, 3, 1);
        let mean: f64 = (0..10_000).map(|n| stream.unit(n)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!((0..1_000).all(|n| stream.below(n, 10) < 10));
        assert_ne!(stream.bits(0), Stream::new(7, 1, 3).bits(0));
        assert_ne!(stream.bits(0), Stream::new(8, 3, 1).bits(0));
    }

    #[test]
    fn a_shuffle_keeps_all_and_moves_most() {
        let mut items: Vec<u32> = (0..100).collect();
        Stream::new(1, 2, 3).shuffle(&mut items);
        assert!(items.iter().enumerate().filter(|(at, item)| *at as u32 == **item).count() < 10);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }
}
