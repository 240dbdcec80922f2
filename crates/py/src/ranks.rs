//! `crosswind-live`'s ranks for Python: the conductor of a parallel program on a thread of its own, and a rank on the
//! calling thread.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crosswind_access::Access;
use crosswind_experiment::program_live::{ConductorOptions, Ended, LiveProgram, Opened, RankOptions};
use crosswind_live::LiveError;
use crosswind_live::ranks::{Outcome, Stop};
use pyo3::prelude::*;

use crate::errors;
use crate::farm::{exception, wrong};
use crate::schema::json;
use crate::watched::{locked, waited};

/// The conductor of a program.
#[pyclass(frozen, name = "Conductor", module = "crosswind._core")]
struct PyConductor {
    begin: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    ended: Mutex<Receiver<Ended>>,
    outcome: Mutex<Option<Outcome>>,
    stop: Stop,
    address: String,
    ranks: u32,
    program: LiveProgram,
}

#[pymethods]
impl PyConductor {
    #[new]
    fn new(py: Python<'_>, config: &str, token: &str) -> PyResult<Self> {
        let open = || {
            let options: ConductorOptions = serde_json::from_str(config).map_err(|error| wrong("the run", error))?;
            options.open(Access::of(Some(token), None)?)
        };
        let Opened { begin, ended, stop, address, ranks, program } =
            py.detach(open).map_err(|error| exception(py, &error))?;
        let (begin, ended, outcome) = (Mutex::new(Some(begin)), Mutex::new(ended), Mutex::new(None));
        Ok(Self { begin, ended, outcome, stop, address, ranks, program })
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.ranks
    }

    /// HOST:PORT to which ranks connect.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    fn start(&self) -> PyResult<()> {
        if let Some(begin) = locked(&self.begin).take() {
            std::thread::Builder::new().name("cw-conductor".into()).spawn(begin)?;
        }
        Ok(())
    }

    /// Whether all ranks are connected with each other.
    fn is_ready(&self) -> bool {
        self.stop.is_meshed()
    }

    /// Sets time 0 of a run that is held, on the monotonic clock, ns.
    fn begin(&self, zero_ns: u64) {
        self.stop.begin(zero_ns);
    }

    /// Ends the run on the user's request.
    fn interrupt(&self) {
        self.stop.interrupt();
    }

    /// Ends the run as failed, because a process has ended.
    fn fail(&self, why: &str) {
        self.stop.fail(why);
    }

    /// Waits for the end, at most `timeout_s`. Returns whether the run has ended. Raises the error that ended it.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let answer = waited(py, timeout_s, |left| match locked(&self.ended).recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => None,
            answer => Some(answer.ok()),
        })?;
        match answer {
            None => return Ok(false),
            Some(Some(Ok(outcome))) => *locked(&self.outcome) = Some(outcome),
            Some(Some(Err(error))) => return Err(exception(py, &error)),
            Some(None) => {} // already returned
        }
        Ok(true)
    }

    /// Returns the run's entry in `runs.json`, as JSON; call it after `wait`. `dedicated_s`: of the undisturbed run.
    fn entry(&self, dedicated_s: Option<f64>) -> PyResult<String> {
        let guard = locked(&self.outcome);
        let Some(outcome) = guard.as_ref() else { return Ok("null".into()) };
        json(&self.program.entry(outcome, dedicated_s))
    }
}

/// Runs a rank of a program until its run ends. The end of standard input ends it.
#[pyfunction]
fn run_rank(py: Python<'_>, config: &str, token: &str) -> PyResult<()> {
    let options: RankOptions =
        serde_json::from_str(config).map_err(|error| exception(py, &wrong("the rank", error)))?;
    let run = || options.run(Access::of(Some(token), None)?);
    py.detach(run).map_err(|error| match error {
        LiveError::Interrupted => {
            errors::raise(py, "AgentLost", "the process that started this one is gone", "agents-lost", None)
        }
        error => exception(py, &error),
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyConductor>()?;
    module.add_function(wrap_pyfunction!(run_rank, module)?)
}
