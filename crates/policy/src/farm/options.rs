//! Options of a farm that all its nodes share.

use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::mean_task::MeanTask;
use super::order::{self, Candidate, Rule};
use super::outside::Outside;

/// Options of a farm that all its nodes share.
#[derive(Clone, Copy, Debug)]
pub struct FarmOptions<'a> {
    pub order: Order,
    pub ports: Ports,
    /// Tasks requested or waiting beyond the one being computed. `None`: chosen per node.
    pub buffer_tasks: Option<u64>,
    pub task: MeanTask,
    /// Size of the result that each task sends back up, MB.
    pub result_mb: f64,
    /// Number of tasks. `None`: unknown or unlimited.
    pub tasks: Option<u64>,
    /// Planned rate of each node, tasks/s, in the platform's order. Required by the order `planned`.
    pub planned_tasks_per_s: Option<&'a [f64]>,
    /// What the rest of the tree says of these nodes, if the platform holds only a subtree. `None`: it is whole.
    pub outside: Option<Outside>,
    /// Whether results are sent back up.
    pub returns: bool,
    /// Whether outstanding tasks are recorded, so that those of a lost child are recovered. Requires results.
    pub recovers: bool,
    /// Whether the last tasks go only to nodes that finish them as early as the others: see `ending`.
    pub level_end: bool,
    /// Whether keys, paces and buffers follow observations: see [`Estimator`](super::estimate::Estimator).
    pub adapt: bool,
}

impl<'a> FarmOptions<'a> {
    /// The options of a policy, for tasks of a mean size and work, with neither results nor recovery.
    #[must_use]
    pub fn of(policy: &Policy, task: MeanTask) -> Self {
        Self {
            order: policy.order,
            ports: policy.ports.ports(),
            buffer_tasks: policy.buffer_tasks,
            task,
            result_mb: 0.0,
            tasks: None,
            planned_tasks_per_s: None,
            outside: None,
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

    /// Adds the rates of a plan.
    #[must_use]
    pub fn with_plan(self, planned_tasks_per_s: &'a [f64]) -> Self {
        Self { planned_tasks_per_s: Some(planned_tasks_per_s), ..self }
    }

    /// Returns what a task moves over each link on its way, in both directions, MB.
    #[must_use]
    pub fn moved_mb(&self) -> f64 {
        self.task.size_mb + self.result_mb
    }

    /// Whether the end is levelled. Never with first come, first served, which has no preference, with `root-only`, or
    /// with a policy of the user's own.
    #[must_use]
    pub fn levels(&self) -> bool {
        let prefers = !matches!(self.order, Order::RootOnly | Order::Own(_));
        self.level_end && order::rule(self.order) != Rule::Arrival && prefers
    }

    /// Adds results that are sent back up, and the recovery of outstanding tasks.
    #[must_use]
    pub fn with_recovery(self) -> Self {
        Self { returns: true, recovers: true, ..self }
    }

    /// The inputs of an order for a child.
    pub(crate) fn candidate(&self, platform: &Platform, tree: &Tree, child: u32) -> Candidate {
        let node = &platform.nodes[child as usize];
        let parent = &platform.nodes[tree.parent[child as usize] as usize];
        Candidate {
            ports: self.ports,
            task: self.task,
            result_mb: self.result_mb,
            own_compute_per_s: parent.compute_per_s.get(),
            compute_per_s: node.compute_per_s.get(),
            receive_limit_mb_per_s: node.link_mb_per_s().unwrap_or(f64::INFINITY),
            ir_send_s_per_mb: node.ir_send_s_per_mb.get(),
            planned_tasks_per_s: self.planned_tasks_per_s.map_or(0.0, |rates| rates[child as usize]),
        }
    }
}
