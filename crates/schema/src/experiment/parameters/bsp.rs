//! Parameters of programs that are not in the paper: supersteps of any shape, a user's own schedule, a recording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cost, Whole};

/// Algorithm by which all ranks compute the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allreduce {
    /// No sum after an iteration.
    None,
    /// Exchange with a partner at distance 1, 2, 4, ...
    #[default]
    RecursiveDoubling,
    /// Piece by piece around a ring, twice.
    Ring,
}

/// BSP: supersteps of computation, exchange with neighbours, reduction, barrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BspParameters {
    /// Number of supersteps to run.
    pub iterations: Whole<1, 1_000_000_000>,
    /// Computation of each rank in each superstep, on an undisturbed processor, 0 to 1 s.
    pub work_s: Cost,
    /// Dimensions of the grid of ranks whose neighbours exchange data; 0: no exchange.
    pub dimensions: Whole<0, 3>,
    /// Bytes sent to each neighbour in a superstep.
    pub halo_bytes: Whole<1, 1_000_000_000>,
    /// Algorithm for the sum over all ranks.
    pub allreduce: Allreduce,
    /// Size of the summed vector, bytes.
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

/// How long the transfers of a recorded program take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transfers {
    /// As long as when the program was recorded; they need no processor.
    #[default]
    Recorded,
    /// As long as on the experiment's `network`.
    Network,
}

/// RECORDED: a program that `crosswind record` has recorded, run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedParameters {
    /// Path of the recording, or of a directory with one file per rank, relative to the experiment's file.
    #[schemars(length(min = 1))]
    pub file: String,
    /// How long transfers take. With `recorded`, `network` and `policy` must be absent.
    #[serde(default)]
    pub transfers: Transfers,
}

/// GOAL: a schedule in the format of LogGOPSim (Hoefler, Schneider, Lumsdaine, 2010).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalParameters {
    /// Path of the file, relative to the experiment's.
    #[schemars(length(min = 1))]
    pub file: String,
    /// Messages of more bytes are rendezvous: their sends end when their receives have matched them. Absent: all are eager.
    /// LogGOPSim's S, 65535 by default there. Simulated only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendezvous_above_bytes: Option<u64>,
}
