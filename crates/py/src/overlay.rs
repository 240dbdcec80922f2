//! `crosswind_model::overlay` for Python.

use crosswind_model::Task;
use crosswind_model::overlay::{self, Search};
use crosswind_schema::Links;
use crosswind_schema::plan::Ports;
use pyo3::prelude::*;

use crate::errors;
use crate::model::{raise, word};
use crate::schema::json;

/// Checked links; `crosswind.Links` wraps them.
#[pyclass(frozen, name = "Links", module = "crosswind._core")]
pub struct PyLinks(Links);

#[pymethods]
impl PyLinks {
    #[staticmethod]
    #[pyo3(signature = (text, file = "links.toml"))]
    fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Links::from_toml(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (text, file = "links"))]
    fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Links::from_json(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    fn to_toml(&self) -> PyResult<String> {
        self.0.to_toml().map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
    }

    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }
}

/// The tree over these links whose exact plan is fastest, as JSON.
#[pyfunction]
#[pyo3(signature = (links, task_size_mb, task_work, ports, root = None, seed = 1, steps = None))]
#[allow(clippy::too_many_arguments)] // they are keywords in Python
fn build_tree(
    py: Python<'_>,
    links: &Bound<'_, PyLinks>,
    task_size_mb: f64,
    task_work: f64,
    ports: &str,
    root: Option<&str>,
    seed: u64,
    steps: Option<u64>,
) -> PyResult<String> {
    let ports: Ports = word(py, "ports", ports, "single, multi")?;
    let task = Task::new(task_size_mb, task_work).map_err(|e| raise(py, &e))?;
    let usual = Search::default();
    let search = Search { root, seed, steps: steps.unwrap_or(usual.steps), ..usual };
    let links = &links.get().0;
    json(&py.detach(|| overlay::build_tree(links, task, ports, &search)).map_err(|e| raise(py, &e))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLinks>()?;
    module.add_function(wrap_pyfunction!(build_tree, module)?)
}
