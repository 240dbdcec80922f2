//! Errors of the crates as exceptions of `crosswind.errors`, one to one.

use crosswind_schema::DescriptionError;
use pyo3::prelude::*;

/// Creates an instance of `crosswind.errors.{class}` with a message, a code and a hint.
pub fn raise(py: Python<'_>, class: &str, message: &str, code: &str, hint: Option<&str>) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let class = py.import("crosswind.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((message, code, hint))?))
    };
    build().unwrap_or_else(|error| error)
}

/// Creates a `DescriptionError`, exit code 2, for an invalid description.
pub fn description(py: Python<'_>, error: &DescriptionError) -> PyErr {
    raise(py, "DescriptionError", &error.to_string(), "description", error.hint().as_deref())
}
