//! COLUMN: column sort (Leighton 1985; CDMS94; scheduling-and-communication, section 2.3).
//!
//! The keys form a matrix with one column per rank. Every column is sorted four times; in between, the matrix is
//! transposed, transposed back, shifted by half a column and shifted back. A transposition is a bulk store between
//! every two ranks, in rounds of pairs. Every sorting and every moving phase ends with a barrier.

use crosswind_schema::experiment::parameters::ColumnParameters;

use super::sorting;
use crate::op::{Body, Kind, Op};
use crate::random::Stream;
use crate::rank::{Program, Rank, Reply};

const ADDRESS_BYTES: u32 = 4;
const KEY_BYTES: u32 = 8;
const KEYS: u64 = 6;

#[derive(Clone, Debug)]
pub struct Column {
    parameters: ColumnParameters,
    ranks: u32,
    seed: u64,
}

impl Column {
    /// Creates the program on `ranks` ranks, at least 1, with data drawn from `seed`. Columns that
    /// [`ColumnParameters::check`] rejects may end up unsorted.
    #[must_use]
    pub fn new(parameters: &ColumnParameters, ranks: u32, seed: u64) -> Self {
        Self { parameters: parameters.clone(), ranks, seed }
    }

    /// Returns the number of keys per rank, rounded up so that a column divides evenly into halves and into parts for
    /// the ranks.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        let unit = if ranks % 2 == 0 { ranks } else { 2 * ranks };
        self.parameters.keys_per_rank.get().next_multiple_of(unit)
    }

    fn keys(&self, rank: u32) -> impl Iterator<Item = u64> + Clone {
        let stream = Stream::new(self.seed, u64::from(rank), KEYS);
        (0..self.rows()).map(move |key| stream.bits(key))
    }
}

impl Program for Column {
    type Rank = ColumnRank;

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn rank(&self, rank: u32) -> ColumnRank {
        ColumnRank {
            parameters: self.parameters.clone(),
            ranks: self.ranks,
            me: rank,
            keys: self.keys(rank).collect(),
            arrived: Vec::new(),
            aside: Vec::new(),
            phase: Phase::Sorts { time: 0 },
            then: None,
        }
    }

    /// The concatenated columns must be all keys in order.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        sorting::check(results, (0..self.ranks).flat_map(|rank| self.keys(rank)))
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Sorts for the first to fourth time.
    Sorts {
        time: u32,
    },
    Moves {
        time: u32,
        /// For a transposition, the round, which determines the partner.
        round: u32,
    },
    Over,
}

#[derive(Debug)]
pub struct ColumnRank {
    parameters: ColumnParameters,
    ranks: u32,
    me: u32,
    /// The column, sorted after a sort. Sent keys stay here until the move is over.
    keys: Vec<u64>,
    arrived: Vec<u64>,
    aside: Vec<u64>,
    phase: Phase,
    /// The operation that follows the computation issued last.
    then: Option<Op>,
}

impl ColumnRank {
    fn after(&mut self, operations: u64, then: Op) -> Op {
        self.then = Some(then);
        Op::Compute { ns: self.parameters.operation_s.ns(operations) }
    }

    fn part(&self, time: u32, to: u32) -> Box<[u64]> {
        let ranks = self.ranks as usize;
        let to = to as usize;
        if time == 0 {
            // Read by columns, written by rows: key i goes to column i mod ranks.
            return self.keys.iter().skip(to).step_by(ranks).copied().collect();
        }
        // Read by rows, written by columns: neighbours stay together.
        let part = self.keys.len() / ranks;
        self.keys[to * part..(to + 1) * part].into()
    }

    fn store(&mut self, to: u32, keys: Box<[u64]>) -> Op {
        let bytes = ADDRESS_BYTES + KEY_BYTES * keys.len() as u32;
        let gathered = keys.len() as u64;
        self.after(gathered, Op::Message { to, kind: Kind::Store, bytes: bytes.into(), body: Body::Words(keys) })
    }

    /// Performs one round of a transposition. The pairing works for any number of ranks.
    fn transpose(&mut self, time: u32, round: u32) -> Op {
        let with = (round + self.ranks - self.me) % self.ranks;
        let part = self.part(time, with);
        if with == self.me {
            self.arrived.extend_from_slice(&part);
            return Op::Compute { ns: self.parameters.operation_s.ns(part.len() as u64) };
        }
        self.store(with, part)
    }

    /// Moves the greater half to the next column, or the smaller half back.
    fn shift(&mut self, time: u32) -> Option<Op> {
        let half = self.keys.len() / 2;
        let forth = time == 2;
        let to = if forth { (self.me + 1 < self.ranks).then_some(self.me + 1) } else { self.me.checked_sub(1) };
        if self.me + 1 == self.ranks {
            // While the others are shifted, the greater half of the last column forms a column of its own, which is
            // already sorted.
            if forth {
                self.aside = self.keys.split_off(half);
            } else {
                self.arrived.append(&mut self.aside);
            }
        }
        let to = to?;
        let keys = if forth { self.keys.split_off(half) } else { self.keys.drain(..half).collect() };
        Some(self.store(to, keys.into_boxed_slice()))
    }

    /// Completes a move after all ranks have stored.
    fn settle(&mut self, time: u32) {
        let arrived = std::mem::take(&mut self.arrived);
        match time {
            0 | 1 => self.keys = arrived,
            _ => self.keys.extend_from_slice(&arrived),
        }
    }
}

impl Rank for ColumnRank {
    fn next(&mut self) -> Op {
        if let Some(op) = self.then.take() {
            return op;
        }
        loop {
            match self.phase {
                Phase::Sorts { time } => {
                    if time > 0 {
                        self.settle(time - 1);
                    }
                    self.phase = Phase::Moves { time, round: 0 };
                    // Later sorts find sorted runs. The charged cost stays that of any order, as in the paper.
                    if time == 0 {
                        self.keys.sort_unstable()
                    } else {
                        self.keys.sort()
                    }
                    return self.after(sorting::comparisons(self.keys.len() as u64), Op::Barrier);
                }
                Phase::Moves { time: time @ (0 | 1), round } if round < self.ranks => {
                    self.phase = Phase::Moves { time, round: round + 1 };
                    return self.transpose(time, round);
                }
                Phase::Moves { time: time @ (2 | 3), round: 0 } => {
                    self.phase = Phase::Moves { time, round: 1 };
                    if let Some(op) = self.shift(time) {
                        return op;
                    }
                }
                Phase::Moves { time, .. } => {
                    self.phase = if time == 3 { Phase::Over } else { Phase::Sorts { time: time + 1 } };
                    return Op::StoreSync;
                }
                Phase::Over => {
                    // All keys that came back are greater than those that stayed.
                    self.settle(3);
                    return Op::Done;
                }
            }
        }
    }

    fn handle(&mut self, _from: u32, _kind: Kind, body: Body) -> Reply {
        if let Body::Words(keys) = body {
            self.arrived.extend_from_slice(&keys);
        }
        Reply::default()
    }

    fn result(&self) -> Vec<u64> {
        self.keys.clone()
    }
}
