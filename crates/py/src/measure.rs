//! `crosswind-measure` for Python.

use std::path::PathBuf;
use std::sync::Mutex;

use crosswind_access::Access;
use crosswind_measure::foreign::check;
use crosswind_measure::kernel::{Kernel, KernelFactory};
use crosswind_measure::link::PeerLink;
use crosswind_measure::overlap::burn::{self, Burner};
use crosswind_measure::overlap::ping::{Ping, PingConfig};
use crosswind_measure::probe::{AMOUNTS, Block, Row};
use crosswind_measure::{Config, MeasureError, Probe, peer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors;
use crate::schema::json;
use crate::watched::locked;

/// Creates the exception for each kind of error: invalid value, lost peer, other.
fn exception(py: Python<'_>, error: &MeasureError) -> PyErr {
    let class = match error {
        MeasureError::Value { .. } | MeasureError::Access(_) => "DescriptionError",
        MeasureError::Lost { .. } => "AgentLost",
        MeasureError::Interrupted => return pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        _ => "MeasurementError",
    };
    errors::raise(py, class, &error.to_string(), error.code(), error.hint())
}

/// A Python callable as work: one call is one unit.
struct Callable(Py<PyAny>);

impl Kernel for Callable {
    fn step(&mut self) -> Result<(), MeasureError> {
        Python::attach(|py| self.0.call0(py).map(drop)).map_err(|error| MeasureError::Task(error.to_string()))
    }

    fn steps_per_unit(&self) -> f64 {
        1.0
    }
}

/// The probe. The thread that creates it is its sampler and must also run its blocks.
#[pyclass(frozen, name = "Probe", module = "crosswind._core")]
pub struct PyProbe(Mutex<Option<Probe>>);

impl PyProbe {
    /// Calls a function on the open probe without holding the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut Probe) -> Result<T, MeasureError> + Send,
    ) -> PyResult<T> {
        let closed = || MeasureError::Task("the probe is closed".into());
        py.detach(|| locked(&self.0).as_mut().ok_or_else(closed).and_then(run)).map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl PyProbe {
    #[new]
    #[pyo3(signature = (config, task = None))]
    fn new(py: Python<'_>, config: &str, task: Option<Py<PyAny>>) -> PyResult<Self> {
        let own_work = task.map(|task| -> KernelFactory { Box::new(move |_| Ok(Box::new(Callable(task)))) });
        py.detach(|| Config::from_json(config).and_then(|config| Probe::start(config, own_work)))
            .map(|probe| Self(Mutex::new(Some(probe))))
            .map_err(|error| exception(py, &error))
    }

    /// Connects to all peers, with a token, a node's directory of certificates, or both, if they require it.
    #[pyo3(signature = (token = None, tls = None))]
    fn connect(&self, py: Python<'_>, token: Option<&str>, tls: Option<PathBuf>) -> PyResult<()> {
        self.with(py, |probe| probe.connect(&Access::of(token, tls.as_deref())?))
    }

    /// Moves to other memory for the kernel, and to other connections and buffers.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Probe::renew)
    }

    /// Sets the levels (MB/s; 0: silence, None: no limit) and samples for `seconds`.
    #[pyo3(signature = (levels, seconds, settle_s, interval_s, phase, cycle = -1, load = 0, patience_s = 60.0))]
    #[allow(clippy::too_many_arguments)] // they are keywords in Python
    fn run_block(
        &self,
        py: Python<'_>,
        levels: Vec<Option<f64>>,
        seconds: f64,
        settle_s: f64,
        interval_s: f64,
        phase: String,
        cycle: i32,
        load: u32,
        patience_s: f64,
    ) -> PyResult<()> {
        let block = Block { levels, seconds, settle_s, interval_s, phase, cycle, load, patience_s };
        let mut signal = None;
        let result = self.with(py, |probe| {
            let mut interrupted = || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            };
            probe.run_block(&block, &mut interrupted)
        });
        // The exception of the signal's handler is more specific than the interruption.
        signal.map_or(result, Err)
    }

    /// Returns the rows since the last call: column -> values.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.with(py, |probe| Ok(probe.take()))?;
        columns(py, &rows)
    }

    /// Returns the MB that the peers have counted on each channel.
    fn moved_there_mb(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.with(py, Probe::moved_there_mb)
    }

    /// Tests a foreign process (settings as JSON) and returns the findings, as JSON.
    #[staticmethod]
    fn check(py: Python<'_>, config: &str) -> PyResult<String> {
        settings(py, config).and_then(|probe| json(&py.detach(|| check::check(&probe))))
    }

    /// Pauses computation and traffic; the next block resumes them.
    fn hold(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Probe::hold)
    }

    /// Returns the settings in force, as JSON: peers, sockets, work.
    fn header(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |probe| Ok(probe.header()))?)
    }

    /// Ends all threads and connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.0).take()));
    }
}

fn columns<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let floats = |value: &dyn Fn(&Row) -> f64| PyList::new(py, rows.iter().map(value));
    table.set_item("t_s", floats(&|row| row.t_s)?)?;
    table.set_item("dt_s", floats(&|row| row.dt_s)?)?;
    table.set_item("block", PyList::new(py, rows.iter().map(|row| row.block))?)?;
    table.set_item("cycle", PyList::new(py, rows.iter().map(|row| row.cycle))?)?;
    table.set_item("phase", PyList::new(py, rows.iter().map(|row| &row.phase))?)?;
    table.set_item("settling", PyList::new(py, rows.iter().map(|row| row.settling))?)?;
    for (index, name) in rows.first().map_or(&AMOUNTS[..], Row::names).iter().enumerate() {
        table.set_item(name, floats(&|row| row.amounts[index])?)?;
    }
    for channel in 0..rows.first().map_or(0, |row| row.channels.len()) {
        table.set_item(format!("channel{channel}_mb"), floats(&|row| row.channels[channel].0)?)?;
        table.set_item(format!("channel{channel}_asked_mb_per_s"), floats(&|row| row.channels[channel].1)?)?;
    }
    Ok(table)
}

