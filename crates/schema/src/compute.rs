//! What computes: kernels beside the traffic of a measurement, agents for the work of a task, ranks for the time of a
//! computation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kernel of the probe that needs nothing of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers.
    Burn,
    /// Streams through memory.
    Triad,
}

impl Kernel {
    /// Every kernel with its name in files and its unit of work, in the order of the documentation.
    pub const ALL: [(Self, &str, &str); 3] = [
        (Self::Diagonals, "diagonals", "diagonals of the matrix's square"),
        (Self::Burn, "burn", "million additions of a sine"),
        (Self::Triad, "triad", "million elements of a triad"),
    ];

    /// The kernel of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(kernel, ..)| *kernel)
    }

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What an agent does for the work of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compute {
    /// Sleeps for as long as the platform's rates and the interference law say; links are paced.
    #[default]
    Emulated,
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers.
    Burn,
    /// Streams through memory.
    Triad,
}

/// What a rank of a parallel program does for the time of a computation, live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankCompute {
    /// Waits for as long, and keeps to the disturbance by itself: needs no processor, so ranks may outnumber CPUs.
    #[default]
    Emulated,
    /// Keeps a CPU busy until it has had it for as long; the disturbance is injected.
    Burn,
}

/// What did the computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputedBy {
    /// Nothing: the time was virtual.
    Simulated,
    /// Real agents that slept for the time that the platform's rates give, over paced links; ranks that waited as long as
    /// they would have computed.
    Emulated,
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers.
    Burn,
    /// Streams through memory.
    Triad,
    /// A user's command.
    Command,
    /// A user's Python callable.
    Callable,
}
