//! Functions that tasks call, as objects of Python.

use std::sync::Arc;

use crosswind_live::farm::function::{Function, Shared};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyMemoryView;

use crate::buffers::{Buffer, Bytes};

/// A function that tasks call. It travels once to each node. `number` is its number in the run.
#[pyclass(frozen, name = "Function", module = "crosswind._core")]
pub struct PyFunction(pub Arc<Function>);

#[pymethods]
impl PyFunction {
    #[new]
    fn new(number: u64, data: PyBackedBytes) -> Self {
        Self(Function::new(number, Shared::new(data)))
    }

    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    fn __len__(&self) -> usize {
        self.0.bytes.as_slice().len()
    }

    /// Returns what `loads` makes of its bytes, once as long as this node keeps them.
    fn loaded(&self, py: Python<'_>, loads: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Some(loaded) = self.0.loaded.get().and_then(|loaded| loaded.downcast_ref::<Py<PyAny>>()) {
            return Ok(loaded.clone_ref(py));
        }
        let bytes = Bound::new(py, Buffer(Bytes::Shared(self.0.bytes.clone())))?;
        let loaded = loads.call1((PyMemoryView::from(&bytes.into_any())?,))?.unbind();
        // Another thread may have made it meanwhile: either will do.
        let _ = self.0.loaded.set(Box::new(loaded.clone_ref(py)));
        Ok(loaded)
    }
}
