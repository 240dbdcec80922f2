//! `crosswind-model` for Python.

use crosswind_model::disturbance;
use crosswind_model::law::{Law, Receiving, Sending};
use crosswind_model::papers::homework;
use crosswind_model::{Columns, ModelError, Prepared, Task, fork};
use crosswind_schema::experiment::Order;
use crosswind_schema::plan::{LimitedBy, Method, Ports};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::de::DeserializeOwned;

use crate::contention::formula_of;
use crate::errors;
use crate::schema::{PyDisturbance, PyPlatform, json};

/// Creates a `DescriptionError`, exit code 2, for an invalid argument.
pub fn raise(py: Python<'_>, error: &ModelError) -> PyErr {
    let code = match error {
        ModelError::NoClosedForm { .. } => "no-closed-form",
        ModelError::TooHard { .. } => "too-hard",
        ModelError::Platform(_) => "description",
        _ => "argument",
    };
    let class = if code == "too-hard" { "InfeasibleError" } else { "DescriptionError" };
    errors::raise(py, class, &error.to_string(), code, error.hint().as_deref())
}

/// Parses one of a few words, spelled as in files.
pub fn word<T: DeserializeOwned>(py: Python<'_>, field: &str, value: &str, permitted: &str) -> PyResult<T> {
    serde_json::from_value(value.into()).map_err(|_| {
        let message = format!("{field} is {value:?}; it must be one of: {permitted}");
        errors::raise(py, "DescriptionError", &message, "argument", None)
    })
}

fn words(py: Python<'_>, ports: &str, method: &str) -> PyResult<(Ports, Method)> {
    Ok((word(py, "ports", ports, "single, multi")?, word(py, "method", method, "exact, greedy")?))
}

fn task_of(py: Python<'_>, size_mb: f64, work: f64, result_size_mb: f64) -> PyResult<Task> {
    Task::new(size_mb, work).and_then(|task| task.returning(result_size_mb)).map_err(|e| raise(py, &e))
}

/// Plans a platform and returns the JSON text of `plan.json`.
#[pyfunction]
#[pyo3(signature = (platform, task_size_mb, task_work, ports = "single", method = "exact", result_size_mb = 0.0))]
fn plan(
    py: Python<'_>,
    platform: &Bound<'_, PyPlatform>,
    task_size_mb: f64,
    task_work: f64,
    ports: &str,
    method: &str,
    result_size_mb: f64,
) -> PyResult<String> {
    let (ports, method) = words(py, ports, method)?;
    let task = task_of(py, task_size_mb, task_work, result_size_mb)?;
    let platform = &platform.get().0;
    json(&py.detach(|| crosswind_model::plan(platform, task, ports, method)).map_err(|e| raise(py, &e))?)
}

/// Returns which disturbances a barrier program tolerates: limits of the fields, and closed forms for the current
/// values, as JSON.
#[pyfunction]
fn tolerance(
    py: Python<'_>,
    disturbance: &Bound<'_, PyDisturbance>,
    ranks: u32,
    work_per_barrier_s: f64,
    slowdown: f64,
) -> PyResult<String> {
    let disturbance = &disturbance.get().0;
    let found = disturbance::tolerance(disturbance, ranks, work_per_barrier_s, slowdown).map_err(|e| raise(py, &e))?;
    json(&serde_json::json!({
        "disturbance": disturbance.name, "ranks": ranks, "work_per_barrier_s": work_per_barrier_s,
        "slowdown": slowdown, "expected": found.expected.by_name(), "limits": found.limits,
    }))
}

/// Returns the tasks per second of a fork graph whose single port serves in an order of the paper.
#[pyfunction]
fn fork_throughput(
    py: Python<'_>,
    platform: &Bound<'_, PyPlatform>,
    task_size_mb: f64,
    task_work: f64,
    order: &str,
) -> PyResult<f64> {
    let order: Order = word(py, "order", order, &Order::ALL.map(|order| order.described().0).join(", "))?;
    let task = Task::new(task_size_mb, task_work).map_err(|e| raise(py, &e))?;
    let platform = &platform.get().0;
    py.detach(|| fork::fork_throughput(platform, task, order)).map_err(|e| raise(py, &e))
}

/// A column: any buffer of float64, or a sequence of numbers.
struct Numbers(Vec<f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match PyBuffer::<f64>::get(&value) {
            Ok(buffer) => buffer.to_vec(value.py()).map(Self),
            Err(_) => value.extract().map(Self),
        }
    }
}

/// A column of indices: any buffer of int32, or a sequence of integers.
struct Indices(Vec<i32>);

impl<'a, 'py> FromPyObject<'a, 'py> for Indices {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match PyBuffer::<i32>::get(&value) {
            Ok(buffer) => buffer.to_vec(value.py()).map(Self),
            Err(_) => value.extract().map(Self),
        }
    }
}

/// Returns a column as bytes.
fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    encode: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * values.len(), |bytes| {
        for (to, &value) in bytes.chunks_exact_mut(N).zip(values) {
            to.copy_from_slice(&encode(value));
        }
        Ok(())
    })
}

/// Plans a platform given as columns; returns columns as bytes in native order.
#[pyfunction]
#[pyo3(signature = (parent, compute_per_s, send_limit_mb_per_s, receive_limit_mb_per_s, receive_limit_drop,
    ir_receive_s_per_mb, ir_send_s_per_mb, task_size_mb, task_work, ports = "single", method = "exact", result_size_mb = 0.0))]
