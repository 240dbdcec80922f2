//! Experiment: a platform, a workload, a policy, and the values to sweep.

pub mod draw;
pub mod execution;
pub mod parameters;
pub mod policy;
pub mod sweep;
pub mod workload;

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::draw::Tasks;
pub use self::execution::{Compute, Execution};
pub use self::policy::{Order, Policy};
pub use self::sweep::{Params, Paths, Point, Sweep};
pub use self::workload::{Amount, Distribution, Source, Workload, WorkloadKind};

use crate::error::{DescriptionError, Problem};
use crate::platform::Platform;
use crate::read;

/// What to run, on what, decided by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// What people call it.
    pub name: String,
    /// Path of a platform file, relative to this file, or the platform itself.
    pub platform: PlatformSource,
    /// Seed of everything drawn at random.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runs of each point, each with its own seed.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    /// What there is to do.
    pub workload: Workload,
    /// Who decides, and how.
    #[serde(default)]
    pub policy: Policy,
    /// How a live run computes; simulations ignore it.
    #[serde(default)]
    pub execution: Execution,
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
    /// An inline `[platform]` table.
    Inline(Platform),
}

// By hand, since serde's untagged enums forget which field of the inline platform was wrong.
impl<'de> Deserialize<'de> for PlatformSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrTable;
        impl<'de> Visitor<'de> for PathOrTable {
            type Value = PlatformSource;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a platform file or a platform table")
            }
            fn visit_str<E>(self, path: &str) -> Result<Self::Value, E> {
                Ok(PlatformSource::Path(path.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                Platform::deserialize(MapAccessDeserializer::new(table)).map(PlatformSource::Inline)
            }
        }
        deserializer.deserialize_any(PathOrTable)
    }
}

impl Experiment {
    /// Parses and checks an `experiment.toml`. Files that it names (platform, tasks) are not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let experiment: Self = read::toml(text, file)?;
        experiment
            .check()
            .map_err(|error| error.located(std::str::from_utf8(text).unwrap_or_default()).in_file(file))?;
        Ok(experiment)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`Experiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let experiment: Self = read::json(text, file)?;
        experiment.check().map_err(|error| error.in_file(file))?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        if self.repetitions == 0 {
            return Err(Problem::Value("is 0; it must be at least 1".into()).at("repetitions".into()));
        }
        if self.sweep.is_empty() { self.check_point() } else { self.check_sweep() }
    }

    /// Checks what a single field cannot tell, the sweep aside: a swept field may be missing until it is set.
    fn check_point(&self) -> Result<(), DescriptionError> {
        self.workload.source()?;
        self.policy.check()?;
        self.execution.check()?;
        if let PlatformSource::Inline(platform) = &self.platform {
            platform.check().map_err(|mut e| {
                e.field = e.field.map(|f| format!("platform.{f}"));
                e
            })?;
        }
        Ok(())
    }
}
