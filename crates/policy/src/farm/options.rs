//! How a farm is to be run: what is the same for all its nodes.

use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::mean_task::MeanTask;
use super::order::{self, Candidate, Rule};

/// How the farm is to be run: what is the same for all nodes.
#[derive(Clone, Copy, Debug)]
pub struct FarmOptions<'a> {
    /// The order of service.
    pub order: Order,
    pub ports: Ports,
    /// Tasks asked for or waiting beyond the one that is computed; none: chosen per node.
    pub buffer_tasks: Option<u64>,
    pub task: MeanTask,
    /// How many tasks there are; none: not known, or no end.
    pub tasks: Option<u64>,
    /// What the plan gives each node, tasks/s, in the platform's order; needed by the order `planned`.
    pub planned_tasks_per_s: Option<&'a [f64]>,
    /// Whether results go back up.
    pub returns: bool,
    /// Whether tasks that are out are remembered, so that a lost child's come back. Needs results.
    pub recovers: bool,
    /// Whether the last tasks go only to nodes that are done with them as early as the others: see `ending`.
    pub level_end: bool,
    /// Whether keys, paces and buffers follow what is seen: see [`Estimator`](super::estimate::Estimator).
    pub adapt: bool,
}

impl<'a> FarmOptions<'a> {
    /// What a policy says, for tasks of a mean size and work, with neither results nor recovery.
    #[must_use]
    pub fn of(policy: &Policy, task: MeanTask) -> Self {
        Self {
            order: policy.order,
            ports: policy.ports.ports(),
            buffer_tasks: policy.buffer_tasks,
            task,
            tasks: None,
            planned_tasks_per_s: None,
            returns: false,
            recovers: false,
            level_end: policy.level_end,
            adapt: policy.adapt,
        }
    }

    #[must_use]
    pub fn with_tasks(self, tasks: u64) -> Self {
        Self { tasks: Some(tasks), ..self }
    }

    /// With the rates of a plan.
    #[must_use]
    pub fn with_plan(self, planned_tasks_per_s: &'a [f64]) -> Self {
        Self { planned_tasks_per_s: Some(planned_tasks_per_s), ..self }
    }

    /// Whether the end is levelled. Not with first come, first served, which has no preference.
    #[must_use]
    pub fn levels(&self) -> bool {
        self.level_end && order::rule(self.order) != Rule::Arrival && self.order != Order::RootOnly
    }

    /// With results that go back up, and a memory of what is out.
    #[must_use]
    pub fn with_recovery(self) -> Self {
        Self { returns: true, recovers: true, ..self }
    }

    /// What an order may look at when it places a child.
    pub(crate) fn candidate(&self, platform: &Platform, tree: &Tree, child: u32) -> Candidate {
        let node = &platform.nodes[child as usize];
        let parent = &platform.nodes[tree.parent[child as usize] as usize];
        Candidate {
            ports: self.ports,
            task: self.task,
            own_compute_per_s: parent.compute_per_s.get(),
            compute_per_s: node.compute_per_s.get(),
            receive_limit_mb_per_s: node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
            ir_send_s_per_mb: node.ir_send_s_per_mb.get(),
            planned_tasks_per_s: self.planned_tasks_per_s.map_or(0.0, |rates| rates[child as usize]),
        }
    }
}