#[allow(clippy::too_many_arguments)] // the columns of a platform
fn plan_rates<'py>(
    py: Python<'py>,
    parent: Indices,
    compute_per_s: Numbers,
    send_limit_mb_per_s: Numbers,
    receive_limit_mb_per_s: Numbers,
    receive_limit_drop: Numbers,
    ir_receive_s_per_mb: Numbers,
    ir_send_s_per_mb: Numbers,
    task_size_mb: f64,
    task_work: f64,
    ports: &str,
    method: &str,
    result_size_mb: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let (ports, method) = words(py, ports, method)?;
    let task = task_of(py, task_size_mb, task_work, result_size_mb)?;
    // The copies of the columns are dropped after the first of the two steps: for a million nodes they take 52 MB.
    let prepared = py.detach(move || {
        let columns = Columns {
            parent: &parent.0,
            compute_per_s: &compute_per_s.0,
            send_limit_mb_per_s: &send_limit_mb_per_s.0,
            receive_limit_mb_per_s: &receive_limit_mb_per_s.0,
            receive_limit_drop: &receive_limit_drop.0,
            ir_receive_s_per_mb: &ir_receive_s_per_mb.0,
            ir_send_s_per_mb: &ir_send_s_per_mb.0,
        };
        Prepared::new(&columns, task, ports)
    });
    let prepared = prepared.map_err(|e| raise(py, &e))?;
    let rates = py.detach(move || prepared.rates(method));
    let result = PyDict::new(py);
    result.set_item("throughput_tasks_per_s", rates.throughput_tasks_per_s)?;
    result.set_item("bound_tasks_per_s", rates.bound_tasks_per_s)?;
    result.set_item("gap_to_exact", rates.gap_to_exact())?;
    result.set_item("root_only_tasks_per_s", rates.root_only_tasks_per_s)?;
    for (name, values) in [
        ("computed_tasks_per_s", &rates.computed_tasks_per_s),
        ("received_tasks_per_s", &rates.received_tasks_per_s),
        ("gain_per_receive_mb_per_s", &rates.gain_per_receive_mb_per_s),
        ("gain_per_send_mb_per_s", &rates.gain_per_send_mb_per_s),
        ("gain_per_work_per_s", &rates.gain_per_work_per_s),
    ] {
        result.set_item(name, bytes(py, values, |value: f64| value.to_ne_bytes())?)?;
    }
    result.set_item("rank", bytes(py, &rates.rank, |rank| rank.to_ne_bytes())?)?;
    result.set_item("never_send", bytes(py, &rates.never_send, |never| [u8::from(never)])?)?;
    result.set_item("limited_by", bytes(py, &rates.limited_by, |limit| [limit as u8])?)?;
    result.set_item("limits", LimitedBy::NAMES)?;
    Ok(result)
}

/// Fits the law through k + 2 measured points: `(ir_receive_s_per_mb, [ir_send_s_per_mb])`.
#[pyfunction]
#[pyo3(signature = (compute_per_s, receiving, sending, formula = "corrected"))]
fn three_point(
    py: Python<'_>,
    compute_per_s: f64,
    receiving: Option<(f64, f64)>,
    sending: Vec<(f64, f64, f64)>,
    formula: &str,
) -> PyResult<(f64, Vec<f64>)> {
    let formula = formula_of(py, formula)?;
    let receiving = receiving.map(|(receive_mb_per_s, compute_per_s)| Receiving { receive_mb_per_s, compute_per_s });
    let sending: Vec<Sending> = sending
        .into_iter()
        .map(|(send_mb_per_s, receive_mb_per_s, compute_per_s)| Sending {
            send_mb_per_s,
            receive_mb_per_s,
            compute_per_s,
        })
        .collect();
    let law = Law::through(compute_per_s, receiving, &sending, formula).map_err(|e| raise(py, &e))?;
    Ok((law.ir_receive_s_per_mb, law.ir_send_s_per_mb))
}

/// Returns `(makespan, machine of each job)`: the optimum, proved within `budget` steps; with None, longest task
/// first.
#[pyfunction]
#[pyo3(signature = (times, machines, budget = None))]
fn makespan(py: Python<'_>, times: Vec<f64>, machines: usize, budget: Option<u64>) -> PyResult<(f64, Vec<u32>)> {
    let found = py.detach(|| match budget {
        Some(budget) => homework::exact_makespan(&times, machines, budget),
        None => homework::lpt(&times, machines),
    });
    found.map(|done| (done.makespan, done.machine)).map_err(|e| raise(py, &e))
}

/// Returns the largest ratio of longest-first to the optimum.
#[pyfunction]
fn lpt_ratio_bound(machines: usize) -> f64 {
    homework::lpt_ratio_bound(machines)
}

/// Returns jobs on which longest-first reaches its worst case.
#[pyfunction]
fn tight_family(machines: u32) -> Vec<f64> {
    homework::tight_family(machines)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("EXACT_BUDGET", homework::EXACT_BUDGET)?;
    for function in [
        wrap_pyfunction!(plan, module)?,
        wrap_pyfunction!(tolerance, module)?,
        wrap_pyfunction!(plan_rates, module)?,
        wrap_pyfunction!(fork_throughput, module)?,
        wrap_pyfunction!(three_point, module)?,
        wrap_pyfunction!(makespan, module)?,
        wrap_pyfunction!(lpt_ratio_bound, module)?,
        wrap_pyfunction!(tight_family, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
