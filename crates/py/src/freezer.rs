//! `crosswind-linux`'s freezer for Python: freezes processes and control groups, and thaws them however this process
//! ends.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crosswind_linux::freezer::{Freezer, Means, Refusal, Target, permit_tracing_by};
use crosswind_linux::processes::Pid;
use pyo3::prelude::*;

use crate::errors;

fn exception(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let class = match refusal {
        Refusal::NotPermitted(_) | Refusal::Lost | Refusal::System(_) => "MeasurementError",
        _ => "DescriptionError",
    };
    let hint = refusal.hint();
    errors::raise(py, class, &refusal.to_string(), refusal.code(), Some(hint.as_str()).filter(|hint| !hint.is_empty()))
}

/// The guard process that freezes; it ends with this object, and everything is thawed.
#[pyclass(frozen, name = "Freezer", module = "crosswind._core")]
struct PyFreezer(Mutex<Option<Freezer>>);

impl PyFreezer {
    fn call<T: Send>(&self, py: Python<'_>, what: impl FnOnce(&Freezer) -> Result<T, Refusal> + Send) -> PyResult<T> {
        let result = py.detach(|| match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(freezer) => what(freezer),
            None => Err(Refusal::Lost),
        });
        result.map_err(|refusal| exception(py, &refusal))
    }
}

/// Something that can be frozen.
#[pyclass(frozen, name = "Frozen", module = "crosswind._core")]
struct PyTarget(Target);

#[pymethods]
impl PyTarget {
    /// How it is frozen: "tracing", "signals" or "freezer".
    #[getter]
    fn how(&self) -> &'static str {
        self.0.means.name()
    }

    /// Whether it would stay frozen if all processes of this process's control group were killed at once.
    #[getter]
    fn exposed(&self) -> bool {
        self.0.exposed
    }
}

#[pymethods]
impl PyFreezer {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let started = py.detach(Freezer::start);
        started.map(|freezer| Self(Mutex::new(Some(freezer)))).map_err(|error| {
            let message = format!("the watchdog could not be started ({error}), and nothing is stopped without it");
            errors::raise(py, "MeasurementError", &message, "unwatched", None)
        })
    }

    /// Process id of the guard; 0: it has ended.
    #[getter]
    fn pid(&self, py: Python<'_>) -> Pid {
        self.call(py, |freezer| Ok(freezer.pid())).unwrap_or(0)
    }

    /// Seizes processes with all their descendants: by tracing, or by signals where tracing is not permitted.
    #[pyo3(signature = (roots, *, by_signals=false))]
    fn seize(&self, py: Python<'_>, roots: Vec<Pid>, by_signals: bool) -> PyResult<PyTarget> {
        let means = by_signals.then_some(Means::Signals);
        self.call(py, |freezer| freezer.seize(&roots, means)).map(PyTarget)
    }

    /// Seizes a control group of version 2.
    fn seize_group(&self, py: Python<'_>, directory: PathBuf) -> PyResult<PyTarget> {
        self.call(py, |freezer| freezer.seize_group(&directory)).map(PyTarget)
    }

    /// Adds processes with all their descendants; those of another target move to this one.
    fn extend(&self, py: Python<'_>, target: &PyTarget, roots: Vec<Pid>) -> PyResult<()> {
        self.call(py, |freezer| freezer.extend(target.0, &roots))
    }

    /// Stops all of it until it is thawed, planned for `due_ns` (CLOCK_MONOTONIC). Returns whether all were stopped.
    fn freeze(&self, py: Python<'_>, target: &PyTarget, due_ns: u64) -> PyResult<bool> {
        self.call(py, |freezer| freezer.freeze(target.0, due_ns)).map(|frozen| frozen.all)
    }

    /// Postpones the planned thaw of a frozen target.
    fn defer(&self, py: Python<'_>, target: &PyTarget, due_ns: u64) -> PyResult<()> {
        self.call(py, |freezer| freezer.defer(target.0, due_ns))
    }

    fn thaw(&self, py: Python<'_>, target: &PyTarget) -> PyResult<()> {
        self.call(py, |freezer| freezer.thaw(target.0))
    }

    fn members(&self, py: Python<'_>, target: &PyTarget) -> PyResult<Vec<Pid>> {
        self.call(py, |freezer| freezer.members(target.0))
    }

    /// Makes the guard end a process group if this process ends without `close`.
    fn end_with_command(&self, py: Python<'_>, group: Pid) -> PyResult<()> {
        self.call(py, |freezer| freezer.end_with_command(group))
    }

    /// Reverts `end_with_command` for a process group.
    fn forget(&self, py: Python<'_>, group: Pid) -> PyResult<()> {
        self.call(py, |freezer| freezer.forget(group))
    }

    /// Thaws everything and waits for the end of the guard; closing twice is harmless.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

/// For a child between fork and exec: permits `tracer` to trace it, where only parents may.
#[pyfunction]
fn permit_tracing(tracer: Pid) {
    permit_tracing_by(tracer);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFreezer>()?;
    module.add_class::<PyTarget>()?;
    module.add_function(wrap_pyfunction!(permit_tracing, module)?)
}
