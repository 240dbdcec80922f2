//! `crosswind-disturb`'s recording of noise for Python. It runs on threads of its own; Python waits and stops it.

use std::sync::Mutex;
use std::time::Duration;

use crosswind_disturb::DisturbError;
use crosswind_disturb::leftovers::Leftover;
use crosswind_disturb::noise::options::RecordOptions;
use crosswind_disturb::noise::summary::summary;
use crosswind_disturb::noise::{Recorder, trace};
use crosswind_disturb::preemption::PreemptionRecorder;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::inject::exception;
use crate::watched::locked;

#[pyclass(frozen, name = "NoiseRecorder", module = "crosswind._core")]
struct PyNoiseRecorder(Mutex<Recorder>);

#[pymethods]
impl PyNoiseRecorder {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config: Result<RecordOptions, _> = serde_json::from_str(config);
        let config = config.map_err(|error| DisturbError::Setup(format!("the recording: {error}")));
        let recorder = config.and_then(RecordOptions::checked).and_then(Recorder::start);
        recorder.map(|recorder| Self(Mutex::new(recorder))).map_err(|error| exception(py, &error))
    }

    /// Waits for its end, at most `timeout_s`. Returns whether it has ended.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        py.detach(|| locked(&self.0).wait(Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9))))
    }

    fn stop(&self) {
        locked(&self.0).stop();
    }

    /// Returns the seconds since its start.
    fn elapsed_s(&self) -> f64 {
        locked(&self.0).elapsed_s()
    }

    /// Returns a summary of the recording as JSON, and the recording as a disturbance in TOML; once, after the end.
    fn recording(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let result = py.detach(|| {
            let recording = locked(&self.0).recording()?;
            let disturbance = recording.disturbance(name).map(|disturbance| disturbance.to_toml()).transpose();
            let toml = disturbance.map_err(|error| DisturbError::Setup(error.to_string()))?;
            Ok((summary(&recording).to_string(), toml.unwrap_or_default()))
        });
        result.map_err(|error: DisturbError| exception(py, &error))
    }
}

/// A running recording of when ranks could not run.
#[pyclass(frozen, name = "PreemptionRecorder", module = "crosswind._core")]
struct PyPreemptionRecorder(Mutex<PreemptionRecorder>);

#[pymethods]
impl PyPreemptionRecorder {
    /// Starts it; an OSError says why the kernel's trace is not available.
    #[new]
    fn new(py: Python<'_>, cpus: Vec<usize>) -> PyResult<Self> {
        let recorder = py.detach(|| PreemptionRecorder::start(cpus)).map_err(PyOSError::new_err)?;
        Ok(Self(Mutex::new(recorder)))
    }

    /// Says which processes are ranks.
    fn follow(&self, processes: Vec<i32>) {
        locked(&self.0).follow(processes);
    }

    /// Ends it. Returns the absences of all processes, and the rest as JSON.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let found = py.detach(|| Ok(locked(&self.0).stop()?.encoded()));
        let (bytes, about) = found.map_err(|error: DisturbError| exception(py, &error))?;
        Ok((PyBytes::new(py, &bytes), about.to_string()))
    }
}

/// Returns the reason why the kernel's trace is not available here; None: it is available.
#[pyfunction]
fn no_trace(py: Python<'_>) -> Option<String> {
    py.detach(trace::permitted).err()
}

/// Returns what commands that were killed together with their guards have left in the kernel, as JSON: kind and name
/// of each.
#[pyfunction]
fn leftovers(py: Python<'_>) -> String {
    to_json(&py.detach(crosswind_disturb::leftovers::find))
}

/// Removes these leftovers, except stopped processes, and returns those removed.
#[pyfunction]
fn remove_leftovers(py: Python<'_>) -> String {
    to_json(&py.detach(crosswind_disturb::leftovers::remove))
}

fn to_json(found: &[Leftover]) -> String {
    let all: Vec<_> =
        found.iter().map(Leftover::described).map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
    json!(all).to_string()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNoiseRecorder>()?;
    module.add_class::<PyPreemptionRecorder>()?;
    module.add_function(wrap_pyfunction!(leftovers, module)?)?;
    module.add_function(wrap_pyfunction!(remove_leftovers, module)?)?;
    module.add_function(wrap_pyfunction!(no_trace, module)?)
}
