//! Parameters of the programs: `[workload.parameters]`. Every field has a default; on 64 ranks the defaults show what
//! scheduling-and-communication, section 2.3, says of the program (docs/concepts/programs.md).
//!
//! In all of them `operation_s` is the time of one elementary operation on an undisturbed processor of a CM-5 node.
//! Each field's description states the operation. Data are drawn from the experiment's seed.

mod bsp;
mod limits;
mod nas;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::bsp::{Allreduce, BspParameters, GoalParameters, RecordedParameters, Transfers};
pub use self::limits::{Cost, Part, Whole};
pub use self::nas::{EpParameters, FtParameters, IsParameters, MgParameters, NasParameters, Partners};

use crate::error::{DescriptionError, Problem};

/// CHOLESKY: sparse Cholesky factorisation of a grid's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CholeskyParameters {
    /// Width of the grid, points.
    pub grid_width: Whole<1, 1_000>,
    /// Length of the grid, points.
    pub grid_length: Whole<1, 1_000_000>,
    /// Neighbouring columns of a separator that one rank owns together.
    pub panel_columns: Whole<1, 1_000>,
    /// Matrices of the same structure, one after the other.
    pub matrices: Whole<1, 1_000_000>,
    /// Unfinished matrices of a rank; the more, the less ranks wait for each other.
    pub matrices_at_once: Whole<1, 1_000>,
    /// Sums that a rank has offered to another or requested from it and that are not yet transferred. With 1, the
    /// required answer acts like a window, so that windows make no difference; but a rank that was away has little
    /// work to continue with when it is back.
    pub sums_at_once: Whole<1, 1_000_000>,
    /// Time of a multiplication and addition at an index, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for CholeskyParameters {
    fn default() -> Self {
        Self {
            grid_width: Whole::fixed(12),
            grid_length: Whole::fixed(512),
            panel_columns: Whole::fixed(4),
            matrices: Whole::fixed(100),
            matrices_at_once: Whole::fixed(10),
            sums_at_once: Whole::fixed(1_000_000),
            operation_s: Cost::fixed(2e-6),
        }
    }
}

/// Parameters of COLUMN, a column sort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnParameters {
    /// Keys of 8 bytes at each rank; at least 2 (ranks - 1)^2, and rounded up to an even multiple of the ranks.
    pub keys_per_rank: Whole<1, 10_000_000>,
    /// Time of a comparison in a sort (n log2 n of them for n keys), 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for ColumnParameters {
    fn default() -> Self {
        Self { keys_per_rank: Whole::fixed(133_120), operation_s: Cost::fixed(1e-6) }
    }
}

impl CholeskyParameters {
    /// Most points of a grid: its factor must fit into memory many times over.
    const MOST_POINTS: u64 = 250_000;

    /// Checks constraints between fields.
    ///
    /// # Errors
    /// When the grid is too large.
    pub fn check(&self) -> Result<(), DescriptionError> {
        let (width, length) = (self.grid_width.get(), self.grid_length.get());
        if width * length > Self::MOST_POINTS {
            let most = Self::MOST_POINTS / width;
            let problem = format!(
                "is {length}; with grid_width = {width} it must be at most {most}: grids have at most {} points",
                Self::MOST_POINTS
            );
            return Err(Problem::Value(problem).at("workload.parameters.grid_length".into()));
        }
        Ok(())
    }
}

impl ColumnParameters {
    /// Checks the constraint that depends on the number of ranks.
    ///
    /// # Errors
    /// When there are too few keys for column sort to sort.
    pub fn check(&self, ranks: u32) -> Result<(), DescriptionError> {
        let least = 2 * u64::from(ranks.saturating_sub(1)).pow(2);
        if self.keys_per_rank.get() < least {
            let found = self.keys_per_rank.get();
            let problem = format!(
                "is {found}; on {ranks} ranks it must be at least {least}, twice the square of ranks - 1: column sort does not sort shorter columns"
            );
            return Err(Problem::Value(problem).at("workload.parameters.keys_per_rank".into()));
        }
        Ok(())
    }
}

