//! A child, as the node that orders its children sees it.

use crosswind_schema::plan::Ports;

use super::super::mean_task::MeanTask;

/// What an order may look at.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub ports: Ports,
    /// A task of mean size and work.
    pub task: MeanTask,
    /// Compute rate of the node itself, work units/s.
    pub own_compute_per_s: f64,
    /// Compute rate of the child.
    pub compute_per_s: f64,
    /// Receive limit of the child.
    pub receive_limit_mb_per_s: f64,
    /// What sending to the child costs the node, s/MB.
    pub ir_send_s_per_mb: f64,
    /// What the plan gives the child, tasks/s; 0 without a plan.
    pub planned_tasks_per_s: f64,
}

impl Candidate {
    /// Tasks that the node itself loses per task sent: `ir_send Z C`.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.ir_send_s_per_mb * self.task.size_mb * self.own_compute_per_s / self.task.work
    }
}
