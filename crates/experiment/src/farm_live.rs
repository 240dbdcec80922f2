//! A farm's point as every live agent is told of it.

use crosswind_agent::settings::{Patience, Recording, RunSettings, Sizes, TaskLimits};
use crosswind_schema::units::Quantity;
use serde::Deserialize;

use crate::ExperimentError;
use crate::farm::FarmPoint;
use crate::work::WorkOf;

/// Longest time between two signs of life, s.
const HEARTBEAT_S: f64 = 0.5;

/// When agents and tasks are given up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Agents that are not there by then are done without, s.
    pub start_s: f64,
    /// An agent that sends nothing for so long is lost, s.
    pub silence_s: f64,
    /// How often a task that failed is tried again.
    pub retries: u32,
    /// Time after which a try of a task is ended and has failed, s; none: it takes as long as it takes.
    pub task_timeout_s: Option<f64>,
    /// Memory of all processes of a task together, MB; none: as much as there is. Commands only.
    pub task_memory_mb: Option<f64>,
    /// Time between SIGTERM and SIGKILL for what is left of a task's processes, s.
    pub grace_s: f64,
}

impl FarmPoint<'_> {
    /// What every agent of a live run is told. With `trace`, activities and logs for a replay are recorded.
    ///
    /// # Errors
    /// Work that agents cannot do, or a mean task that cannot be planned.
    pub fn live(&self, work: &WorkOf, limits: &Limits, trace: bool) -> Result<RunSettings, ExperimentError> {
        let mean = self.mean();
        let workload = &self.experiment.workload;
        Ok(RunSettings {
            platform: self.platform.clone().into_owned(),
            policy: self.experiment.policy.clone(),
            mean_size_mb: mean.size_mb,
            mean_work: mean.work,
            tasks: Some(self.tasks.count),
            planned_tasks_per_s: self.planned_tasks_per_s()?,
            changes: self.experiment.changes.clone(),
            work: work.told(&self.experiment.execution, workload.result_size_mb.get())?,
            patience: Patience {
                heartbeat_s: HEARTBEAT_S.min(limits.silence_s / 4.0),
                silence_s: limits.silence_s,
                start_s: limits.start_s,
            },
            task_limits: TaskLimits {
                timeout_s: limits.task_timeout_s,
                memory_mb: limits.task_memory_mb,
                grace_s: limits.grace_s,
                retries: limits.retries,
            },
            recording: Recording { trace, log: trace },
            sizes: Sizes::default(),
        })
    }
}
