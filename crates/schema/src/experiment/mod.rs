//! Experiment: a platform, a workload, a policy, and the values to sweep.
//!
//! Three kinds, selected by `workload.kind`: [`Experiment`], a farm of tasks over a platform; [`ProgramExperiment`],
//! a parallel program under disturbances; [`StreamsExperiment`], messages of two classes through network interfaces.
//! [`AnyExperiment`] reads any of them; [`Grid`] is their common interface.

pub mod change;
pub mod classes;
pub mod draw;
pub mod execution;
pub mod failure;
mod kind;
mod listed;
pub mod network;
pub mod parameters;
pub mod platform_fields;
pub mod policy;
pub mod program;
pub mod streams;
pub mod sweep;
pub mod upcoming;
pub mod window;
pub mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::change::{Change, ChangeKind, PlacedChange};
pub use self::classes::{Classes, TaskClass};
pub use self::draw::Tasks;
pub use self::execution::{Execution, ProgramExecution};
pub use self::failure::{Failure, PlacedFailure};
pub use self::kind::AnyExperiment;
pub use self::network::{FatTree, KnownNetwork, Network, NetworkSource};
pub use self::policy::{Order, Policy, PolicyName, PortMode};
pub use self::program::{DisturbanceSource, Parameters, ProgramExperiment, ProgramName, ProgramWorkload};
pub use self::streams::{Class, StreamsExperiment};
pub use self::sweep::{Grid, Params, Paths, Point, Sweep};
pub use self::upcoming::{Due, Upcoming};
pub use self::window::{AwayRule, Credit, WindowPolicy, WindowRule};
pub use self::workload::{Amount, Distribution, Source, Workload, WorkloadKind};

use crate::error::DescriptionError;
use crate::platform::Platform;
use crate::read;
use crate::source::string_or_table;

/// A farm of tasks: what to run, on which platform, under which policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Path of a platform file, relative to this file, or the platform itself.
    pub platform: PlatformSource,
    /// Fields of the platform's nodes that this experiment replaces: a path, such as `node[n3].compute_per_s`, and its
    /// value. A node is named, or counted from 0.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub platform_fields: Params,
    /// Seed of everything drawn at random.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runs of each point, each with its own seed.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    pub workload: Workload,
    /// The policy: the order of service and its options.
    #[serde(default)]
    pub policy: Policy,
    /// How a live run computes; simulations ignore it.
    #[serde(default)]
    pub execution: Execution,
    /// Changes of the platform during the run.
    #[serde(rename = "change", default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Failures and slowdowns of nodes, drawn at random.
    #[serde(rename = "failure", default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Dotted path -> values, in the order of the file; the grid is their product, the last path varying fastest.
    #[serde(default, skip_serializing_if = "Sweep::is_empty")]
    pub sweep: Sweep,
}

fn one() -> u64 {
    1
}

/// A path, or the platform itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PlatformSource {
    /// Path of a platform file, relative to the experiment's file.
    Path(String),
    /// A platform in an inline `[platform]` table.
    Inline(Platform),
}

impl<'de> Deserialize<'de> for PlatformSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the path of a platform file or a platform table";
        string_or_table(deserializer, expected, |path| Ok(Self::Path(path.to_owned())), Self::Inline)
    }
}

impl Experiment {
    /// Parses and checks an `experiment.toml`. Files that it refers to (platform, tasks) are not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`Experiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }
}
