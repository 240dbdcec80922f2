//! `crosswind-disturb`'s injection for Python. It runs on its own threads; Python waits, checks signals, and stops
//! it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosswind_disturb::DisturbError;
use crosswind_disturb::inject::options::InjectOptions;
use crosswind_disturb::inject::script::{Cause, Described, Script as _};
use crosswind_disturb::inject::summary::{preview, summary};
use crosswind_disturb::inject::{InjectConfig, Injection, group, hold, priority, processes};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::watched::locked;

pub fn exception(py: Python<'_>, error: &DisturbError) -> PyErr {
    let class = match error {
        DisturbError::Description(error) => return errors::description(py, error),
        DisturbError::Value { .. } | DisturbError::Setup(_) => "DescriptionError",
        DisturbError::Lost(_) => "AgentLost",
        DisturbError::System { .. } => "MeasurementError",
    };
    errors::raise(py, class, &error.to_string(), error.code(), None)
}

/// Parses the configuration and the script from Python.
fn prepared(config: &str, disturbance: &[u8], file: &str) -> Result<(InjectConfig, Described, String), DisturbError> {
    let options: InjectOptions =
        serde_json::from_str(config).map_err(|error| DisturbError::Setup(format!("the injection: {error}")))?;
    options.checked(disturbance, file)
}

/// A running injection into a command.
#[pyclass(frozen, name = "Injection", module = "crosswind._core")]
struct PyInjection {
    inner: Mutex<Injection>,
    causes: Vec<Cause>,
    name: String,
}

#[pymethods]
impl PyInjection {
    #[new]
    fn new(py: Python<'_>, config: &str, disturbance: &[u8], file: &str) -> PyResult<Self> {
        let prepared = prepared(config, disturbance, file);
        let (config, script, name) = prepared.map_err(|error| exception(py, &error))?;
        let causes = script.causes().to_vec();
        let inner = py.detach(|| Injection::start(config, Arc::new(script))).map_err(|error| exception(py, &error))?;
        Ok(Self { inner: Mutex::new(inner), causes, name })
    }

    /// Waits for its end, at most `timeout_s`. Returns whether it has ended.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        py.detach(|| locked(&self.inner).wait(Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9))))
    }

    /// Requests its end with a signal, which the command also receives.
    fn stop(&self, signal: i32) {
        locked(&self.inner).stop(signal);
    }

    /// Returns the seconds since its start.
    fn elapsed_s(&self) -> f64 {
        locked(&self.inner).elapsed_s()
    }

    /// Returns the record of the injection as JSON, and a disturbance in TOML that replays it; once, after the end.
    fn outcome(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let outcome = py.detach(|| locked(&self.inner).outcome()).map_err(|error| exception(py, &error))?;
        let recorded = outcome.recorded(&format!("{}, as it was injected", self.name), &self.causes);
        let toml = recorded.map(|recorded| recorded.to_toml()).transpose();
        let toml = toml.map_err(|error| exception(py, &DisturbError::Setup(error.to_string())))?;
        Ok((summary(&outcome, &self.causes).to_string(), toml.unwrap_or_default()))
    }
}

/// Previews an injection without running it, as JSON: the method for each cause, and the first seconds of rank 0.
#[pyfunction]
fn injection_preview(py: Python<'_>, config: &str, disturbance: &[u8], file: &str, horizon_s: f64) -> PyResult<String> {
    let shown = prepared(config, disturbance, file)
        .and_then(|(config, script, name)| preview(&config, &script, &name, horizon_s));
    shown.map(|shown| shown.to_string()).map_err(|error| exception(py, &error))
}

/// Whether programs started by this process may be traced; otherwise they are stopped by signals.
#[pyfunction]
fn injection_traces(py: Python<'_>) -> bool {
    py.detach(hold::permitted).unwrap_or(true) // if no process can be started, the injection itself reports it
}

/// Returns the means of injection on this machine, as JSON: the priority of the thread that takes a CPU, and the
/// reason why groups cannot be frozen (null: they can).
#[pyfunction]
fn injection_means(py: Python<'_>) -> String {
    let (urgency, freezer) = py.detach(|| (priority::permitted(), group::permitted()));
    json!({"priority": urgency.name(), "no_freezer": freezer.err()}).to_string()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInjection>()?;
    module.add("RANK_VARIABLES", processes::VARIABLES.to_vec())?;
    module.add_function(wrap_pyfunction!(injection_preview, module)?)?;
    module.add_function(wrap_pyfunction!(injection_traces, module)?)?;
    module.add_function(wrap_pyfunction!(injection_means, module)?)
}
