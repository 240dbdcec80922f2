//! A child, as seen by the node that orders its children.

use crosswind_schema::plan::Ports;

use super::super::mean_task::MeanTask;

/// The inputs of an order.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub ports: Ports,
    /// A task of mean size and work.
    pub task: MeanTask,
    /// Size of the result that each task sends back up, MB.
    pub result_mb: f64,
    /// Compute rate of the parent, work units/s.
    pub own_compute_per_s: f64,
    /// Compute rate of the child, work units/s.
    pub compute_per_s: f64,
    /// Receive limit of the child, MB/s.
    pub receive_limit_mb_per_s: f64,
    /// Interference at the parent of sending to the child, s/MB.
    pub ir_send_s_per_mb: f64,
    /// Planned rate of the child, tasks/s; 0 without a plan.
    pub planned_tasks_per_s: f64,
}

impl Candidate {
    /// Tasks that the parent itself loses per task sent, and its result: `ir_send (Z + Z') C`.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.ir_send_s_per_mb * (self.task.size_mb + self.result_mb) * self.own_compute_per_s / self.task.work
    }
}
