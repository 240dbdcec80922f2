//! Plan: the rates of a schedule and the proof that none is faster.
//!
//! Written by the planner as JSON (`plan.json`), read by people and reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Warning};
use crate::read;

/// Concurrent sends of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ports {
    /// One send at a time.
    Single,
    /// Several at once, up to the send limit.
    Multi,
}

/// How the rates were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Rates that no other plan exceeds.
    Exact,
    /// Rates by the greedy rule of the paper.
    Greedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// Its own compute rate, and no child could take more at a gain.
    Compute,
    /// The receive limit of its link.
    ReceiveLimit,
    /// The send limit to all its children together.
    SendLimit,
    /// The time of its single port.
    Port,
    /// Sending more would leave its own computation less than nothing.
    LocalCompute,
    /// Its parent sends it less than it could use.
    Parent,
    /// It is on the never-send list: its work would cost its parent more.
    NeverSend,
    /// What its link carries back to its parent: results are larger than inputs.
    ReturnLink,
}

impl LimitedBy {
    /// Names in files, by `limited_by as usize`.
    pub const NAMES: [&str; 8] =
        ["compute", "receive-limit", "send-limit", "port", "local-compute", "parent", "never-send", "return-link"];
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanKind {
    /// The plan of a platform.
    #[default]
    Plan,
}

/// The steady state of a platform for one kind of task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// Kind of this file; plans of version 0.1.0 do not have it.
    #[serde(default)]
    pub kind: PlanKind,
    pub platform: String,
    /// Size of a task's input, MB.
    pub task_size_mb: f64,
    /// Work of a task, work units.
    pub task_work: f64,
    /// Size of the result that each task sends back to the root, MB; absent: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub result_size_mb: f64,
    /// Whether a node sends to several children at once.
    pub ports: Ports,
    /// How the rates were chosen.
    pub method: Method,
    /// Tasks per second that the whole tree computes.
    pub throughput_tasks_per_s: f64,
    /// An upper bound on the throughput of any schedule that sends along the tree.
    pub bound_tasks_per_s: f64,
    /// An upper bound on the throughput of constant rates, which may be lower than that of schedules that send in
    /// bursts. Only with several ports, if the platform has `receive_losses` or `send_losses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_rates_bound_tasks_per_s: Option<f64>,
    /// (bound - throughput) / bound, in 0..1.
    pub gap_to_exact: f64,
    /// Throughput of the root alone, without sending anything: the paper's baseline.
    pub root_only_tasks_per_s: f64,
    /// One entry per node, in the platform's order.
    pub nodes: Vec<PlannedNode>,
    pub warnings: Vec<Warning>,
}

/// The plan for one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedNode {
    pub name: String,
    /// Name of its parent; absent at the root.
    pub parent: Option<String>,
    /// Tasks per second computed on the node itself.
    pub computed_tasks_per_s: f64,
    /// Tasks per second received from the parent; for the root, the tasks that it takes from its own store.
    pub received_tasks_per_s: f64,
    /// Position among its siblings in the order of service, from 1; 0 for the root and for nodes that get no tasks.
    pub rank: u32,
    /// Sending a task to it costs the parent more than the task is worth (IR_s Z C >= 1).
    pub never_send: bool,
    pub limited_by: LimitedBy,
    /// Marginal gain of the whole tree, tasks/s per MB/s of this node's receive limit: a derivative.
    pub gain_per_receive_mb_per_s: f64,
    /// Marginal gain of the whole tree, tasks/s per MB/s of this node's send limit: a derivative.
    pub gain_per_send_mb_per_s: f64,
    /// Marginal gain of the whole tree, tasks/s per work unit/s of this node's compute rate: a derivative. Null for a
    /// node that computes nothing and may then receive and send as it does: with any compute rate its interference
    /// would forbid that, and the tree's rate would jump down.
    pub gain_per_work_per_s: Option<f64>,
    /// The line that agrees with its `receive_losses` at the planned rate, s/MB; only if the platform has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_receive_s_per_mb: Option<f64>,
    /// The line that agrees with its `send_losses` at the planned rate, s/MB; only if the platform has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_send_s_per_mb: Option<f64>,
}

// By reference, as serde requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(size: &f64) -> bool {
    *size == 0.0
}

impl Plan {
    /// Parses and checks a `plan.json`.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |plan: &Self| read::version(plan.schema_version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_a_node_has_its_name_in_files() {
        for (place, name) in LimitedBy::NAMES.into_iter().enumerate() {
            let limit: LimitedBy = serde_json::from_value(name.into()).expect("a name in files");
            assert_eq!(limit as usize, place);
        }
    }
}
