//! Runs: what an experiment's runs came to (`runs.json`, and what `crosswind run --json` prints).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::ComputedBy;
use crate::error::{DescriptionError, Warning};
use crate::experiment::{Order, Params};
use crate::plan::Ports;
use crate::read;

/// The kind of such runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FarmKind {
    /// Runs of a farm of tasks.
    #[default]
    Farm,
}

/// The runs of an experiment of kind farm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// What tells these from other runs; runs of version 0.1.0 do not have it.
    #[serde(default)]
    pub kind: FarmKind,
    /// Name of the experiment.
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment, its platforms and its tasks: what may be resumed into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<Run>,
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What the sweep set: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Name of the platform.
    pub platform: String,
    /// Which child was served next.
    pub order: Order,
    /// Sends at a time.
    pub ports: Ports,
    /// What did the computing.
    pub compute: ComputedBy,
    /// How many tasks were computed.
    pub tasks: u64,
    /// From the start to the end of the last task (with results: to its result's arrival at the root), s.
    pub makespan_s: f64,
    /// Tasks per second: tasks / makespan.
    pub throughput_tasks_per_s: f64,
    /// No steady state along the tree computes more tasks per second; null where a task's work is unknown. For tasks that
    /// differ, of tasks of mean size and work.
    pub bound_tasks_per_s: Option<f64>,
    /// The root alone would compute so many tasks per second; null where a task's work is unknown.
    pub root_only_tasks_per_s: Option<f64>,
    /// One entry per node, in the platform's order.
    pub nodes: Vec<RunNode>,
    /// What happened: agents lost, tasks run again.
    #[serde(default)]
    pub events: Vec<RunEvent>,
    /// What to keep in mind when trusting the figures.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// What earlier runs into the same directory left for this one; absent where none was gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
}

/// What earlier runs left for one that goes on with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// Tasks whose results stood.
    pub done: u64,
    /// Tasks that were made again: why -> how many.
    pub again: BTreeMap<String, u64>,
    /// Tasks that no earlier run had.
    pub new: u64,
    /// Inputs of earlier runs that this one does not have.
    pub gone: u64,
}

/// What one node did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunNode {
    /// Name of the node.
    pub name: String,
    /// Tasks computed there.
    pub tasks: u64,
    /// Seconds in which its processor was computing.
    pub busy_s: f64,
    /// Received from the parent, MB.
    pub received_mb: f64,
    /// What was seen of it beside what the platform says; absent where nothing was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ObservedNode>,
}

/// What was seen of a node and its link, each beside what the platform says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedNode {
    /// Work units/s while it neither sends nor receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_per_s: Option<ObservedRate>,
    /// MB/s from the parent; seen by the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_limit_mb_per_s: Option<ObservedRate>,
    /// Part of its compute rate lost per MB/s received, s/MB; absent where its traffic did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_receive_s_per_mb: Option<ObservedRate>,
    /// Part of the parent's compute rate lost per MB/s sent here, s/MB; absent where the parent's traffic did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_send_s_per_mb: Option<ObservedRate>,
}

/// A rate as it is planned with, and as it was seen at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedRate {
    /// As the platform says; null where it does not.
    pub planned: Option<f64>,
    /// As it was seen.
    pub seen: f64,
    /// Standard deviation of what was seen, in the same unit.
    pub sd: f64,
    /// Observations, since it last changed.
    pub observations: u64,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEvent {
    /// When, s since the start.
    pub t_s: f64,
    /// Stable word for scripts.
    pub code: String,
    /// The node that it is about.
    pub node: Option<String>,
    /// How many tasks it is about.
    pub tasks: Option<u64>,
    /// What happened.
    pub message: String,
}

impl Runs {
    /// Parses and checks a `runs.json`.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }
}
