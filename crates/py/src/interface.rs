//! Messages of two classes through network interfaces in virtual time, for Python.

use crosswind_program::Skeleton;
use crosswind_schema::experiment::streams;
use crosswind_schema::{DescriptionError, StreamsExperiment, StreamsRun};
use crosswind_sim::SimError;
use crosswind_sim::interface::{Job, simulate_streams as run};
use pyo3::prelude::*;

use crate::errors;
use crate::schema::json;

enum Refusal {
    Description(DescriptionError),
    Run(SimError),
}

/// The messages of an experiment's jobs.
fn jobs(point: &StreamsExperiment) -> Result<Vec<Job>, Refusal> {
    let messages = |job: &streams::Job| {
        let parameters = job.parameters().map_err(Refusal::Description)?;
        let skeleton = Skeleton::new(&parameters, job.hosts.len() as u32);
        let supersteps = skeleton.supersteps().map(|step| {
            let messages = step.messages.iter().map(|message| (message.from, message.to, message.bytes));
            (step.compute_s, messages.collect())
        });
        Job::new(job.hosts.clone(), supersteps).map_err(Refusal::Run)
    };
    point.workload.jobs.iter().map(messages).collect()
}

fn simulated(point: &[u8], watch: &mut dyn FnMut(u64) -> bool) -> Result<StreamsRun, Refusal> {
    let point = StreamsExperiment::from_json(point, "experiment").map_err(Refusal::Description)?;
    run(&point, &jobs(&point)?, watch).map_err(Refusal::Run)
}

/// Simulates one point of an experiment of kind streams: its entry of `runs.json` as JSON.
///
/// `progress` is called now and then, and at the end of each of the measurements (each stream and each job alone, one queue, the
/// queues of the policy), with the frames that have arrived in all of them, on the calling thread; what it raises ends the run.
#[pyfunction]
#[pyo3(signature = (point, *, progress = None))]
fn simulate_streams(py: Python<'_>, point: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut raised = None;
    let mut watch = |frames: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (frames,)).map(drop))
        });
        told.map_err(|error| raised = Some(error)).is_ok()
    };
    let done = py.detach(|| simulated(point.as_bytes(), &mut watch));
    if let Some(error) = raised {
        return Err(error);
    }
    let run = done.map_err(|refusal| match refusal {
        Refusal::Description(error) => errors::description(py, &error),
        Refusal::Run(error) => errors::raise(py, "InfeasibleError", &error.to_string(), "infeasible", None),
    })?;
    json(&run)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_streams, module)?)
}
