//! Draws the messages of a stream, for the simulator and for live runs alike. Lengths and gaps are drawn nowhere
//! else.
//!
//! Operation k of a stream has the same lengths and the same gap in T1, T2 and T3, on every machine, whatever else
//! runs.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::stream::{MOST_BYTES, Stream};
use crate::experiment::draw::one;
use crate::experiment::workload::Amount;
use crate::units::{Bytes, Quantity, Seconds};

/// Number of random sequences of each stream.
const DRAWN: u64 = 3;

/// Draws the lengths and gaps of a stream's messages in order.
///
/// At the start of each operation, call [`MessageDraws::bytes`] once per receiver in the order of the file, then
/// [`MessageDraws::answer_bytes`] once per receiver, and [`MessageDraws::gap_ns`] once.
#[derive(Clone, Debug)]
pub struct MessageDraws {
    bytes: Drawn<Bytes>,
    answer: Option<Drawn<Bytes>>,
    gap: Option<Drawn<Seconds>>,
}

impl MessageDraws {
    /// Creates the draws of a stream at an index of the workload's list, in a run with a seed.
    #[must_use]
    pub fn new(stream: &Stream, place: usize, seed: u64) -> Self {
        let from = |which: u64| place as u64 * DRAWN + which;
        Self {
            bytes: Drawn::new(stream.message_bytes.clone(), seed, from(0)),
            answer: stream.answer_bytes.clone().map(|bytes| Drawn::new(bytes, seed, from(1))),
            gap: stream.gap_s.clone().map(|gap| Drawn::new(gap, seed, from(2))),
        }
    }

    /// Draws the length of the next message, bytes, at least 1.
    pub fn bytes(&mut self) -> u64 {
        whole_bytes(self.bytes.next())
    }

    /// Draws the length of the next answer, bytes, at least 1; `None` if receivers do not answer.
    pub fn answer_bytes(&mut self) -> Option<u64> {
        self.answer.as_mut().map(|answer| whole_bytes(answer.next()))
    }

    /// Draws the next gap, ns; 0 if the stream has no gaps.
    pub fn gap_ns(&mut self) -> u64 {
        self.gap.as_mut().map_or(0, |gap| (gap.next() * 1e9).round() as u64)
    }
}

fn whole_bytes(drawn: f64) -> u64 {
    drawn.round().clamp(1.0, MOST_BYTES) as u64
}

#[derive(Clone, Debug)]
struct Drawn<Q> {
    amount: Amount<Q>,
    random: ChaCha8Rng,
}

impl<Q: Quantity> Drawn<Q> {
    fn new(amount: Amount<Q>, seed: u64, stream: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Self { amount, random }
    }

    fn next(&mut self) -> f64 {
        match &self.amount {
            Amount::Fixed(value) => value.get(),
            Amount::Drawn(distribution) => one(distribution, &mut || self.random.next_u64()),
        }
    }
}
