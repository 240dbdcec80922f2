//! BSP: repeated computing, halo exchange with the neighbours on a torus, and allreduce.
//!
//! Its communication resembles that of most codes. Real data move: each rank mixes its value with its neighbours' and
//! the sum over all ranks, in integers. One lost, doubled or misplaced message therefore makes all later values wrong.
//!
//! | question | module |
//! |---|---|
//! | which ranks are neighbours? | `grid` |
//! | how is the sum over all ranks computed? | [`allreduce`] |
//! | what does a rank do next? | `rank` |

pub mod allreduce;
mod grid;
mod rank;

pub use allreduce::{Algorithm, Allreduce};
pub use grid::Grid;
pub use rank::BspRank;

use crosswind_schema::experiment::parameters::{Allreduce as Sum, BspParameters};

use crate::random::mixed;
use crate::rank::Program;

#[derive(Clone, Debug, PartialEq)]
pub struct Bsp {
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// Dimensions of the torus, 1 to 3.
    pub dimensions: u32,
    pub iterations: u32,
    /// Computing in each iteration, ns.
    pub work_ns: u64,
    /// Bytes to each neighbour. 0 means no halo exchange.
    pub halo_bytes: u32,
    /// Bytes of the vector that is summed. 0 means no allreduce.
    pub allreduce_bytes: u32,
    pub algorithm: Algorithm,
    /// Whether each iteration ends with a barrier.
    pub barrier: bool,
}

impl Default for Bsp {
    fn default() -> Self {
        Self {
            ranks: 64,
            dimensions: 3,
            iterations: 100,
            work_ns: 1_000_000,
            halo_bytes: 1024,
            allreduce_bytes: 8,
            algorithm: Algorithm::RecursiveDoubling,
            barrier: false,
        }
    }
}

impl Bsp {
    /// Builds the program that an experiment describes.
    #[must_use]
    pub fn of(parameters: &BspParameters, ranks: u32) -> Self {
        let dimensions = parameters.dimensions.get() as u32;
        let sums = parameters.allreduce != Sum::None;
        Self {
            ranks,
            dimensions,
            iterations: parameters.iterations.get() as u32,
            work_ns: (parameters.work_s.get() * 1e9).round() as u64,
            halo_bytes: if dimensions > 0 { parameters.halo_bytes.get() as u32 } else { 0 },
            allreduce_bytes: if sums { parameters.allreduce_bytes.get() as u32 } else { 0 },
            algorithm: if parameters.allreduce == Sum::Ring { Algorithm::Ring } else { Algorithm::RecursiveDoubling },
            barrier: parameters.barrier,
        }
    }

    /// Returns the number of words of the vector that is summed.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.allreduce_bytes.div_ceil(8) as usize
    }

    /// Returns a rank's initial value.
    fn first(rank: u32) -> u64 {
        mixed(u64::from(rank) + 1)
    }

    /// Returns the value mixed with the neighbours' values, in the order of directions.
    fn with_halo(value: u64, halo: &[u64]) -> u64 {
        halo.iter().fold(value, |value, &other| Self::with_one(value, other))
    }

    const fn with_one(value: u64, other: u64) -> u64 {
        mixed(value ^ other.rotate_left(17))
    }

    /// Returns a rank's contribution to the sum.
    fn given(&self, value: u64) -> impl ExactSizeIterator<Item = u64> + use<> {
        (0..self.words() as u32).map(move |at| value.wrapping_mul(2 * u64::from(at) + 1))
    }

    /// Returns the value mixed with the sum.
    fn with_sum(value: u64, sum: &[u64]) -> u64 {
        sum.iter().fold(value, |value, &word| mixed(value.wrapping_add(word)))
    }

    /// Returns all ranks' final values, computed sequentially.
    #[must_use]
    pub fn expected(&self) -> Vec<u64> {
        let grid = Grid::new(self.ranks, self.dimensions);
        let directions = grid.neighbours();
        let neighbours: Vec<u32> = (0..self.ranks)
            .flat_map(|rank| (0..directions).map(move |direction| grid.neighbour(rank, direction)))
            .collect();
        let mut values: Vec<u64> = (0..self.ranks).map(Self::first).collect();
        for _ in 0..self.iterations {
            if self.halo_bytes > 0 {
                let halos = neighbours.chunks(directions as usize);
                let mix = |(&value, halo): (&u64, &[u32])| {
                    halo.iter().fold(value, |value, &other| Self::with_one(value, values[other as usize]))
                };
                values = values.iter().zip(halos).map(mix).collect();
            }
            if self.allreduce_bytes > 0 {
                let mut sum = vec![0u64; self.words()];
                for &value in &values {
                    for (sum, word) in sum.iter_mut().zip(self.given(value)) {
                        *sum = sum.wrapping_add(word);
                    }
                }
                values.iter_mut().for_each(|value| *value = Self::with_sum(*value, &sum));
            }
        }
        values
    }

    /// Returns the number of messages that all ranks together send over the network per iteration.
    #[must_use]
    pub fn messages_per_iteration(&self) -> u64 {
        let grid = Grid::new(self.ranks, self.dimensions);
        let halo = if self.halo_bytes > 0 {
            (0..grid.neighbours()).filter(|&d| grid.sides[(d / 2) as usize] > 1).count() as u64 * u64::from(self.ranks)
        } else {
            0
        };
        let power = u64::from(self.ranks.ilog2());
        let beyond = u64::from(self.ranks) - (1 << power);
        let sum = match self.algorithm {
            _ if self.allreduce_bytes == 0 => 0,
            Algorithm::RecursiveDoubling => power * (1 << power) + 2 * beyond,
            Algorithm::Ring => 2 * (u64::from(self.ranks) - 1) * u64::from(self.ranks),
        };
        halo + sum
    }
}

impl Program for Bsp {
    type Rank = BspRank;

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn rank(&self, rank: u32) -> BspRank {
        BspRank::new(self, rank)
    }

    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        for (rank, (expected, result)) in self.expected().iter().zip(results).enumerate() {
            if *result != [*expected] {
                return Err(format!("rank {rank} ends with {result:016x?}; it should be [{expected:016x}]"));
            }
        }
        Ok(())
    }
}
