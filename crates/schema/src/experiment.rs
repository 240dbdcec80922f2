//! Experiment: a platform, a workload, a policy, and the values to sweep.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{DescriptionError, Problem, nearest};
use crate::plan::Ports;
use crate::platform::Platform;
use crate::read;
use crate::units::{Megabytes, WorkUnits};

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
    /// Dotted path -> values; the grid is their product.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<serde_json::Value>>,
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

/// The kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Independent tasks, all at the root at the start.
    Farm,
}

/// What there is to do: a farm of independent tasks, all at the root at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// How many tasks.
    #[schemars(range(min = 1))]
    pub tasks: u64,
    /// Input of each, MB.
    pub task_size_mb: Megabytes,
    /// Work of each, work units.
    pub task_work: WorkUnits,
}

/// Which child is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The derived optimum for the port mode.
    #[default]
    Interference,
    /// The rule that the paper's experiments used: lowest `ir_send` first.
    InterferenceRate,
    /// Highest receive limit first.
    Bandwidth,
    /// Highest compute rate first.
    Compute,
    /// First come, first served.
    Arrival,
    /// The root computes everything.
    RootOnly,
}

/// Who decides, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Which child is served next.
    pub order: Order,
    /// Sends at a time.
    pub ports: Ports,
    /// Bytes after which a send may be interrupted, KiB.
    #[schemars(range(min = 1))]
    pub chunk_kib: u64,
    /// Tasks a child asks for ahead.
    #[schemars(range(min = 1))]
    pub buffer_tasks: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { order: Order::Interference, ports: Ports::Single, chunk_kib: 512, buffer_tasks: 2 }
    }
}

/// The dotted paths that a sweep may vary.
const SWEPT: [&str; 8] = [
    "policy.buffer_tasks",
    "policy.chunk_kib",
    "policy.order",
    "policy.ports",
    "seed",
    "workload.task_size_mb",
    "workload.task_work",
    "workload.tasks",
];

impl Experiment {
    /// Parses and checks an `experiment.toml`. A platform file that it names is not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let experiment: Self = read::toml(text, file)?;
        experiment
            .check(file)
            .map_err(|error| error.located(std::str::from_utf8(text).unwrap_or_default()).in_file(file))?;
        Ok(experiment)
    }

    fn check(&self, file: &str) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        let at_least_one = |field: &str, value: u64| {
            if value > 0 {
                return Ok(());
            }
            Err(Problem::Value(format!("is {value}; it must be at least 1")).at(field.into()))
        };
        at_least_one("repetitions", self.repetitions)?;
        at_least_one("workload.tasks", self.workload.tasks)?;
        at_least_one("policy.chunk_kib", self.policy.chunk_kib)?;
        at_least_one("policy.buffer_tasks", self.policy.buffer_tasks)?;
        if let PlatformSource::Inline(platform) = &self.platform {
            platform.tree().map_err(|mut e| {
                e.field = e.field.map(|f| format!("platform.{f}"));
                e
            })?;
        }
        for (path, values) in &self.sweep {
            if !SWEPT.contains(&path.as_str()) {
                let known: Vec<String> = SWEPT.iter().map(|s| (*s).to_owned()).collect();
                let problem = Problem::Unknown { nearest: nearest(path, SWEPT.into_iter()), known };
                return Err(problem.at(format!("sweep.{path}")));
            }
            if values.is_empty() {
                return Err(
                    Problem::Value("is empty; a sweep needs at least one value".into()).at(format!("sweep.{path}"))
                );
            }
            for value in values {
                self.with(path, value, file)?;
            }
        }
        Ok(())
    }

    /// The experiment with one swept field set: so a bad value in a sweep is found before anything runs.
    fn with(&self, path: &str, value: &serde_json::Value, file: &str) -> Result<(), DescriptionError> {
        let mut whole = serde_json::to_value(Self { sweep: BTreeMap::new(), ..self.clone() })
            .map_err(|e| Problem::Syntax(e.to_string()).at(path.into()))?;
        let mut place = &mut whole;
        for step in path.split('.') {
            place = &mut place[step];
        }
        *place = value.clone();
        let text = whole.to_string();
        read::json::<Self>(text.as_bytes(), file).map(drop).map_err(|mut e| {
            (e.line, e.column) = (None, None);
            e.field = Some(format!("sweep.{path}"));
            e
        })
    }
}
