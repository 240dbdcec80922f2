//! What came of a run.

use crosswind_policy::farm::estimate::Estimate;
use crosswind_schema::experiment::ChangeKind;

use crate::trace::Trace;

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub tasks: u64,
    /// From the start to the end of the last task; with results that have a size, to the last one's arrival at the root. s.
    pub makespan_s: f64,
    pub throughput_tasks_per_s: f64,
    /// Tasks per second between the end of the first quarter of them and that of the third: without start-up and end.
    pub steady_tasks_per_s: f64,
    /// One per node, in the platform's order.
    pub nodes: Vec<NodeOutcome>,
    /// What was observed of each node and its link; empty without adaptation.
    pub seen: Vec<NodeObserved>,
    /// Changes, and what they led to.
    pub events: Vec<Happened>,
    pub steps: u64,
    /// What each node did and when, if requested.
    pub trace: Option<Trace>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    pub tasks: u64,
    /// Seconds in which it had a task to compute, however slowly; with those of a task that it was computing when it left.
    pub busy_s: f64,
    /// What came from the parent, MB; with the part of a task that was on its way when the node left.
    pub received_mb: f64,
}

/// What was seen of a node and its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeObserved {
    /// Work units/s without traffic.
    pub compute_per_s: Estimate,
    /// s/MB; none where its traffic does not tell.
    pub ir_receive_s_per_mb: Option<Estimate>,
    /// MB/s from its parent; none at the root.
    pub receive_limit_mb_per_s: Option<Estimate>,
    /// s/MB at its parent; none where the parent's traffic does not tell.
    pub ir_send_s_per_mb: Option<Estimate>,
}

/// Something that happened to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened {
    /// When, s.
    pub t_s: f64,
    /// The receiver: place in the platform's file.
    pub node: u32,
    pub kind: ChangeKind,
    /// Tasks that were out under it and are done again.
    pub tasks: u64,
}
