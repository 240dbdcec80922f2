//! Simulates many points in parallel, on threads that do not hold the GIL.

use std::panic::resume_unwind;
use std::sync::Mutex;

use crosswind_experiment::farm::FarmPoint;
use crosswind_experiment::pool::{Pool, Watch};
use crosswind_experiment::undisturbed::ProgramTexts;
use crosswind_experiment::{ExperimentError, columns, streams};
use crosswind_schema::StreamsExperiment;
use crosswind_sim::Trace;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::recorded::RecordedRanks;
use crate::schema::PyPlatform;
use crate::sim::{exception, table};
use crate::watched::{LOOK, locked};

/// An entry of `runs.json` as JSON, and the trace if requested.
type Entry = (String, Option<Trace>);

/// Points simulated in parallel: added by number, returned as they are completed.
#[pyclass(module = "crosswind._core", frozen)]
pub struct Simulations {
    pool: Mutex<Option<Pool<Result<Entry, ExperimentError>>>>,
}

impl Simulations {
    fn put(&self, number: u64, job: impl FnOnce(Watch<'_>) -> Result<Entry, ExperimentError> + Send + 'static) {
        if let Some(pool) = &*locked(&self.pool) {
            pool.put(number, job);
        }
    }
}

#[pymethods]
impl Simulations {
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        let pool = Pool::new(threads).map_err(|error| PyOSError::new_err(format!("{threads} threads: {error}")))?;
        Ok(Self { pool: Mutex::new(Some(pool)) })
    }

    /// Adds a farm's point; arguments as for `simulate`.
    #[pyo3(signature = (number, platform, experiment, *, tasks_csv = None, trace = false))]
    fn farm(&self, number: u64, platform: Py<PyPlatform>, experiment: String, tasks_csv: Option<Vec<u8>>, trace: bool) {
        self.put(number, move |watch| {
            let point = FarmPoint::from_json(&platform.get().0, experiment.as_bytes(), tasks_csv.as_deref())?;
            let (run, trace) = point.simulate(trace, watch)?;
            Ok((text(&run), trace))
        });
    }

    /// Adds a program's point; arguments as for `simulate_program`.
    #[pyo3(signature = (number, point, disturbance, goal, recording, bare))]
    fn program(
        &self,
        number: u64,
        point: String,
        disturbance: Option<String>,
        goal: Option<String>,
        recording: Option<Py<RecordedRanks>>,
        bare: String,
    ) {
        self.put(number, move |watch| {
            let recording = recording.as_ref().map(|ranks| &ranks.get().0);
            let (disturbance, goal) = (disturbance.as_deref(), goal.as_deref());
            let texts = ProgramTexts { point: &point, disturbance, goal, recording, threads: 1 };
            Ok((text(&texts.simulate_beside(&bare, watch)?), None))
        });
    }

    /// Adds a point of streams.
    fn streams(&self, number: u64, point: String) {
        self.put(number, move |watch| {
            let point = StreamsExperiment::from_json(point.as_bytes(), "experiment")?;
            Ok((text(&streams::simulate(&point, watch)?), None))
        });
    }

    /// Waits for the next completed point, and checks signals meanwhile. Returns its number, its entry in `runs.json`
    /// as JSON, and the columns of its trace; None after `close`.
    #[allow(clippy::type_complexity)] // a tuple for Python
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, String, Option<Bound<'py, PyDict>>)>> {
        loop {
            let waited = py.detach(|| locked(&self.pool).as_ref().map(|pool| pool.next(LOOK)));
            let Some(done) = waited else { return Ok(None) };
            // A completed point is returned before signals are checked.
            let Some((number, result)) = done else {
                py.check_signals()?;
                continue;
            };
            let ran = result.unwrap_or_else(|panic| resume_unwind(panic));
            let (text, trace) = ran.map_err(|error| exception(py, &error))?;
            return Ok(Some((number, text, trace.map(|trace| table(py, columns::of_trace(&trace))).transpose()?)));
        }
    }

    /// Ends the running simulations and waits for their threads.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.pool).take()));
    }
}

fn text(run: &impl serde::Serialize) -> String {
    serde_json::to_string(run).expect("numbers, texts and lists")
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Simulations>()
}
