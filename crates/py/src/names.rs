//! Names of inputs for Python.

use crosswind_live::farm::names::Names;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A list of names, which takes little room.
#[pyclass(name = "Names", module = "crosswind._core")]
#[derive(Default)]
struct PyNames(Names);

#[pymethods]
impl PyNames {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, name: &[u8]) {
        self.0.push(name);
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Returns the name at a position, or None beyond the last one.
    fn get<'py>(&self, py: Python<'py>, at: usize) -> Option<Bound<'py, PyBytes>> {
        self.0.get(at).map(|name| PyBytes::new(py, &name))
    }

    fn sort_from(&mut self, begin: usize) {
        self.0.sort_from(begin);
    }

    fn remove_repeated(&mut self) {
        self.0.remove_repeated();
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNames>()
}
