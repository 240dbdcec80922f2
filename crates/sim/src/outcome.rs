//! Outcome of a run.

use crosswind_policy::farm::estimate::Estimate;
use crosswind_schema::experiment::ChangeKind;

use crate::trace::Trace;

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub tasks: u64,
    /// From the start to the end of the last task, s. If results have a size, to the arrival of the last result at the
    /// root.
    pub makespan_s: f64,
    pub throughput_tasks_per_s: f64,
    /// Tasks per second between the completion of the first quarter and of the third quarter of the tasks. Excludes
    /// start-up and end.
    pub steady_tasks_per_s: f64,
    /// One per node, in the platform's order.
    pub nodes: Vec<NodeOutcome>,
    /// What was observed of each node and its link. Empty without adaptation.
    pub seen: Vec<NodeObserved>,
    /// When each task was done, s. Empty if all tasks were there at the start, none has a deadline, and they have one user
    /// and one class.
    pub done_s: Vec<f64>,
    /// Changes applied and their effects.
    pub events: Vec<Happened>,
    /// Drawn failures, one entry per node. Empty without any; `events` does not have them.
    pub failures: Vec<NodeFailures>,
    pub steps: u64,
    /// Activities of each node, if requested.
    pub trace: Option<Trace>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    pub tasks: u64,
    /// Seconds during which it had a task to compute, however slowly. Includes the task that it was computing when it
    /// left.
    pub busy_s: f64,
    /// Received from the parent, MB. Includes the part of a task that was in transit when the node left.
    pub received_mb: f64,
}

/// Drawn failures of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeFailures {
    pub count: u64,
    /// Seconds for which it had failed or was slowed down, added over the tables of failures that name it.
    pub failed_s: f64,
    /// Tasks outstanding in its subtree when it failed, which are done again.
    pub redone: u64,
}

/// What was observed of a node and its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeObserved {
    /// Compute rate without traffic, work units/s.
    pub compute_per_s: Estimate,
    /// s/MB. `None` if its traffic does not determine it.
    pub ir_receive_s_per_mb: Option<Estimate>,
    /// MB/s from its parent. `None` at the root.
    pub receive_limit_mb_per_s: Option<Estimate>,
    /// s/MB at its parent. `None` if the parent's traffic does not determine it.
    pub ir_send_s_per_mb: Option<Estimate>,
}

/// A change applied to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened {
    pub t_s: f64,
    /// The node changed: index in the platform's file.
    pub node: u32,
    pub kind: ChangeKind,
    /// Tasks outstanding in its subtree, which are done again.
    pub tasks: u64,
}
