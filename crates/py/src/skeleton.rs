//! Communication of NAS kernels, for Python: `crates/program/src/nas`.

use crosswind_program::Skeleton;
use crosswind_schema::experiment::parameters::NasParameters;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors;

/// Returns totals of a kernel on `hosts` hosts, as JSON: messages, bytes, compute time of each host, supersteps.
#[pyfunction]
#[pyo3(signature = (program, hosts, parameters = "{}"))]
fn skeleton(py: Python<'_>, program: &str, hosts: u32, parameters: &str) -> PyResult<String> {
    let fields: Map<String, Value> = serde_json::from_str(parameters)
        .map_err(|error| errors::raise(py, "DescriptionError", &format!("parameters: {error}"), "argument", None))?;
    let parameters = NasParameters::read(program, &fields).map_err(|error| errors::description(py, &error))?;
    let skeleton = Skeleton::new(&parameters, hosts);
    Ok(json!({
        "program": program,
        "hosts": skeleton.hosts(),
        "supersteps": skeleton.supersteps().len(),
        "messages": skeleton.messages(),
        "bytes": skeleton.bytes(),
        "compute_s": skeleton.compute_s(),
    })
    .to_string())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(skeleton, module)?)
}
