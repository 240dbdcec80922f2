//! The live message filter, and streams of messages through it, for Python.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crosswind_access::Access;
use crosswind_live::LiveError;
use crosswind_live::filter::options::FilterOptions;
use crosswind_live::filter::{Filter, mark};
use crosswind_live::log::Log;
use crosswind_live::streams::{NamespaceHost, run_streams as run};
use crosswind_schema::StreamsExperiment;
use pyo3::prelude::*;

use crate::errors;
use crate::farm::exception;
use crate::schema::json;
use crate::watched::{locked, watched};

fn open(config: &str, token: Option<&str>, tls: Option<&Path>) -> Result<Filter, LiveError> {
    let options: FilterOptions =
        serde_json::from_str(config).map_err(|error| LiveError::Setup(format!("the filter: {error}")))?;
    let log = Log::at("filter", options.log.as_ref())?;
    Filter::open(options.settings(), &Access::of(token, tls)?, log)
}

/// A running filter, on threads of its own.
#[pyclass(frozen, name = "Filter", module = "crosswind._core")]
struct PyFilter {
    filter: Mutex<Option<Filter>>,
    address: Option<String>,
    ports: Vec<String>,
}

#[pymethods]
impl PyFilter {
    #[new]
    #[pyo3(signature = (config, token = None, tls = None))]
    fn new(py: Python<'_>, config: &str, token: Option<&str>, tls: Option<PathBuf>) -> PyResult<Self> {
        let filter = py.detach(|| open(config, token, tls.as_deref())).map_err(|error| exception(py, &error))?;
        let (address, ports) = (filter.address().map(str::to_owned), filter.ports().to_vec());
        Ok(Self { filter: Mutex::new(Some(filter)), address, ports })
    }

    /// HOST:PORT to which peers connect; None: no listener.
    #[getter]
    fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    #[getter]
    fn ports(&self) -> Vec<String> {
        self.ports.clone()
    }

    /// Waits for all dialled peers, at most `patience_s`. Returns whether all are connected.
    fn wait_for_peers(&self, py: Python<'_>, patience_s: f64) -> bool {
        let patience = Duration::from_secs_f64(patience_s.clamp(0.0, 1e6));
        py.detach(|| locked(&self.filter).as_ref().is_some_and(|filter| filter.wait_for_peers(patience)))
    }

    /// Whether it is still running.
    fn is_at_work(&self) -> bool {
        locked(&self.filter).as_ref().is_some_and(Filter::is_at_work)
    }

    /// Returns the counters so far, as JSON.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        let counters = locked(&self.filter).as_ref().map(Filter::counters);
        counters.map_or_else(|| Err(closed(py)), |counters| json(&counters))
    }

    /// Stops the filter and returns its counters, as JSON.
    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        let filter = locked(&self.filter).take();
        let Some(filter) = filter else { return Err(closed(py)) };
        let counters = py.detach(|| filter.stop()).map_err(|error| exception(py, &error))?;
        json(&counters)
    }
}

fn closed(py: Python<'_>) -> PyErr {
    errors::raise(py, "CrosswindError", "the filter has ended", "ended", None)
}

/// Returns the type-of-service byte with which a connection marked with `tos` arrives; None: the other end cannot
/// determine it.
#[pyfunction]
#[pyo3(signature = (tos, peer = None, token = None, tls = None))]
fn arriving_mark(
    py: Python<'_>,
    tos: u8,
    peer: Option<&str>,
    token: Option<&str>,
    tls: Option<PathBuf>,
) -> PyResult<Option<u8>> {
    let ask = || {
        let access = Access::of(token, tls.as_deref())?;
        mark::arrives(tos, peer.map(|peer| (peer, &access)))
    };
    py.detach(ask).map_err(|error| exception(py, &error))
}

/// Runs one point of an experiment of kind streams on this machine and returns its entry in `runs.json`, with
/// `params` empty. `namespaces` is for `policy.filter = "kernel"`: the path of each host's network namespace, and its
/// address.
#[pyfunction]
#[pyo3(signature = (point, namespaces = Vec::new()))]
fn run_streams(py: Python<'_>, point: &str, namespaces: Vec<(PathBuf, IpAddr)>) -> PyResult<String> {
    let hosts: Vec<NamespaceHost> =
        namespaces.into_iter().map(|(namespace, address)| NamespaceHost { namespace, address }).collect();
    let point = StreamsExperiment::from_json(point.as_bytes(), "experiment");
    let point = point.map_err(|error| errors::description(py, &error))?;
    let result = watched(py, None, |watch| {
        let watch = Mutex::new(watch);
        run(&point, &hosts, &|| (*locked(&watch))(0))
    })?;
    json(&result.map_err(|error| exception(py, &error))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFilter>()?;
    module.add_function(wrap_pyfunction!(arriving_mark, module)?)?;
    module.add_function(wrap_pyfunction!(run_streams, module)?)
}
