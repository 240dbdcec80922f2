//! Streams of messages of two classes through network interfaces, in virtual time.

use crosswind_program::Skeleton;
use crosswind_schema::experiment::streams;
use crosswind_schema::{StreamsExperiment, StreamsRun};
use crosswind_sim::interface::{Job, simulate_streams};

use crate::ExperimentError;

/// Returns the messages of an experiment's jobs.
fn jobs(point: &StreamsExperiment) -> Result<Vec<Job>, ExperimentError> {
    let messages = |job: &streams::Job| {
        let parameters = job.parameters()?;
        let skeleton = Skeleton::new(&parameters, job.hosts.len() as u32);
        let supersteps = skeleton.supersteps().map(|step| {
            let messages = step.messages.iter().map(|message| (message.from, message.to, message.bytes));
            (step.compute_s, messages.collect())
        });
        Ok(Job::new(job.hosts.clone(), supersteps)?)
    };
    point.workload.jobs.iter().map(messages).collect()
}

/// Simulates a point and returns its run with the closed forms. `watch` is called periodically with the number of
/// frames that have arrived; false ends the run.
///
/// # Errors
/// When a job cannot run on its hosts, or the streams do not end.
pub fn simulate(point: &StreamsExperiment, watch: &mut dyn FnMut(u64) -> bool) -> Result<StreamsRun, ExperimentError> {
    let mut run = simulate_streams(point, &jobs(point)?, watch)?;
    complete(&mut run, point)?;
    Ok(run)
}

/// Adds the seed and the closed forms of its point to a run, simulated or live. Closed forms that the run has are
/// kept.
///
/// # Errors
/// When the closed forms of the point cannot be computed.
pub fn complete(run: &mut StreamsRun, point: &StreamsExperiment) -> Result<(), ExperimentError> {
    run.seed = point.seed;
    for (name, value) in crosswind_model::streams::closed_forms(point)? {
        run.bounds.entry(name).or_insert(value);
    }
    Ok(())
}
