//! Experiments of kind streams: messages of two classes through the network interfaces of hosts on one switch.
//!
//! Every run measures three times: each stream alone (T1), all of them through one queue (T2), and all of them
//! through the queues of `[policy]` (T3). T2 takes the same path as T3, so that the cost of the path is in both.
//! Source: communication-interactions, section 6; docs/guides/run-streams.md.

mod draw;
mod job;
mod links;
mod policy;
mod stream;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::draw::MessageDraws;
pub use self::job::{Job, JobProgram};
pub use self::links::{KnownLinks, Links, LinksSource, Processor, ProcessorOrder, Transport};
pub use self::policy::{CreditRule, Discipline, FilterPlace, QueuePolicy};
pub use self::stream::{Arrivals, Class, MOST_BYTES, Receivers, Stream};

use super::parameters::Whole;
use super::sweep::{Grid, Sweep, parsed, shared_fields, with};
use crate::error::{DescriptionError, Problem};
use crate::read;

/// Streams of messages, with their network and policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsExperiment {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Seed of everything drawn at random.
    #[serde(default = "super::one")]
    pub seed: u64,
    /// Runs of each point, each with its own seed.
    #[serde(default = "super::one")]
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    /// Links and switch; live runs take frame size and rates from it.
    #[serde(default)]
    pub network: LinksSource,
    pub workload: StreamsWorkload,
    /// Queue discipline of the third measurement, T3.
    #[serde(default)]
    pub policy: QueuePolicy,
    /// Dotted path -> values, in the order of the file; the grid is their product, the last path varying fastest.
    #[serde(default, skip_serializing_if = "Sweep::is_empty")]
    pub sweep: Sweep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamsWorkloadKind {
    /// Streams of messages in two classes.
    Streams,
}

/// The workload: messages among hosts on one switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsWorkload {
    pub kind: StreamsWorkloadKind,
    /// Number of hosts, which are numbered from 0.
    pub hosts: Whole<2, 65_536>,
    #[serde(default, rename = "stream", skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Stream>,
    /// Parallel programs, whose messages are of class parallel.
    #[serde(default, rename = "job", skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
}

/// Most streams, and most jobs; more are surely a mistake.
const MOST_STREAMS: usize = 100_000;

impl StreamsWorkload {
    fn check(&self) -> Result<(), DescriptionError> {
        let hosts = self.hosts.get() as u32;
        if self.streams.is_empty() && self.jobs.is_empty() {
            let nothing = "has neither a [[workload.stream]] nor a [[workload.job]]; there is nothing to send";
            return Err(Problem::Value(nothing.into()).at("workload".into()));
        }
        for (list, length) in [("stream", self.streams.len()), ("job", self.jobs.len())] {
            if length > MOST_STREAMS {
                let many = format!("has {length} entries; it must have at most {MOST_STREAMS}");
                return Err(Problem::Value(many).at(format!("workload.{list}")));
            }
        }
        for (place, stream) in self.streams.iter().enumerate() {
            stream.check(hosts).map_err(|error| error.below(&format!("workload.stream[{place}]")))?;
        }
        for (place, job) in self.jobs.iter().enumerate() {
            job.check(hosts).map_err(|error| error.below(&format!("workload.job[{place}]")))?;
        }
        unique("stream", self.streams.iter().map(|stream| stream.name.as_str()))?;
        unique("job", self.jobs.iter().map(Job::name))
    }
}

/// Checks that names are unique, since they identify results.
fn unique<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), DescriptionError> {
    let mut seen = std::collections::HashMap::new();
    for (place, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, place) {
            let first = format!("{list}[{first}]");
            return Err(
                Problem::DuplicateName { name: name.into(), first }.at(format!("workload.{list}[{place}].name"))
            );
        }
    }
    Ok(())
}

impl StreamsExperiment {
    /// Parses and checks an `experiment.toml` of kind streams.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`StreamsExperiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }
}

/// Paths that a sweep may vary; a star stands for any field.
const SWEPT: [&str; 12] = [
    "network",
    "network.*",
    "policy.credits",
    "policy.idle_s",
    "policy.literal",
    "policy.queue",
    "policy.receive_frames",
    "policy.receive_threshold",
    "policy.threshold",
    "seed",
    "workload.stream[0].*",
    "workload.job[0].*",
];
const SWEPT_BELOW: [&str; 3] = ["network.", "workload.stream[", "workload.job["];

impl Grid for StreamsExperiment {
    const SWEPT: &'static [&'static str] = &SWEPT;
    const SWEPT_BELOW: &'static [&'static str] = &SWEPT_BELOW;

    shared_fields!();

    fn set(&mut self, path: &str, value: &Value) -> Result<(), DescriptionError> {
        let (section, rest) = path.split_once('.').unwrap_or((path, ""));
        match (section, rest) {
            ("seed", _) => self.seed = parsed(value, path)?,
            ("network", "") => self.network = parsed(value, path)?,
            ("network", field) => self.network = LinksSource::Inline(with(&self.network.links(), field, value, path)?),
            ("policy", field) => self.policy = with(&self.policy, field, value, path)?,
            ("workload", field) => self.workload = with(&self.workload, field, value, path)?,
            _ => return Err(Self::unknown(path)),
        }
        Ok(())
    }

    fn check_head(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)
    }

    fn check_point(&self) -> Result<(), DescriptionError> {
        self.workload.check()?;
        self.network.links().check()?;
        self.policy.check()
    }
}
