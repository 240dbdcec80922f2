//! SAMPLE: sample sort (Blelloch, Leiserson, Maggs 1991; CDMS94; scheduling-and-communication, section 2.3).
//!
//! Rank 0 chooses the borders between the ranks' shares from samples of all ranks, and the borders are passed down a
//! tree. Every rank then sends every key in a packet of its own, as a one-way active message, to the rank whose share
//! it falls into, which is practically random. Each rank sorts what it received. The program thus has few barriers and
//! long phases, and shares vary with the sampling.

use crosswind_schema::experiment::parameters::SampleParameters;

use super::sorting;
use crate::op::{Body, Kind, Op};
use crate::random::Stream;
use crate::rank::{Program, Rank, Reply};

const ADDRESS_BYTES: u32 = 4;
const KEY_BYTES: u32 = 8;
const KEYS: u64 = 1;
const SAMPLES: u64 = 2;

#[derive(Clone, Debug)]
pub struct Sample {
    parameters: SampleParameters,
    ranks: u32,
    seed: u64,
}

impl Sample {
    /// Creates the program on `ranks` ranks, at least 1, with data drawn from `seed`.
    #[must_use]
    pub fn new(parameters: &SampleParameters, ranks: u32, seed: u64) -> Self {
        Self { parameters: parameters.clone(), ranks, seed }
    }
}

impl Program for Sample {
    type Rank = SampleRank;

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn rank(&self, rank: u32) -> SampleRank {
        SampleRank {
            parameters: self.parameters.clone(),
            ranks: self.ranks,
            me: rank,
            keys: Stream::new(self.seed, u64::from(rank), KEYS),
            picks: Stream::new(self.seed, u64::from(rank), SAMPLES),
            samples: Vec::new(),
            borders: Box::default(),
            share: Vec::new(),
            phase: Phase::Samples,
            then: None,
        }
    }

    /// The concatenated shares must be all keys in order.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let keys = (0..self.ranks).flat_map(|rank| {
            let stream = Stream::new(self.seed, u64::from(rank), KEYS);
            (0..self.parameters.keys_per_rank.get()).map(move |key| stream.bits(key))
        });
        sorting::check(results, keys)
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Samples,
    Gathered,
    Borders,
    /// Passes the borders to child 1 or 2 in the tree.
    Hands {
        child: u32,
    },
    /// Sends the key with this number.
    Sends {
        key: u64,
    },
    Sorts,
    Over,
}

#[derive(Debug)]
pub struct SampleRank {
    parameters: SampleParameters,
    ranks: u32,
    me: u32,
    keys: Stream,
    picks: Stream,
    /// Samples of all ranks, at rank 0.
    samples: Vec<u64>,
    borders: Box<[u64]>,
    share: Vec<u64>,
    phase: Phase,
    /// The operation that follows the computation issued last.
    then: Option<Op>,
}

impl SampleRank {
    fn after(&mut self, operations: u64, then: Op) -> Op {
        self.then = Some(then);
        Op::Compute { ns: self.parameters.operation_s.ns(operations) }
    }

    fn border_bytes(&self) -> u32 {
        ADDRESS_BYTES + KEY_BYTES * (self.ranks - 1)
    }
}

impl Rank for SampleRank {
    fn next(&mut self) -> Op {
        if let Some(op) = self.then.take() {
            return op;
        }
        loop {
            match self.phase {
                Phase::Samples => {
                    self.phase = Phase::Gathered;
                    let (mine, of) = (self.parameters.samples_per_rank.get(), self.parameters.keys_per_rank.get());
                    let samples: Box<[u64]> = (0..mine).map(|n| self.keys.bits(self.picks.below(n, of))).collect();
                    if self.me == 0 {
                        self.samples.extend_from_slice(&samples);
                        return Op::Compute { ns: self.parameters.operation_s.ns(mine) };
                    }
                    let bytes = ADDRESS_BYTES + KEY_BYTES * samples.len() as u32;
                    let store =
                        Op::Message { to: 0, kind: Kind::Store, bytes: bytes.into(), body: Body::Words(samples) };
                    return self.after(mine, store);
                }
                Phase::Gathered => {
                    self.phase = Phase::Borders;
                    return Op::StoreSync;
                }
                Phase::Borders => {
                    self.phase = Phase::Hands { child: 1 };
                    if self.me > 0 {
                        return Op::WaitStored { bytes: u64::from(self.border_bytes()) };
                    }
                    let mut samples = std::mem::take(&mut self.samples);
                    samples.sort_unstable();
                    let each = samples.len() / self.ranks as usize;
                    self.borders = (1..self.ranks as usize).map(|rank| samples[rank * each]).collect();
                    let ns = self.parameters.operation_s.ns(sorting::comparisons(samples.len() as u64));
                    return Op::Compute { ns };
                }
                Phase::Hands { child: 3.. } => self.phase = Phase::Sends { key: 0 },
                Phase::Hands { child } => {
                    self.phase = Phase::Hands { child: child + 1 };
                    let to = 2 * u64::from(self.me) + u64::from(child);
                    if to < u64::from(self.ranks) {
                        let body = Body::Words(self.borders.clone());
                        return Op::Message {
                            to: to as u32,
                            kind: Kind::Store,
                            bytes: self.border_bytes().into(),
                            body,
                        };
                    }
                }
                Phase::Sends { key } if key == self.parameters.keys_per_rank.get() => {
                    self.phase = Phase::Sorts;
                    return Op::StoreSync;
                }
                Phase::Sends { key: number } => {
                    self.phase = Phase::Sends { key: number + 1 };
                    let key = self.keys.bits(number);
                    let to = self.borders.partition_point(|border| *border <= key) as u32;
                    let compared = sorting::search(u64::from(self.ranks) - 1);
                    if to == self.me {
                        self.share.push(key);
                        return Op::Compute { ns: self.parameters.operation_s.ns(compared) };
                    }
                    let post =
                        Op::Message { to, kind: Kind::Post, bytes: KEY_BYTES.into(), body: Body::Pair([key, 0]) };
                    return self.after(compared, post);
                }
                Phase::Sorts => {
                    self.phase = Phase::Over;
                    self.share.sort_unstable();
                    return self.after(sorting::comparisons(self.share.len() as u64), Op::Barrier);
                }
                Phase::Over => return Op::Done,
            }
        }
    }

    fn handle(&mut self, _from: u32, kind: Kind, body: Body) -> Reply {
        match (kind, body) {
            (Kind::Post, Body::Pair([key, _])) => self.share.push(key),
            (Kind::Store, Body::Words(samples)) if self.me == 0 => self.samples.extend_from_slice(&samples),
            (Kind::Store, Body::Words(borders)) => self.borders = borders,
            _ => {}
        }
        Reply::default()
    }

    fn result(&self) -> Vec<u64> {
        self.share.clone()
    }
}
