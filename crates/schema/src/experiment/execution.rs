//! Execution: how a live run computes. Simulations ignore it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::{Compute, RankCompute};
use crate::error::{DescriptionError, Problem};
use crate::units::{PositiveSeconds, Quantity, TimeScale};

/// How a live run computes.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Execution {
    /// How an agent performs the work of a task.
    pub compute: Compute,
    /// Platform seconds per wall-clock second: 10 runs ten times as fast. Emulated runs only.
    pub time_scale: TimeScale,
    /// Time limit of one attempt of a task, s; after that the attempt has failed. Absent: no limit. Not for emulated
    /// tasks.
    // Written only if given, so that runs made before these fields existed still belong to the same experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_timeout_s: Option<PositiveSeconds>,
    /// Retries of a failed task.
    #[serde(skip_serializing_if = "is_zero")]
    pub task_retries: u32,
}

// By reference, as serde requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Execution {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let scale = self.time_scale.get();
        if self.compute != Compute::Emulated && scale != 1.0 {
            let problem = format!("is {scale}; it must be 1 unless execution.compute is \"emulated\"");
            return Err(Problem::Value(problem).at("execution.time_scale".into()));
        }
        if let (Compute::Emulated, Some(timeout)) = (self.compute, self.task_timeout_s) {
            let problem = format!(
                "is {} s; it must be left out where execution.compute is \"emulated\": the platform's rates say how long a task takes",
                timeout.get()
            );
            return Err(Problem::Value(problem).at("execution.task_timeout_s".into()));
        }
        Ok(())
    }
}

/// How a live run of a parallel program computes.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramExecution {
    /// How a rank spends the time of a computation.
    pub compute: RankCompute,
}
