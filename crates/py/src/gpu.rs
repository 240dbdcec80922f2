//! `crosswind-gpu` for Python.

use crosswind_gpu::{Block, Gpu, GpuError, Kernel};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::schema::json;

fn exception(py: Python<'_>, error: &GpuError) -> PyErr {
    let class = match error {
        GpuError::Value { .. } | GpuError::NoDevice { .. } => "DescriptionError",
        _ => "MeasurementError",
    };
    let hint = Some(error.hint()).filter(|hint| !hint.is_empty());
    errors::raise(py, class, &error.to_string(), error.code(), hint)
}

/// One GPU, opened; `crosswind.gpu` decides which blocks it times.
#[pyclass(frozen, name = "Gpu", module = "crosswind._core")]
pub struct PyGpu(Gpu);

#[pymethods]
impl PyGpu {
    #[new]
    fn new(py: Python<'_>, index: usize) -> PyResult<Self> {
        py.detach(|| Gpu::open(index)).map(Self).map_err(|error| exception(py, &error))
    }

    /// What the device is, as JSON.
    fn about(&self) -> PyResult<String> {
        json(self.0.about())
    }

    /// Its clocks, power and temperature now, as JSON.
    fn condition(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.condition()))
    }

    /// Unit of a kernel's work.
    #[staticmethod]
    fn unit(py: Python<'_>, kernel: &str) -> PyResult<&'static str> {
        Kernel::of_name(kernel).map(Kernel::unit).map_err(|error| exception(py, &error))
    }

    /// Rounds with which one launch of a kernel lasts about so long, s.
    fn rounds_for(&self, py: Python<'_>, kernel: &str, seconds: f64) -> PyResult<u32> {
        py.detach(|| self.0.rounds_for(Kernel::of_name(kernel)?, seconds)).map_err(|error| exception(py, &error))
    }

    /// Times one block (JSON): seconds, work, MB into the device, out of it and within it, and when the last byte had moved.
    fn time<'py>(&self, py: Python<'py>, block: &str) -> PyResult<Bound<'py, PyDict>> {
        let block: Block = serde_json::from_str(block)
            .map_err(|error| errors::raise(py, "DescriptionError", &error.to_string(), "gpu", None))?;
        let timed = py.detach(|| self.0.time(&block)).map_err(|error| exception(py, &error))?;
        let table = PyDict::new(py);
        table.set_item("dt_s", timed.seconds)?;
        table.set_item("work", timed.work)?;
        table.set_item("to_device_mb", timed.to_device_mb)?;
        table.set_item("to_host_mb", timed.to_host_mb)?;
        table.set_item("within_mb", timed.within_mb)?;
        table.set_item("moved_s", timed.moved_s)?;
        Ok(table)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGpu>()
}
