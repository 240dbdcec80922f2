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

/// An open GPU; `crosswind.gpu` decides which blocks it times.
#[pyclass(frozen, name = "Gpu", module = "crosswind._core")]
pub struct PyGpu(Gpu);

#[pymethods]
impl PyGpu {
    #[new]
    fn new(py: Python<'_>, index: usize) -> PyResult<Self> {
        py.detach(|| Gpu::open(index)).map(Self).map_err(|error| exception(py, &error))
    }

    /// Returns a description of the device, as JSON.
    fn about(&self) -> PyResult<String> {
        json(self.0.about())
    }

    /// Returns its current clocks, power and temperature, as JSON.
    fn condition(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.condition()))
    }

    /// Returns the unit of a kernel's work.
    #[staticmethod]
    fn unit(py: Python<'_>, kernel: &str) -> PyResult<&'static str> {
        Kernel::of_name(kernel).map(Kernel::unit).map_err(|error| exception(py, &error))
    }

    /// Returns the number of rounds with which one launch of a kernel takes about `seconds`.
    fn rounds_for(&self, py: Python<'_>, kernel: &str, seconds: f64) -> PyResult<u32> {
        py.detach(|| self.0.rounds_for(Kernel::of_name(kernel)?, seconds)).map_err(|error| exception(py, &error))
    }

    /// Returns the stream on which kernels run, as the number that PyTorch and CuPy accept as an external stream.
    fn stream(&self) -> u64 {
        self.0.stream()
    }

    /// Times one block (JSON) and returns seconds, work, MB into the device, out of it and within it, and the time
    /// when the last byte had moved. `enqueue` takes the number of launches and puts that much work on the stream;
    /// the block then has no kernel.
    #[pyo3(signature = (block, enqueue=None))]
    fn time<'py>(&self, py: Python<'py>, block: &str, enqueue: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let block: Block = serde_json::from_str(block)
            .map_err(|error| errors::raise(py, "DescriptionError", &error.to_string(), "gpu", None))?;
        let mut raised = None;
        let timed = py.detach(|| match &enqueue {
            None => self.0.time(&block, None),
            Some(function) => self.0.time(&block, Some(&mut |calls| called(function, calls, &mut raised))),
        });
        let timed = timed.map_err(|error| raised.unwrap_or_else(|| exception(py, &error)))?;
        let table = PyDict::new(py);
        table.set_item("dt_s", timed.seconds)?;
        table.set_item("work", timed.work)?;
        table.set_item("to_device_mb", timed.to_device_mb)?;
        table.set_item("to_host_mb", timed.to_host_mb)?;
        table.set_item("within_mb", timed.within_mb)?;
        table.set_item("moved_s", timed.moved_s)?;
        Ok(table)
    }

    /// Calls a function behind work of about `lead_s` on its stream. Returns the seconds of that work, until the
    /// calls had returned, and of the enqueued work.
    fn ahead(&self, py: Python<'_>, enqueue: Py<PyAny>, calls: u32, lead_s: f64) -> PyResult<(f64, f64, f64)> {
        let mut raised = None;
        let found = py.detach(|| self.0.ahead(calls, lead_s, &mut |calls| called(&enqueue, calls, &mut raised)));
        let found = found.map_err(|error| raised.unwrap_or_else(|| exception(py, &error)))?;
        Ok((found.lead_s, found.host_s, found.gpu_s))
    }
}

/// Calls a Python function and stores the exception that it raises.
fn called(function: &Py<PyAny>, calls: u32, raised: &mut Option<PyErr>) -> Result<(), GpuError> {
    Python::attach(|py| function.call1(py, (calls,))).map(drop).map_err(|error| {
        *raised = Some(error);
        GpuError::Function
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGpu>()
}
