//! Kinds of computation: kernels beside the traffic of a measurement, the work of a farm's tasks, and the computation
//! of a program's ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers, without memory traffic.
    Burn,
    /// Streams through memory, as STREAM's triad does.
    Triad,
}

impl Kernel {
    /// Every kernel with its name in files and its unit of work, in the order of the documentation.
    pub const ALL: [(Self, &str, &str); 3] = [
        (Self::Diagonals, "diagonals", "diagonals of the matrix's square"),
        (Self::Burn, "burn", "million additions of a sine"),
        (Self::Triad, "triad", "million elements of a triad"),
    ];

    /// Returns the kernel of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(kernel, ..)| *kernel)
    }

    /// Returns its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How an agent performs the work of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compute {
    /// Sleeps for the time that follows from the platform's rates and the interference law; links are paced.
    #[default]
    Emulated,
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers, without memory traffic.
    Burn,
    /// Streams through memory, as STREAM's triad does.
    Triad,
}

/// How a rank of a live parallel program spends the time of a computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankCompute {
    /// Waits for that time and simulates the disturbance itself. It needs no processor, so ranks may outnumber CPUs.
    #[default]
    Emulated,
    /// Keeps a CPU busy until it has used that much CPU time; the disturbance is injected.
    Burn,
}

/// How the computation was performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputedBy {
    /// Not performed: the time was virtual.
    Simulated,
    /// Real agents that slept for the time that follows from the platform's rates, over paced links; or ranks that
    /// waited for the time of their computation.
    Emulated,
    /// The synthetic kernel of the measurements.
    Diagonals,
    /// Arithmetic in registers, without memory traffic.
    Burn,
    /// Streams through memory, as STREAM's triad does.
    Triad,
    /// A command given by the user.
    Command,
    /// A Python callable given by the user.
    Callable,
}