/// Serves probes until `should_stop()` returns true, or a signal handler raises.
#[pyfunction]
#[pyo3(signature = (listen, on_listening, should_stop = None, token = None, tls = None))]
fn serve(
    py: Python<'_>,
    listen: &str,
    on_listening: Py<PyAny>,
    should_stop: Option<Py<PyAny>>,
    token: Option<&str>,
    tls: Option<PathBuf>,
) -> PyResult<()> {
    let access = Access::of(token, tls.as_deref()).map_err(|error| exception(py, &error.into()))?;
    let listener = peer::listen(listen, &access).map_err(|error| exception(py, &error))?;
    on_listening.call1(py, (listener.local_addr()?.to_string(),))?;
    let mut raised = None;
    let stop = || {
        let options = Python::attach(|py| {
            py.check_signals()?;
            should_stop.as_ref().map_or(Ok(false), |ask| ask.call0(py)?.is_truthy(py))
        });
        options.unwrap_or_else(|error| {
            raised = Some(error);
            true
        })
    };
    let result = py.detach(|| peer::serve(&listener, &access, stop));
    raised.map_or(Ok(()), Err)?;
    result.map_err(|error| exception(py, &error))
}

/// Connects to a peer, opens a session without channels, and disconnects. Returns the peer and the round-trip time,
/// as JSON.
#[pyfunction]
#[pyo3(signature = (address, token = None, tls = None))]
fn greet(py: Python<'_>, address: &str, token: Option<&str>, tls: Option<PathBuf>) -> PyResult<String> {
    let link = py.detach(|| PeerLink::open(address, Vec::new(), &Access::of(token, tls.as_deref())?));
    json(&link.map_err(|error| exception(py, &error))?.described())
}

/// A burner. The thread that creates it gets its CPUs and nice level and must also run it.
#[pyclass(frozen, name = "Burner", module = "crosswind._core")]
pub struct PyBurner(Burner);

#[pymethods]
impl PyBurner {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let burner: Burner = settings(py, config)?;
        py.detach(|| burner.place()).map_err(|error| exception(py, &error))?;
        Ok(Self(burner))
    }

    /// Computes from the common start (ns of the monotonic clock) to the end. Returns its times, as JSON.
    fn run(&self, py: Python<'_>, start_ns: u64) -> PyResult<String> {
        let burned = py.detach(|| self.0.run(start_ns)).map_err(|error| exception(py, &error))?;
        json(&burned)
    }
}

/// A ping: connected and ready when it is created, usable once.
#[pyclass(frozen, name = "Ping", module = "crosswind._core")]
pub struct PyPing(Mutex<Option<Ping>>);

#[pymethods]
impl PyPing {
    #[new]
    #[pyo3(signature = (config, token = None, tls = None))]
    fn new(py: Python<'_>, config: &str, token: Option<&str>, tls: Option<PathBuf>) -> PyResult<Self> {
        let config: PingConfig = settings(py, config)?;
        let ping = py
            .detach(|| Ping::open(&config, &Access::of(token, tls.as_deref())?))
            .map_err(|error| exception(py, &error))?;
        Ok(Self(Mutex::new(Some(ping))))
    }

    /// Exchanges all messages from the common start (ns of the monotonic clock). Returns its times, as JSON.
    fn run(&self, py: Python<'_>, start_ns: u64) -> PyResult<String> {
        let ping = locked(&self.0).take();
        let used = || MeasureError::Task("a ping runs once".into());
        let pinged = py.detach(|| ping.ok_or_else(used)?.run(start_ns)).map_err(|error| exception(py, &error))?;
        json(&pinged)
    }
}

fn settings<T: serde::de::DeserializeOwned>(py: Python<'_>, config: &str) -> PyResult<T> {
    let wrong = |error| exception(py, &MeasureError::value("config", error, "the settings of a burner or a ping"));
    serde_json::from_str(config).map_err(wrong)
}

/// Measures the iterations per second of a burner on one thread, in a trial of at least `seconds`.
#[pyfunction]
fn burn_iterations_per_s(py: Python<'_>, seconds: f64) -> f64 {
    py.detach(|| burn::iterations_per_s(seconds))
}

/// Makes the kernel kill this process when the thread that started it ends.
#[pyfunction]
fn end_with_parent() -> PyResult<()> {
    Ok(crosswind_linux::end_with_parent()?)
}

/// Makes the kernel update the CPU time of the running threads of these processes.
#[pyfunction]
fn account_for(processes: Vec<i32>) {
    processes.into_iter().for_each(crosswind_linux::account_for_all);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProbe>()?;
    module.add_class::<PyBurner>()?;
    module.add_class::<PyPing>()?;
    module.add_function(wrap_pyfunction!(burn_iterations_per_s, module)?)?;
    module.add_function(wrap_pyfunction!(serve, module)?)?;
    module.add_function(wrap_pyfunction!(greet, module)?)?;
    module.add_function(wrap_pyfunction!(account_for, module)?)?;
    module.add_function(wrap_pyfunction!(end_with_parent, module)?)
}
