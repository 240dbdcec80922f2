//! `crosswind-access` for Python: a cluster's certificates.

use std::path::PathBuf;

use crosswind_access::AccessError;
use crosswind_access::authority::{self, Node};
use pyo3::prelude::*;

use crate::errors;
use crate::schema::json;

pub(crate) fn exception(py: Python<'_>, error: &AccessError) -> PyErr {
    let class = if matches!(error, AccessError::Full { .. }) { "CrosswindError" } else { "DescriptionError" };
    errors::raise(py, class, &error.to_string(), error.code(), Some(error.hint()))
}

/// Creates a certificate and a key, valid for `days` days, for each node (JSON: a list of `{name, hosts, parent}`).
#[pyfunction]
fn make_certificates(py: Python<'_>, directory: PathBuf, nodes: &str, days: u32) -> PyResult<()> {
    let nodes: Vec<Node> = serde_json::from_str(nodes)
        .map_err(|error| errors::raise(py, "DescriptionError", &error.to_string(), "value", None))?;
    py.detach(|| authority::make(&directory, &nodes, days)).map_err(|error| exception(py, &error))
}

/// Returns the contents of a directory's certificates, as JSON.
#[pyfunction]
fn show_certificates(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    json(&py.detach(|| authority::show(&directory)).map_err(|error| exception(py, &error))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(make_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(show_certificates, module)?)
}
