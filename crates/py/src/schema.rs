//! `crosswind-schema` for Python.

use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::Tasks;
use crosswind_schema::{
    AnyExperiment, Disturbance, Experiment, Hosts, Measurement, Overlap, Plan, Platform, ProgramRuns, Runs,
    StreamsRuns, Trace, json_schema,
};
use pyo3::prelude::*;

use crate::errors;

/// A checked platform; `crosswind.Platform` wraps it.
#[pyclass(frozen, name = "Platform", module = "crosswind._core")]
pub struct PyPlatform(pub Platform);

#[pymethods]
impl PyPlatform {
    #[staticmethod]
    #[pyo3(signature = (text, file = "platform.toml"))]
    fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Platform::from_toml(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (text, file = "platform"))]
    fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Platform::from_json(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    fn to_toml(&self) -> PyResult<String> {
        self.0.to_toml().map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
    }

    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    fn __len__(&self) -> usize {
        self.0.nodes.len()
    }

    fn warnings_json(&self) -> PyResult<String> {
        json(&self.0.warnings())
    }
}

pub fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

/// A checked disturbance; `crosswind.Disturbance` wraps it.
#[pyclass(frozen, name = "Disturbance", module = "crosswind._core")]
pub struct PyDisturbance(pub Disturbance);

impl PyDisturbance {
    /// A cause that exists, or the refusal.
    fn known<'a>(&self, py: Python<'_>, cause: &'a str) -> PyResult<&'a str> {
        let causes = self.0.causes();
        if causes.contains(&cause) {
            return Ok(cause);
        }
        let message = format!("there is no cause {cause:?} in {:?}", self.0.name);
        let hint = format!("its causes are: {}", causes.join(", "));
        Err(errors::raise(py, "DescriptionError", &message, "argument", Some(&hint)))
    }
}

#[pymethods]
impl PyDisturbance {
    #[staticmethod]
    #[pyo3(signature = (text, file = "disturbance.toml"))]
    fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Disturbance::from_toml(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (text, file = "disturbance"))]
    fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| Disturbance::from_json(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    fn to_toml(&self) -> PyResult<String> {
        self.0.to_toml().map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
    }

    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    fn causes(&self) -> Vec<String> {
        self.0.causes().into_iter().map(str::to_owned).collect()
    }

    fn without(&self, py: Python<'_>, cause: &str) -> PyResult<Self> {
        Ok(Self(self.0.without(self.known(py, cause)?)))
    }

    fn only(&self, py: Python<'_>, cause: &str) -> PyResult<Self> {
        Ok(Self(self.0.only(self.known(py, cause)?)))
    }

    fn aligned(&self) -> Self {
        Self(self.0.aligned())
    }

    /// A rank's intervals that begin before `until_s`: `(start s, end s, place of the cause)`.
    fn intervals(
        &self,
        py: Python<'_>,
        ranks: u32,
        rank: u32,
        seed: u64,
        until_s: f64,
    ) -> PyResult<Vec<(f64, f64, u16)>> {
        let timelines = Timelines::new(&self.0, ranks, seed).map_err(|e| errors::description(py, &e))?;
        if rank >= ranks {
            let message = format!("rank is {rank}; it must be 0 to {}", ranks.saturating_sub(1));
            return Err(errors::raise(py, "DescriptionError", &message, "argument", None));
        }
        let mut timeline = timelines.rank(rank);
        let intervals = std::iter::from_fn(|| timeline.interval());
        let in_seconds = |ns: u64| ns as f64 / 1e9;
        Ok(intervals
            .map(|interval| (in_seconds(interval.start), in_seconds(interval.end), interval.cause))
            .take_while(|(start, ..)| *start < until_s)
            .collect())
    }
}

/// Checked hosts; `crosswind.run.hosts.Hosts` wraps them.
#[pyclass(frozen, name = "Hosts", module = "crosswind._core")]
pub struct PyHosts(pub Hosts);

#[pymethods]
impl PyHosts {
    #[staticmethod]
    #[pyo3(signature = (text, file = "hosts.toml"))]
    fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        Hosts::from_toml(text, file).map(Self).map_err(|e| errors::description(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (text, file = "hosts"))]
    fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        Hosts::from_json(text, file).map(Self).map_err(|e| errors::description(py, &e))
    }

    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }
}

/// A checked experiment of any kind; `crosswind.Experiment` wraps it.
#[pyclass(frozen, name = "Experiment", module = "crosswind._core")]
pub struct PyExperiment(pub AnyExperiment);

