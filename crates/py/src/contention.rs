//! The contention model for Python: messages of several flows on links and in interfaces, in closed form.

use crosswind_model::contention::delay::{Flows, Saturated};
use crosswind_model::contention::{EffectiveRatio, message_rate as rate};
use crosswind_model::law::Formula;
use crosswind_model::streams::promise;
use crosswind_schema::StreamsExperiment;
use pyo3::prelude::*;

use crate::errors;
use crate::model::{raise, word};
use crate::schema::json;

pub fn formula_of(py: Python<'_>, formula: &str) -> PyResult<Formula> {
    word(py, "formula", formula, "corrected, literal")
}

/// Parses the form of the effective ratio.
fn form_of(py: Python<'_>, effective: &str) -> PyResult<EffectiveRatio> {
    let wrong = |error| errors::raise(py, "DescriptionError", &format!("effective: {error}"), "argument", None);
    serde_json::from_str(effective).map_err(wrong)
}

/// Returns the messages per second of a link (gamma).
#[pyfunction]
fn message_rate(py: Python<'_>, link_mb_per_s: f64, message_bytes: f64, formula: &str) -> PyResult<f64> {
    rate(link_mb_per_s, message_bytes, formula_of(py, formula)?).map_err(|e| raise(py, &e))
}

/// Returns the fraction of a link that flows use (delta): `(ratio, whether it was measured)`. `effective` is the
/// form, as JSON.
#[pyfunction]
fn effective_ratio(py: Python<'_>, effective: &str, flows: u32) -> PyResult<(f64, bool)> {
    let form = form_of(py, effective)?;
    Ok((form.of(flows).map_err(|e| raise(py, &e))?, form.is_measured(flows)))
}

/// The saturated link: its name, the requested rate, and the rate that it carries.
type Beyond = Option<(String, f64, f64)>;

/// Returns the delay ratio of a parallel job's messages (eta): `(over managed, over unmanaged, the saturated link)`.
#[pyfunction]
#[pyo3(signature = (pattern, link, parallel, local, effective, formula, local_target, at_targets))]
#[allow(clippy::too_many_arguments)] // what the paper's forms depend on
fn delay_ratio(
    py: Python<'_>,
    pattern: &str,
    link: f64,
    parallel: f64,
    local: Vec<f64>,
    effective: &str,
    formula: &str,
    local_target: &str,
    at_targets: Option<Vec<Vec<u32>>>,
) -> PyResult<(f64, f64, Beyond)> {
    let pattern = word(py, "pattern", pattern, "many-to-one, one-to-many, each-to-many, all-to-all")?;
    let local_target = word(py, "local_target", local_target, "same, elsewhere")?;
    let (form, formula) = (form_of(py, effective)?, formula_of(py, formula)?);
    let flows = Flows { link, parallel, local: &local, effective: &form, formula };
    let found = flows.of(pattern, local_target, at_targets.as_deref().unwrap_or_default());
    let found = found.map_err(|error| raise(py, &error))?;
    let beyond = found.saturated.map(|Saturated { link, wanted, carries }| (link, wanted, carries));
    Ok((found.over_managed, found.over_unmanaged, beyond))
}

/// Returns the guarantees of the queues for the local class, at one point of an experiment of kind streams, as JSON.
#[pyfunction]
fn streams_promise(py: Python<'_>, point: &str, slowdown: f64) -> PyResult<String> {
    let point =
        StreamsExperiment::from_json(point.as_bytes(), "experiment").map_err(|e| errors::description(py, &e))?;
    json(&promise(&point, slowdown).map_err(|e| raise(py, &e))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(message_rate, module)?,
        wrap_pyfunction!(effective_ratio, module)?,
        wrap_pyfunction!(delay_ratio, module)?,
        wrap_pyfunction!(streams_promise, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
