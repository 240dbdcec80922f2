//! Runs in virtual time for Python: `crosswind-experiment`'s points, and the simulated matrix of overlap.

use crosswind_experiment::columns::Columns;
use crosswind_experiment::farm::FarmPoint;
use crosswind_experiment::undisturbed::{self, ProgramTexts};
use crosswind_experiment::{ExperimentError, columns, streams};
use crosswind_schema::{DescriptionError, Run, SimulatedOverlap, StreamsExperiment, StreamsRun};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;
use crate::recorded::RecordedRanks;
use crate::schema::{PyPlatform, json};
use crate::watched::watched;

pub fn exception(py: Python<'_>, error: &ExperimentError) -> PyErr {
    let (class, code) = match error {
        ExperimentError::Description(error) => return errors::description(py, error),
        ExperimentError::Program(_) => ("DescriptionError", "description"),
        ExperimentError::Recording(_) => ("DescriptionError", "recording"),
        ExperimentError::Plan(_) | ExperimentError::Work(_) | ExperimentError::NoPolicy(_) => {
            ("DescriptionError", "argument")
        }
        ExperimentError::Command(_) => ("DescriptionError", "command"),
        ExperimentError::Simulation(_) => ("InfeasibleError", "infeasible"),
        ExperimentError::WrongResult(_) => ("CrosswindError", "wrong"),
    };
    errors::raise(py, class, &error.to_string(), code, error.hint().as_deref())
}

pub fn table<'py>(py: Python<'py>, columns: Columns<'_>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, column) in columns {
        found.set_item(name, PyBytes::new_with(py, column.len(), |out| column.write(out).map_err(Into::into))?)?;
    }
    Ok(found)
}

/// Simulates one point of an experiment. Returns its entry in `runs.json` as JSON, and the columns of its trace.
///
/// `progress` is called periodically with the number of completed tasks, on the calling thread. An exception that it
/// raises ends the run.
#[pyfunction]
#[pyo3(signature = (platform, experiment, *, tasks_csv = None, trace = false, progress = None))]
fn simulate<'py>(
    py: Python<'py>,
    platform: &Bound<'py, PyPlatform>,
    experiment: &str,
    tasks_csv: Option<&[u8]>,
    trace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let platform = &platform.get().0;
    let done = watched(py, progress, |watch| {
        FarmPoint::from_json(platform, experiment.as_bytes(), tasks_csv)?.simulate(trace, watch)
    })?;
    let (run, trace) = done.map_err(|error| exception(py, &error))?;
    Ok((json(&run)?, trace.map(|trace| table(py, columns::of_trace(&trace))).transpose()?))
}

/// Adds bounds, warnings and flow times (`done_s`: when each task was done) to a live farm's run, as JSON.
#[pyfunction]
#[pyo3(signature = (platform, experiment, run, tasks_csv = None, done_s = Vec::new()))]
fn complete_farm(
    py: Python<'_>,
    platform: &Bound<'_, PyPlatform>,
    experiment: &str,
    run: &str,
    tasks_csv: Option<&[u8]>,
    done_s: Vec<f64>,
) -> PyResult<String> {
    let mut run: Run = serde_json::from_str(run).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
    let platform = &platform.get().0;
    let complete =
        || FarmPoint::from_json(platform, experiment.as_bytes(), tasks_csv)?.complete_live(&mut run, &done_s);
    py.detach(complete).map_err(|error: ExperimentError| exception(py, &error))?;
    json(&run)
}

/// Simulates one point of an experiment of kind program. Returns its entry in `runs.json` as JSON.
///
/// The disturbance is the one that the point names or contains; `goal` is the content of its GOAL file, `recording` the
/// recording of its program. `dedicated_s` is the time of the undisturbed program, if known. `bare` is the point without a disturbance; its run is then
/// cached. With neither, the undisturbed program is simulated too. `threads` share it and change nothing. `progress` is
/// called periodically with the number of started operations, on the calling thread. An exception of it ends the run.
#[pyfunction]
#[pyo3(signature = (
    point, disturbance = None, goal = None, recording = None, *, dedicated_s = None, bare = None, threads = 1, progress = None
))]
#[allow(clippy::too_many_arguments)] // Python's keywords
fn simulate_program(
    py: Python<'_>,
    point: &str,
    disturbance: Option<&str>,
    goal: Option<&str>,
    recording: Option<&Bound<'_, RecordedRanks>>,
    dedicated_s: Option<f64>,
    bare: Option<&str>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let texts = ProgramTexts { point, disturbance, goal, recording: recording.map(|ranks| &ranks.get().0), threads };
    let done = watched(py, progress, |watch| match (bare, dedicated_s) {
        (Some(bare), None) => texts.simulate_beside(bare, watch),
        _ => texts.simulate(dedicated_s, watch),
    })?;
    json(&done.map_err(|error| exception(py, &error))?)
}

/// Caches the run of an undisturbed point (`bare`) from another process: an entry of `runs.json` as JSON.
#[pyfunction]
#[pyo3(signature = (bare, goal, run))]
fn remember_undisturbed(py: Python<'_>, bare: &str, goal: Option<&str>, run: &str) -> PyResult<()> {
    let run = serde_json::from_str(run).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
    py.detach(|| undisturbed::remember(bare, goal, run)); // waits while a thread is simulating it
    Ok(())
}

fn streams_point(point: &str) -> Result<StreamsExperiment, DescriptionError> {
    StreamsExperiment::from_json(point.as_bytes(), "experiment")
}

/// Simulates one point of an experiment of kind streams. Returns its entry in `runs.json` as JSON, with the closed
/// forms.
///
/// `progress` is called periodically, and at the end of each measurement (each stream and each job alone, one queue,
/// the queues of the policy). It gets the number of frames that have arrived in all of them, on the calling thread.
/// An exception that it raises ends the run.
#[pyfunction]
#[pyo3(signature = (point, *, progress = None))]
fn simulate_streams(py: Python<'_>, point: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let done = watched(py, progress, |watch| streams::simulate(&streams_point(point)?, watch))?;
    json(&done.map_err(|error| exception(py, &error))?)
}

/// Adds the seed and the closed forms of its point to a run of streams, simulated or live; both as JSON.
#[pyfunction]
fn complete_streams(py: Python<'_>, point: &str, run: &str) -> PyResult<String> {
    let mut run: StreamsRun =
        serde_json::from_str(run).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
    let point = streams_point(point).map_err(|error| errors::description(py, &error))?;
    streams::complete(&mut run, &point).map_err(|error| exception(py, &error))?;
    json(&run)
}

/// Simulates a matrix of overlap. Takes and returns it as JSON.
///
/// `progress` is called periodically with the number of events of a run so far, on the calling thread. An exception
/// that it raises ends the run.
#[pyfunction]
#[pyo3(signature = (options, *, progress = None))]
fn simulate_overlap(py: Python<'_>, options: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let done = watched(py, progress, |watch| {
        let options = SimulatedOverlap::from_json(options.as_bytes(), "overlap")?;
        Ok(crosswind_sim::overlap::simulate(&options, watch)?)
    })?;
    json(&done.map_err(|error| exception(py, &error))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(simulate, module)?,
        wrap_pyfunction!(complete_farm, module)?,
        wrap_pyfunction!(simulate_program, module)?,
        wrap_pyfunction!(remember_undisturbed, module)?,
        wrap_pyfunction!(simulate_streams, module)?,
        wrap_pyfunction!(complete_streams, module)?,
        wrap_pyfunction!(simulate_overlap, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