#[pymethods]
impl PyExperiment {
    #[staticmethod]
    #[pyo3(signature = (text, file = "experiment.toml"))]
    fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| AnyExperiment::from_toml(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (text, file = "experiment"))]
    fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
        py.detach(|| AnyExperiment::from_json(text, file)).map(Self).map_err(|e| errors::description(py, &e))
    }

    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    /// The experiment with a field, named by its dotted path, set to a value given as JSON.
    fn fixed(&self, py: Python<'_>, path: &str, value: &str) -> PyResult<Self> {
        let value = serde_json::from_str(value).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
        self.0.fixed(path, &value).map(Self).map_err(|e| errors::description(py, &e))
    }

    /// How many runs the sweep and the repetitions make.
    fn __len__(&self) -> usize {
        self.0.runs().map_or(usize::MAX, |runs| runs as usize)
    }

    /// One run: `(params as JSON pairs, experiment without a sweep as JSON)`.
    fn point(&self, py: Python<'_>, number: u64) -> PyResult<(String, String)> {
        if self.0.runs().is_none_or(|runs| number >= runs) {
            return Err(pyo3::exceptions::PyIndexError::new_err(number));
        }
        let (params, experiment) = self.0.point(number).map_err(|e| errors::description(py, &e))?;
        Ok((json(&params)?, json(&experiment)?))
    }
}

/// The tasks of a run, for reckoning: `(how many, mean size in MB, mean work)`.
#[pyfunction]
#[pyo3(signature = (point, tasks_csv = None))]
fn mean_task(py: Python<'_>, point: &str, tasks_csv: Option<&[u8]>) -> PyResult<(u64, f64, f64)> {
    let read = || {
        let point = Experiment::from_json(point.as_bytes(), "experiment")?;
        let tasks = Tasks::draw(&point.workload, point.seed, tasks_csv)?;
        let count = tasks.count as f64;
        Ok((tasks.count, tasks.total_mb() / count, tasks.total_work() / count))
    };
    py.detach(read).map_err(|e| errors::description(py, &e))
}

/// Checks a file of runs, of a farm, of a program or of streams; its canonical form as JSON.
#[pyfunction]
fn read_runs(py: Python<'_>, text: &[u8], file: &str) -> PyResult<String> {
    if ProgramRuns::is_one(text) {
        let runs = ProgramRuns::from_json(text, file).map_err(|e| errors::description(py, &e))?;
        return json(&runs);
    }
    if StreamsRuns::is_one(text) {
        let runs = StreamsRuns::from_json(text, file).map_err(|e| errors::description(py, &e))?;
        return json(&runs);
    }
    let runs = Runs::from_json(text, file).map_err(|e| errors::description(py, &e))?;
    json(&runs)
}

/// Checks a trace's header; its canonical form as JSON.
#[pyfunction]
fn read_trace_header(py: Python<'_>, text: &[u8], file: &str) -> PyResult<String> {
    let header = Trace::from_json(text, file).map_err(|e| errors::description(py, &e))?;
    json(&header)
}

/// Checks a measurement's header; its canonical form as JSON.
#[pyfunction]
fn read_measurement_header(py: Python<'_>, text: &[u8], file: &str) -> PyResult<String> {
    let header = Measurement::from_json(text, file).map_err(|e| errors::description(py, &e))?;
    json(&header)
}

/// Checks a plan; its canonical form as JSON.
#[pyfunction]
fn read_plan(py: Python<'_>, text: &[u8], file: &str) -> PyResult<String> {
    let plan = Plan::from_json(text, file).map_err(|e| errors::description(py, &e))?;
    json(&plan)
}

/// Checks an overlap matrix; its canonical form as JSON.
#[pyfunction]
fn read_overlap(py: Python<'_>, text: &[u8], file: &str) -> PyResult<String> {
    let overlap = Overlap::from_json(text, file).map_err(|e| errors::description(py, &e))?;
    json(&overlap)
}

/// The JSON Schema of a file kind, as JSON text.
#[pyfunction]
fn schema_of(kind: &str) -> PyResult<String> {
    let known = || pyo3::exceptions::PyKeyError::new_err(format!("{kind}: one of {}", json_schema::KINDS.join(", ")));
    json(&json_schema::of(kind).ok_or_else(known)?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPlatform>()?;
    module.add_class::<PyDisturbance>()?;
    module.add_class::<PyHosts>()?;
    module.add_class::<PyExperiment>()?;
    module.add("LARGEST_DESCRIPTION_BYTES", crosswind_schema::LARGEST_BYTES)?;
    for function in [
        wrap_pyfunction!(mean_task, module)?,
        wrap_pyfunction!(read_runs, module)?,
        wrap_pyfunction!(read_trace_header, module)?,
        wrap_pyfunction!(read_measurement_header, module)?,
        wrap_pyfunction!(read_plan, module)?,
        wrap_pyfunction!(read_overlap, module)?,
        wrap_pyfunction!(schema_of, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
