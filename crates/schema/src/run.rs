//! Runs: the results of an experiment's runs (`runs.json`, and the output of `crosswind run --json`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::ComputedBy;
use crate::error::{DescriptionError, Warning};
use crate::experiment::{Order, Params};
use crate::plan::Ports;
use crate::provenance::Provenance;
use crate::read;

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
    /// Kind of these runs; runs of version 0.1.0 do not have it.
    #[serde(default)]
    pub kind: FarmKind,
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment, its platforms and its tasks; it must be the same to resume into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<Run>,
    /// Experiment, files and versions that they were made from; runs of `map` do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Values set by the sweep: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    pub platform: String,
    pub order: Order,
    /// Whether a node sends to several children at once.
    pub ports: Ports,
    /// How the computation was performed.
    pub compute: ComputedBy,
    pub tasks: u64,
    /// Time from the start to the end of the last task (with results: to its result's arrival at the root), s.
    pub makespan_s: f64,
    /// Tasks per second: tasks / makespan.
    pub throughput_tasks_per_s: f64,
    /// Upper bound on the tasks per second of any steady state along the tree; null if a task's work is unknown. If
    /// tasks differ, the bound is for tasks of mean size and work.
    pub bound_tasks_per_s: Option<f64>,
    /// Tasks per second of the root alone; null if a task's work is unknown.
    pub root_only_tasks_per_s: Option<f64>,
    /// One entry per node, in the platform's order.
    pub nodes: Vec<RunNode>,
    /// Events of the run, such as lost agents and repeated tasks.
    #[serde(default)]
    pub events: Vec<RunEvent>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Times between arrival and end of tasks; absent if all tasks were there at the start, none has a deadline and they
    /// have one user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Fairness over time among users, and among classes of tasks; absent where there is one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fairness: Vec<Fairness>,
    /// Results of earlier runs into the same directory that this one resumed; absent if it did not resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
}

/// Flow times: from the arrival of a task at the root to its end (with results: to its result's arrival there).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Mean flow time, s.
    pub mean_s: f64,
    /// Half of the tasks have a shorter flow time, s.
    pub median_s: f64,
    /// 95 % of the tasks have a shorter flow time, s.
    pub p95_s: f64,
    /// 99 % of the tasks have a shorter flow time, s.
    pub p99_s: f64,
    /// The longest flow time, s.
    pub most_s: f64,
    /// Mean of flow time / time that the task would take alone on the node that would be done with it first.
    pub mean_slowdown: f64,
    /// The largest of these ratios.
    pub most_slowdown: f64,
    /// Tasks that ended after their deadline; absent if none has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Mean time after the deadline, s, 0 for a task in time, over the tasks with a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_tardiness_s: Option<f64>,
    /// The longest time after a deadline, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_tardiness_s: Option<f64>,
    /// Jain's index of the mean slowdowns of the users: 1 if all are alike, 1 / users if one has all of it. Absent if
    /// tasks have no user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Flow times of each user's tasks, in the order in which the file names the users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserFlow>,
}

/// Flow times of one user's tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserFlow {
    pub name: String,
    pub tasks: u64,
    /// When the last of them ended, s since the start.
    pub done_s: f64,
    /// Mean flow time, s.
    pub mean_s: f64,
    /// Mean of flow time / time that the task would take alone on the node that would be done with it first.
    pub mean_slowdown: f64,
}

/// What tasks are grouped by to compare how they were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FairnessOf {
    Users,
    Classes,
}

/// Jain's index over time: of the work that each user, or class of tasks, got done in a window. In a window count those
/// that had an unfinished task at every moment of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fairness {
    pub of: FairnessOf,
    /// Length of a window, s.
    pub window_s: f64,
    /// Mean index of the windows that have one.
    pub mean: f64,
    /// The smallest index of a window.
    pub least: f64,
    /// Index of each window, in order of time: 1 if all that count got the same, 1 / n if one of n got all; null where
    /// fewer than two count, or no task ended.
    pub index: Vec<Option<f64>>,
}

/// Tasks of a resumed run, by what earlier runs left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// Tasks whose results were reused.
    pub done: u64,
    /// Tasks that were repeated: reason -> number.
    pub again: BTreeMap<String, u64>,
    /// Tasks that are in no earlier run.
    pub new: u64,
    /// Inputs of earlier runs that are not in this one.
    pub gone: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunNode {
    pub name: String,
    pub tasks: u64,
    /// Time in which its processor computed, s.
    pub busy_s: f64,
    /// Data received from the parent, MB.
    pub received_mb: f64,
    /// Its drawn failures; absent in an experiment without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<NodeFailures>,
    /// Observed rates compared with the platform; absent if nothing was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ObservedNode>,
}

/// Drawn failures of a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeFailures {
    /// How often it failed or was slowed down.
    pub count: u64,
    /// Time for which it had failed or was slowed down, s; of several tables of failures that name it, the sum.
    pub failed_s: f64,
    /// Tasks that it and the nodes below it held when it failed, which were done again.
    pub tasks_again: u64,
}

/// Observed rates of a node and its link, each compared with the platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedNode {
    /// Work units/s while it neither sends nor receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_per_s: Option<ObservedRate>,
    /// MB/s from the parent, as observed by the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_limit_mb_per_s: Option<ObservedRate>,
    /// Fraction of its compute rate lost per MB/s received, s/MB; absent if its traffic did not determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_receive_s_per_mb: Option<ObservedRate>,
    /// Fraction of the parent's compute rate lost per MB/s sent here, s/MB; absent if the parent's traffic did not
    /// determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_send_s_per_mb: Option<ObservedRate>,
}

/// A planned rate, and the rate observed at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedRate {
    /// Value in the platform; null if it has none.
    pub planned: Option<f64>,
    pub seen: f64,
    /// Standard deviation of the observed value, in the same unit.
    pub sd: f64,
    /// Number of observations since it last changed.
    pub observations: u64,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEvent {
    /// Time of the event, s since the start.
    pub t_s: f64,
    /// Stable identifier that scripts may rely on.
    pub code: String,
    pub node: Option<String>,
    pub tasks: Option<u64>,
    pub message: String,
}

impl Runs {
    /// Parses and checks a `runs.json`.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }
}