/// CONNECT: connected components of a random graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectParameters {
    pub vertices_per_rank: Whole<1, 10_000_000>,
    /// Edges of the whole graph over its vertices; half the mean degree.
    pub edges_per_vertex: Whole<0, 1_000>,
    /// Imbalance of edges over ranks: 0: equal; 1: from none to twice the mean.
    pub tilt: Part,
    /// Number of gets between two syncs.
    pub gets_per_sync: Whole<1, 1_000_000_000>,
    /// Number of remaining edges on all ranks together at or below which rank 0 finishes alone; 0: only at the end.
    pub edges_left_to_one: Whole<0, 1_000_000_000>,
    /// Time to examine an edge or a vertex, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for ConnectParameters {
    fn default() -> Self {
        Self {
            vertices_per_rank: Whole::fixed(4_096),
            edges_per_vertex: Whole::fixed(4),
            tilt: Part::fixed(0.5),
            gets_per_sync: Whole::fixed(4_096),
            edges_left_to_one: Whole::fixed(32_768),
            operation_s: Cost::fixed(9.5e-6),
        }
    }
}

/// EM3D: electromagnetic waves on an irregular bipartite graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Em3dParameters {
    /// Nodes of the electric field at each rank, and the same number of the magnetic field.
    pub nodes_per_rank: Whole<1, 1_000_000>,
    /// Nodes of the other field that each node depends on.
    pub edges_per_node: Whole<1, 1_000>,
    /// Fraction of the edges that go to a random rank, 0 to 1.
    pub remote: Part,
    /// Steps in time; two barriers each.
    pub steps: Whole<1, 10_000_000>,
    /// Time of an edge: a multiplication and addition through a pointer, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for Em3dParameters {
    fn default() -> Self {
        Self {
            nodes_per_rank: Whole::fixed(160),
            edges_per_node: Whole::fixed(20),
            remote: Part::fixed(0.06),
            steps: Whole::fixed(250),
            operation_s: Cost::fixed(2e-6),
        }
    }
}

/// Parameters of SAMPLE, a sample sort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SampleParameters {
    /// Keys of 8 bytes at each rank; each is sent as a message.
    pub keys_per_rank: Whole<1, 10_000_000>,
    /// Keys of each rank from which the boundaries between ranks are chosen; the fewer, the less equal the ranks'
    /// shares.
    pub samples_per_rank: Whole<1, 10_000>,
    /// Time of a comparison, in a sort (n log2 n of them for n keys) and in the search for a key's rank, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for SampleParameters {
    fn default() -> Self {
        Self {
            keys_per_rank: Whole::fixed(131_072),
            samples_per_rank: Whole::fixed(32),
            operation_s: Cost::fixed(5e-6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: serde::de::DeserializeOwned>(text: &str) -> String {
        toml::from_str::<T>(text).err().expect("refused").message().to_owned()
    }

    #[test]
    fn nothing_given_means_the_defaults_and_they_survive_a_file() {
        assert_eq!(toml::from_str::<Em3dParameters>("").expect("empty"), Em3dParameters::default());
        let json = serde_json::to_string(&SampleParameters::default()).expect("json");
        assert_eq!(serde_json::from_str::<SampleParameters>(&json).expect("back"), SampleParameters::default());
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        assert_eq!(refusal::<Em3dParameters>("steps = 0"), "is 0; it must be a whole number from 1 to 10000000");
        assert_eq!(refusal::<Em3dParameters>("steps = 1.5"), "is 1.5; it must be a whole number from 1 to 10000000");
        assert_eq!(refusal::<Em3dParameters>("remote = 1.1"), "is 1.1; it must be from 0 to 1");
        assert_eq!(refusal::<SampleParameters>("operation_s = -1e-6"), "is -0.000001 s; it must be from 0 to 1 s");
        assert!(refusal::<ConnectParameters>("tilt = nan").contains("from 0 to 1"));
        assert!(refusal::<ConnectParameters>("vertices = 5").contains("unknown field"));
    }

    #[test]
    fn a_grid_too_large_is_refused_with_the_largest_length() {
        let parameters = CholeskyParameters { grid_length: Whole::fixed(30_000), ..CholeskyParameters::default() };
        let refused = parameters.check().expect_err("too large").to_string();
        assert!(refused.contains("grid_length is 30000; with grid_width = 12 it must be at most 20833"), "{refused}");
        assert!(CholeskyParameters::default().check().is_ok());
    }

    #[test]
    fn columns_too_short_to_sort_are_refused_with_the_least_length() {
        let parameters = ColumnParameters { keys_per_rank: Whole::fixed(7_937), ..ColumnParameters::default() };
        let refused = parameters.check(64).expect_err("too short").to_string();
        assert!(refused.starts_with("workload.parameters.keys_per_rank is 7937; on 64 ranks it must be at least 7938"));
        assert!(ColumnParameters::default().check(64).is_ok());
        assert!(parameters.check(1).is_ok());
    }
}
