//! Random bits: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
//!
//! The state has eight bytes, since a hundred thousand ranks have several streams each. It is the same on every
//! machine.

/// What the state grows by with each draw.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the 64 random bits of a state.
#[must_use]
pub const fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random bits.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of a seed; all seeds are equally good.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the stream of a cause and a rank, which depends on neither's position in a file: removing one leaves
    /// the others unchanged.
    #[must_use]
    pub fn named(seed: u64, cause: &str, rank: u64) -> Self {
        // FNV-1a spreads the cause's letters; the mixes keep neighbouring seeds and ranks apart.
        let cause = cause
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Self(mixed(mixed(mixed(seed) ^ cause).wrapping_add(rank)))
    }

    /// Returns the next 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// Returns a uniform value of at least 0, below 1.
    pub const fn unit(&mut self) -> f64 {
        unit(self.word())
    }

    /// Returns a uniform value in `0..limit`; 0 for 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        below(self.word(), limit)
    }
}

/// Returns 64 random bits as a number of at least 0, below 1.
#[must_use]
pub const fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns 64 random bits as a number in `0..limit`; 0 for 0. The bias is less than 2^-64 of it.
#[must_use]
pub const fn below(bits: u64, limit: u64) -> u64 {
    ((bits as u128 * limit as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_the_published_generator() {
        // The first outputs of SplitMix64 from the state 1234567, as Vigna's reference implementation prints them.
        let mut random = Random(1_234_567);
        let seen = [random.word(), random.word(), random.word()];
        assert_eq!(seen, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn neighbouring_names_have_nothing_in_common() {
        let first = |seed, cause, rank| Random::named(seed, cause, rank).word();
        let seen = [first(1, "cron", 0), first(1, "cron", 1), first(2, "cron", 0), first(1, "crom", 0)];
        for (at, one) in seen.iter().enumerate() {
            for other in &seen[at + 1..] {
                assert!((20..=44).contains(&(one ^ other).count_ones()), "{one:x} {other:x}");
            }
        }
    }
}
