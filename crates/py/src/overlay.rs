//! `crosswind_model::overlay` for Python.

use crosswind_model::Task;
use crosswind_model::overlay::{self, Search};
use crosswind_schema::plan::Ports;
use pyo3::prelude::*;

use crate::model::{raise, word};
use crate::schema::{PyLinks, json};

/// Returns the tree over these links whose exact plan is fastest, as JSON.
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
    module.add_function(wrap_pyfunction!(build_tree, module)?)
}
