//! Burners and a ping on simulated processors, for Python.

use crosswind_schema::SimulatedOverlap;
use crosswind_sim::overlap::simulate;
use pyo3::prelude::*;

use crate::errors;
use crate::schema::json;

/// Simulates a matrix of overlap, given as JSON: the matrix as JSON.
///
/// `progress` is called now and then with the events of a run so far, on the calling thread; what it raises ends the run.
#[pyfunction]
#[pyo3(signature = (asked, *, progress = None))]
fn simulate_overlap(py: Python<'_>, asked: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let asked =
        SimulatedOverlap::from_json(asked.as_bytes(), "overlap").map_err(|error| errors::description(py, &error))?;
    let mut raised = None;
    let mut watch = |events: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (events,)).map(drop))
        });
        told.map_err(|error| raised = Some(error)).is_ok()
    };
    let done = py.detach(|| simulate(&asked, &mut watch));
    if let Some(error) = raised {
        return Err(error);
    }
    let matrix = done.map_err(|error| errors::raise(py, "InfeasibleError", &error.to_string(), "infeasible", None))?;
    json(&matrix)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_overlap, module)?)
}
