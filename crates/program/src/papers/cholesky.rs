//! CHOLESKY: factorisation of a sequence of sparse symmetric matrices (scheduling-and-communication, section 2.3).
//!
//! The matrices are those of a grid, ordered by nested dissection. Parts belong to single ranks; separators belong,
//! panel by panel, to the ranks of their two sides. The method is *fan-in* (Ashcraft 1993; the paper does not name its
//! method): a rank sums what its columns subtract from a column of another rank, then announces the sum with an integer
//! store. The owner fetches it with a bulk get, and needs it when the column's turn comes. Ranks thus synchronize
//! often, but only in pairs, and those that own much of the upper separators have more work. When a matrix is blocked,
//! the next one is started. Several are in progress at once, which gives the slack that a single matrix of the paper's
//! size would have.

mod dissection;
mod matrix;
mod rank;
mod structure;

use std::sync::Arc;

use crosswind_schema::experiment::parameters::CholeskyParameters;

pub use self::rank::CholeskyRank;
use self::structure::Structure;
use crate::rank::Program;

/// Allowed difference from the sequential computation, relative to the value or to 1: sums are added in order of
/// arrival.
const TOLERANCE: f64 = 1e-10;

#[derive(Clone, Debug)]
pub struct Cholesky {
    structure: Arc<Structure>,
    parameters: CholeskyParameters,
}

impl Cholesky {
    /// Creates the program on `ranks` ranks, at least 1, with data drawn from `seed`.
    #[must_use]
    pub fn new(parameters: &CholeskyParameters, ranks: u32, seed: u64) -> Self {
        Self { structure: Arc::new(Structure::new(parameters, ranks, seed)), parameters: parameters.clone() }
    }
}

impl Program for Cholesky {
    type Rank = CholeskyRank;

    fn ranks(&self) -> u32 {
        self.structure.own.len() as u32
    }

    fn rank(&self, rank: u32) -> CholeskyRank {
        CholeskyRank::new(Arc::clone(&self.structure), &self.parameters, rank)
    }

    /// Each rank's columns of the last factor must match a sequential factorisation, up to rounding.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let factor = self.structure.plain(self.parameters.matrices.get() - 1);
        if results.len() != self.structure.own.len() {
            return Err(format!("{} results of {} ranks", results.len(), self.structure.own.len()));
        }
        for (rank, (found, own)) in results.iter().zip(&self.structure.own).enumerate() {
            let wanted: usize = own.iter().map(|column| factor[*column as usize].len()).sum();
            if found.len() != wanted {
                return Err(format!("rank {rank} holds {} values instead of {wanted}", found.len()));
            }
            let values = own.iter().flat_map(|column| factor[*column as usize].iter().map(move |v| (column, v)));
            for (found, (column, wanted)) in found.iter().map(|bits| f64::from_bits(*bits)).zip(values) {
                // NaN fails this comparison, too.
                let is_right = (found - wanted).abs() <= TOLERANCE * wanted.abs().max(1.0);
                if !is_right {
                    return Err(format!("a value of column {column}, of rank {rank}, is {found} instead of {wanted}"));
                }
            }
        }
        Ok(())
    }
}
