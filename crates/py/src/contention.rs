//! The contention model for Python: messages of several flows on links and in interfaces, in closed form.

use crosswind_model::ModelError;
use crosswind_model::contention::delay::{Flows, Saturated};
use crosswind_model::contention::{EffectiveRatio, LocalTarget, message_rate as rate};
use crosswind_model::law::Formula;
use crosswind_model::streams::promise;
use crosswind_schema::StreamsExperiment;
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors;
use crate::model::raise;
use crate::schema::json;

fn wrong(py: Python<'_>, message: &str) -> PyErr {
    errors::raise(py, "DescriptionError", message, "argument", None)
}

/// One of a few words.
fn chosen<T: Copy>(py: Python<'_>, field: &str, value: &str, permitted: &[(&str, T)]) -> PyResult<T> {
    permitted.iter().find(|(name, _)| *name == value).map(|(_, chosen)| *chosen).ok_or_else(|| {
        let names: Vec<&str> = permitted.iter().map(|(name, _)| *name).collect();
        wrong(py, &format!("{field} is {value:?}; it must be one of: {}", names.join(", ")))
    })
}

fn formula_of(py: Python<'_>, formula: &str) -> PyResult<Formula> {
    chosen(py, "formula", formula, &[("corrected", Formula::Corrected), ("literal", Formula::Literal)])
}

/// The form that a table describes.
fn form_of(py: Python<'_>, effective: &str) -> PyResult<EffectiveRatio> {
    serde_json::from_str(effective).map_err(|error| wrong(py, &format!("effective: {error}")))
}

/// Messages per second of a link (gamma).
#[pyfunction]
fn message_rate(py: Python<'_>, link_mb_per_s: f64, message_bytes: f64, formula: &str) -> PyResult<f64> {
    rate(link_mb_per_s, message_bytes, formula_of(py, formula)?).map_err(|e| raise(py, &e))
}

/// The part of a link that flows use (delta): `(ratio, whether it was measured)`; `effective` is the form, as JSON.
#[pyfunction]
fn effective_ratio(py: Python<'_>, effective: &str, flows: u32) -> PyResult<(f64, bool)> {
    let form = form_of(py, effective)?;
    Ok((form.of(flows).map_err(|e| raise(py, &e))?, form.is_measured(flows)))
}

/// Which link is beyond saturation: its name, what flows want of it, what it carries.
type Beyond = Option<(String, f64, f64)>;

/// How much later a parallel job's messages are (eta): `(over managed, over unmanaged, which link is beyond saturation)`.
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
    enum Pattern {
        ManyToOne,
        OneToMany,
        EachToMany,
        AllToAll,
    }
    let patterns = [
        ("many-to-one", &Pattern::ManyToOne),
        ("one-to-many", &Pattern::OneToMany),
        ("each-to-many", &Pattern::EachToMany),
        ("all-to-all", &Pattern::AllToAll),
    ];
    let pattern = chosen(py, "pattern", pattern, &patterns)?;
    let targets = [("same", LocalTarget::Same), ("elsewhere", LocalTarget::Elsewhere)];
    let local_target = chosen(py, "local_target", local_target, &targets)?;
    let (form, formula) = (form_of(py, effective)?, formula_of(py, formula)?);
    let flows = Flows { link, parallel, local: &local, effective: &form, formula };
    let found = match pattern {
        Pattern::ManyToOne => flows.many_to_one(local_target),
        Pattern::OneToMany => flows.one_to_many(),
        Pattern::EachToMany => flows.each_to_many(at_targets.as_deref().unwrap_or_default()),
        Pattern::AllToAll => flows.all_to_all(),
    };
    let found = found.map_err(|error: ModelError| raise(py, &error))?;
    let beyond = found.saturated.map(|Saturated { link, wanted, carries }| (link, wanted, carries));
    Ok((found.over_managed, found.over_unmanaged, beyond))
}

/// What the queues of one point of an experiment of kind streams promise the local class, as JSON.
#[pyfunction]
fn streams_promise(py: Python<'_>, point: &str, slowdown: f64) -> PyResult<String> {
    let point =
        StreamsExperiment::from_json(point.as_bytes(), "experiment").map_err(|e| errors::description(py, &e))?;
    let promised = promise(&point, slowdown).map_err(|e| raise(py, &e))?;
    let streams: Vec<Value> = promised
        .streams
        .iter()
        .map(|stream| serde_json::json!({"name": stream.name, "slowdown": stream.slowdown, "threshold": stream.threshold}))
        .collect();
    json(&serde_json::json!({
        "longest_wait_s": promised.longest_wait_s, "least_share": promised.least_share,
        "credit_wait_s": promised.credit_wait_s, "streams": streams,
    }))
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
