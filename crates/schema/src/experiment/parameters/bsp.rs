//! Parameters of the programs that are no program of the paper: supersteps of any shape, and a user's own schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cost, Whole};

/// How all ranks come to the sum of what each has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allreduce {
    /// They do not.
    None,
    /// With a partner at distance 1, 2, 4, ...
    #[default]
    RecursiveDoubling,
    /// Piece by piece around a ring, and once more.
    Ring,
}

/// BSP: supersteps of computation, exchange with neighbours, reduction, barrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BspParameters {
    /// Supersteps.
    pub iterations: Whole<1, 1_000_000_000>,
    /// Computation of each rank in each, on an undisturbed processor, 0 to 1 s.
    pub work_s: Cost,
    /// Dimensions of the grid of ranks, whose neighbours exchange; 0: no exchange.
    pub dimensions: Whole<0, 3>,
    /// Bytes to each neighbour.
    pub halo_bytes: Whole<1, 1_000_000_000>,
    /// How the sum over all ranks is found.
    pub allreduce: Allreduce,
    /// Bytes of it.
    pub allreduce_bytes: Whole<1, 1_000_000_000>,
    /// Whether a barrier ends each superstep.
    pub barrier: bool,
}

impl Default for BspParameters {
    fn default() -> Self {
        Self {
            iterations: Whole::fixed(100),
            work_s: Cost::fixed(1e-3),
            dimensions: Whole::fixed(2),
            halo_bytes: Whole::fixed(1_024),
            allreduce: Allreduce::default(),
            allreduce_bytes: Whole::fixed(8),
            barrier: false,
        }
    }
}

/// GOAL: a schedule in the format of LogGOPSim (Hoefler, Schneider, Lumsdaine, 2010).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalParameters {
    /// Path of the file, relative to the experiment's.
    #[schemars(length(min = 1))]
    pub file: String,
}
