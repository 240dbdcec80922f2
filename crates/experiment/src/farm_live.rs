//! Run settings of a farm's point, as sent to every live agent.

use crosswind_agent::settings::{Patience, Recording, RunSettings, Sizes, TaskLimits};
use crosswind_schema::units::Quantity;
use serde::Deserialize;

use crate::ExperimentError;
use crate::farm::FarmPoint;
use crate::work::WorkOf;

/// Heartbeat interval, s.
const HEARTBEAT_S: f64 = 0.5;

/// Time limits and other limits on agents and tasks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Time limit for agents to connect, s; missing agents are skipped.
    pub start_s: f64,
    /// Time without any message after which an agent counts as lost, s.
    pub silence_s: f64,
    /// Retries of a failed task.
    pub retries: u32,
    /// Time limit of one attempt of a task, s; after that the attempt has failed. `None`: no limit.
    pub task_timeout_s: Option<f64>,
    /// Memory limit of all processes of a task together, MB; `None`: no limit. Applies to commands only.
    pub task_memory_mb: Option<f64>,
    /// Time between SIGTERM and SIGKILL for the remaining processes of a task, s.
    pub grace_s: f64,
}

impl FarmPoint<'_> {
    /// Returns the settings for every agent of a live run. With `trace`, agents record activities, and logs for a
    /// replay.
    ///
    /// # Errors
    /// When agents cannot do the work, or the mean task cannot be planned.
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
            part: None,
        })
    }
}
