//! Deterministic random numbers.

/// A stream of random bits, with the draws that schedules need.
#[derive(Clone, Debug)]
pub struct Random(crosswind_schema::random::Random);

impl Random {
    /// Creates a generator. The numbers of one `stream` do not depend on how many are drawn from another.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = crosswind_schema::random::Random::seeded(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.word();
        Self(random)
    }

    pub fn word(&mut self) -> u64 {
        self.0.word()
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
