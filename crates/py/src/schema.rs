//! `crosswind-schema` for Python.

use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::Order;
use crosswind_schema::experiment::platform_fields::with_fields;
use crosswind_schema::experiment::streams::Discipline;
use crosswind_schema::{
    AnyExperiment, DescriptionError, Disturbance, Hosts, Kernel, Links, Measurement, Overlap, Plan, Platform,
    ProgramRuns, Runs, StreamsRuns, Trace, json_schema,
};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use crate::errors;

/// Defines a Python class that holds a checked document, with the methods common to all and those of its own.
macro_rules! document {
    ($(#[$about:meta])* $class:ident($document:ty), $name:literal, { $($more:tt)* }) => {
        $(#[$about])*
        #[pyclass(frozen, name = $name, module = "crosswind._core")]
        pub struct $class(pub $document);

        #[pymethods]
        impl $class {
            #[staticmethod]
            fn from_toml(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
                py.detach(|| <$document>::from_toml(text, file)).map(Self).map_err(|e| errors::description(py, &e))
            }

            #[staticmethod]
            fn from_json(py: Python<'_>, text: &[u8], file: &str) -> PyResult<Self> {
                py.detach(|| <$document>::from_json(text, file)).map(Self).map_err(|e| errors::description(py, &e))
            }

            fn to_json(&self) -> PyResult<String> {
                json(&self.0)
            }

            $($more)*
        }
    };
}

fn toml(text: Result<String, impl ToString>) -> PyResult<String> {
    text.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

pub fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

document! {
    /// A checked platform; `crosswind.Platform` wraps it.
    PyPlatform(Platform), "Platform", {
        fn to_toml(&self) -> PyResult<String> {
            toml(self.0.to_toml())
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

        /// Returns the platform with fields of its nodes replaced; JSON: `node[NAME].FIELD` -> value.
        fn with_fields(&self, py: Python<'_>, fields: &str) -> PyResult<Self> {
            let fields = serde_json::from_str(fields).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
            with_fields(&self.0, &fields).map(Self).map_err(|e| errors::description(py, &e))
        }
    }
}

document! {
    /// A checked disturbance; `crosswind.Disturbance` wraps it.
    PyDisturbance(Disturbance), "Disturbance", {
        fn to_toml(&self) -> PyResult<String> {
            toml(self.0.to_toml())
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

        /// Returns a rank's intervals that start before `until_s`: `(start s, end s, index of the cause)`.
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
}

impl PyDisturbance {
    /// Returns the cause if it exists; otherwise raises.
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

document! {
    /// Checked hosts; `crosswind.run.hosts.Hosts` wraps them.
    PyHosts(Hosts), "Hosts", {}
}

document! {
    /// A checked experiment of any kind; `crosswind.Experiment` wraps it.
    PyExperiment(AnyExperiment), "Experiment", {
        /// Returns the experiment with the field at a dotted path set to a value given as JSON.
        fn fixed(&self, py: Python<'_>, path: &str, value: &str) -> PyResult<Self> {
            let value = serde_json::from_str(value).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
            self.0.fixed(path, &value).map(Self).map_err(|e| errors::description(py, &e))
        }

        /// Number of runs of the sweep and its repetitions.
        fn __len__(&self) -> usize {
            self.0.runs().map_or(usize::MAX, |runs| runs as usize)
        }

        /// Returns one run: `(params as JSON pairs, experiment without a sweep as JSON)`.
        fn point(&self, py: Python<'_>, number: u64) -> PyResult<(String, String)> {
            if self.0.runs().is_none_or(|runs| number >= runs) {
                return Err(pyo3::exceptions::PyIndexError::new_err(number));
            }
            let (params, experiment) = self.0.point(number).map_err(|e| errors::description(py, &e))?;
            Ok((json(&params)?, json(&experiment)?))
        }
    }
}

document! {
    /// Checked links; `crosswind.Links` wraps them.
    PyLinks(Links), "Links", {
        fn to_toml(&self) -> PyResult<String> {
            toml(self.0.to_toml())
        }
    }
}

/// Checks a result, or a table's header, of a file kind. Returns its canonical form as JSON.
#[pyfunction]
fn read_result(py: Python<'_>, kind: &str, text: &[u8], file: &str) -> PyResult<String> {
    fn checked<T: serde::Serialize>(py: Python<'_>, read: Result<T, DescriptionError>) -> PyResult<String> {
        json(&read.map_err(|e| errors::description(py, &e))?)
    }
    match kind {
        "runs" if ProgramRuns::is_one(text) => checked(py, ProgramRuns::from_json(text, file)),
        "runs" if StreamsRuns::is_one(text) => checked(py, StreamsRuns::from_json(text, file)),
        "runs" => checked(py, Runs::from_json(text, file)),
        "trace" => checked(py, Trace::from_json(text, file)),
        "measurement" => checked(py, Measurement::from_json(text, file)),
        "plan" => checked(py, Plan::from_json(text, file)),
        "overlap" => checked(py, Overlap::from_json(text, file)),
        _ => Err(pyo3::exceptions::PyKeyError::new_err(kind.to_owned())),
    }
}

/// Returns the JSON Schema of a file kind, as JSON text.
#[pyfunction]
fn schema_of(kind: &str) -> PyResult<String> {
    let known = || pyo3::exceptions::PyKeyError::new_err(format!("{kind}: one of {}", json_schema::KINDS.join(", ")));
    json(&json_schema::of(kind).ok_or_else(known)?)
}

/// Returns the kinds used in files, grouped by subject, each with its name and meaning.
fn kinds() -> [(&'static str, Vec<(&'static str, &'static str)>); 3] {
    [
        ("order", Order::ALL.map(Order::described).to_vec()),
        ("discipline", Discipline::ALL.map(Discipline::described).to_vec()),
        ("kernel", Kernel::ALL.map(|(_, name, unit)| (name, unit)).to_vec()),
    ]
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPlatform>()?;
    module.add_class::<PyDisturbance>()?;
    module.add_class::<PyHosts>()?;
    module.add_class::<PyLinks>()?;
    module.add_class::<PyExperiment>()?;
    module.add("KINDS", kinds().into_py_dict(module.py())?)?;
    module.add("LARGEST_DESCRIPTION_BYTES", crosswind_schema::LARGEST_BYTES)?;
    for function in [wrap_pyfunction!(read_result, module)?, wrap_pyfunction!(schema_of, module)?] {
        module.add_function(function)?;
    }
    Ok(())
}
