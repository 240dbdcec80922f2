//! Deterministic random numbers.

/// SplitMix64 (Steele, Lea and Flood 2014): one word of state, and all seeds are equally good.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. The numbers of one `stream` do not depend on how many are drawn from another.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.word();
        random
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number in `low..high`, or `low` if the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { low + self.word() % (high - low) }
    }

    /// Returns `true` with a probability of `thousandths` / 1000.
    pub fn chance(&mut self, thousandths: u64) -> bool {
        self.between(0, 1000) < thousandths
    }
}
