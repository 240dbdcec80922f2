//! Run settings of a farm's point, as sent to every live agent.

use std::collections::HashMap;

use crosswind_agent::settings::{Patience, Recording, RunSettings, TaskLimits, Work};
use crosswind_schema::DescriptionError;
use crosswind_schema::error::Problem;
use crosswind_schema::experiment::Order;
use crosswind_schema::units::Quantity;
use serde::Deserialize;

use crate::ExperimentError;
use crate::farm::FarmPoint;
use crate::work::WorkOf;

/// Heartbeat interval, s, and the most heartbeats per second that a node is to answer, if silence permits it.
const HEARTBEAT_S: f64 = 0.5;
const HEARTBEATS_PER_S: f64 = 8000.0;

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
        self.check_live(work)?;
        let mut children: HashMap<&str, usize> = HashMap::new();
        for parent in self.platform.nodes.iter().filter_map(|node| node.parent.as_deref()) {
            *children.entry(parent).or_default() += 1;
        }
        let widest = children.into_values().max().unwrap_or(0);
        let work = work.to_live(&self.experiment.execution, workload.result_size_mb.get())?;
        let platform = self.platform.clone().into_owned();
        let mut run = RunSettings::new(platform, self.experiment.policy.clone(), work, mean);
        // Tasks that arrive later are not announced.
        run.tasks = (!self.tasks_arrive()).then_some(self.tasks.count);
        let emulated = matches!(run.work, Work::Emulated { .. });
        let results = if emulated { workload.result_size_mb.get() } else { 0.0 };
        run.planned_tasks_per_s = self.planned_tasks_per_s(results)?;
        run.changes.clone_from(&self.experiment.changes);
        run.patience = Patience {
            heartbeat_s: HEARTBEAT_S.max(widest as f64 / HEARTBEATS_PER_S).min(limits.silence_s / 4.0),
            silence_s: limits.silence_s,
            start_s: limits.start_s,
        };
        run.task_limits = TaskLimits {
            timeout_s: limits.task_timeout_s,
            memory_mb: limits.task_memory_mb,
            grace_s: limits.grace_s,
            retries: limits.retries,
        };
        run.recording = Recording { trace, log: trace, printed: false };
        Ok(run)
    }

    /// Refuses what only simulated runs take into account.
    fn check_live(&self, work: &WorkOf) -> Result<(), DescriptionError> {
        let refused = |field: String, sentence: &str| Err(Problem::Value(sentence.into()).at(field));
        let (workload, experiment) = (&self.experiment.workload, &self.experiment);
        if let Order::Own(_) = experiment.policy.order {
            let sentence = "is a policy of your own, which agents do not run; choose a built-in order, or --on sim";
            return refused("policy.order".into(), sentence);
        }
        if self.tasks.classes.is_some() {
            let sentence = "gives tasks classes, which agents do not know; run it with --on sim, or leave it out";
            return refused("workload.class".into(), sentence);
        }
        let result_mb = workload.result_size_mb.get();
        if result_mb > 0.0 && !matches!(work.kind.as_str(), "emulated" | "command" | "callable") {
            let sentence = format!(
                "is {result_mb} MB, and the results of execution.compute = {:?} are empty; leave it out, or compute \
                 \"emulated\"",
                work.kind
            );
            return refused("workload.result_size_mb".into(), &sentence);
        }
        if !experiment.failures.is_empty() {
            let sentence = "draws failures of nodes in virtual time; live runs have only those that happen to them: run it \
                            with --on sim, or leave it out";
            return refused("failure[0]".into(), sentence);
        }
        for (at, change) in experiment.changes.iter().enumerate() {
            for (name, given) in [("leaves", change.leaves), ("joins", change.joins)] {
                if given {
                    let sentence = "is true, and agents do not leave or join by themselves; change rates, run it with --on \
                                    sim, or end the process of the agent";
                    return refused(format!("change[{at}].{name}"), sentence);
                }
            }
            if work.kind != "emulated" {
                let sentence = format!(
                    "changes rates, and with execution.compute = {:?} they are those of this machine; compute \"emulated\", \
                     or run it with --on sim",
                    work.kind
                );
                return refused(format!("change[{at}]"), &sentence);
            }
        }
        Ok(())
    }
}
