//! `crosswind-live` for Python: the root of a farm on a thread of its own, and an agent on the calling thread.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crosswind_access::Access;
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_experiment::columns;
use crosswind_experiment::farm::FarmPoint;
use crosswind_experiment::farm_root::{Opened, RootOptions};
use crosswind_experiment::work::kernel_factory;
use crosswind_linux::processes::end_process_after;
use crosswind_live::LiveError;
use crosswind_live::farm::agent::{AgentOptions, ExecutorFactories, run_agent as run};
use crosswind_live::farm::command::{self, Values, filled};
use crosswind_live::farm::executor::{Answer, Early, Executor, ExecutorFactory, Job};
use crosswind_live::farm::function::Shared;
use crosswind_live::farm::journal::Identity;
use crosswind_live::farm::payload::Payload;
use crosswind_live::farm::replay::replay;
use crosswind_live::farm::root::{NewTask, RunSummary};
use crosswind_live::farm::task_source::{Label, TaskQueue};
use crosswind_live::protocol::PROTOCOL;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use crate::buffers::{Buffer, Bytes};
use crate::errors;
use crate::function::PyFunction;
use crate::journal::PyJournal;
use crate::schema::{PyPlatform, json};
use crate::sim::table;
use crate::watched::{LOOK, locked, waited};

/// A result: task, whether it succeeded, bytes or path, node.
type Taken<'py> = (u64, bool, Bound<'py, PyAny>, String);
/// The last attempt of a command: task, start, seconds.
type Attempt = (u64, f64, f64);
/// What a task printed: node, task, call of a batch, bytes left out before it, text.
type Printed<'py> = (String, u64, u32, u64, Bound<'py, PyBytes>);
/// Tasks that have begun, tasks that are withdrawn, and early outcomes of batches.
type News<'py> = (Vec<u64>, Vec<u64>, Vec<(u64, Bound<'py, PyBytes>)>);

pub fn exception(py: Python<'_>, error: &LiveError) -> PyErr {
    let class = match error {
        LiveError::Value { .. } | LiveError::Access(_) | LiveError::Setup(_) | LiveError::Journal { .. } => {
            "DescriptionError"
        }
        LiveError::Lost(_) | LiveError::Refused { .. } | LiveError::Unreachable { .. } => "AgentLost",
        LiveError::Deadlock(_) => "InfeasibleError",
        LiveError::WrongResult(_) | LiveError::OverTime { .. } => "CrosswindError",
        // Not an error that a user can act on: the command line shows it as a fault of Crosswind.
        LiveError::Panicked { .. } => return pyo3::exceptions::PyRuntimeError::new_err(error.to_string()),
        LiveError::Interrupted => return pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        LiveError::Replay { .. } | LiveError::System { .. } => "MeasurementError",
    };
    errors::raise(py, class, &error.to_string(), error.code(), error.hint())
}

pub fn wrong(what: &str, error: impl ToString) -> LiveError {
    LiveError::Setup(format!("{what}: {}", error.to_string()))
}

/// Where a batch of calls passes on the outcomes of its first calls, `early(bytes)`, and says which call prints.
#[pyclass(frozen, module = "crosswind._core")]
struct EarlyOutcomes(Early);

#[pymethods]
impl EarlyOutcomes {
    fn __call__(&self, outcomes: &[u8]) {
        self.0.pass(outcomes.to_vec());
    }

    /// Whether what calls print is shown.
    #[getter]
    fn shows_prints(&self) -> bool {
        self.0.shows_prints()
    }

    /// Whether calls of this process have printed anything that was shown.
    #[getter]
    fn has_shown_prints(&self) -> bool {
        self.0.has_shown_prints()
    }

    /// Begins a call of the batch, by its number from 1: what is printed from now on is its. 0: it is not known whose.
    fn begin_call(&self, call: u32) {
        self.0.begin_call(call);
    }
}

/// A Python callable as the work of tasks: `call(memoryview or path, early or None, Function or None) -> (ok, bytes)`.
/// The GIL is held only while it runs.
struct Callable(Py<PyAny>);

/// Bytes of Python up to this size are copied: an owner of their own would cost more.
const COPIED: usize = 64 << 10;

/// Returns bytes of Python as the payload of a task or a result.
fn payload(bytes: &Bound<'_, PyBytes>) -> Payload {
    if bytes.as_bytes().len() <= COPIED {
        return Payload::bytes(bytes.as_bytes().to_vec());
    }
    Payload::Shared(Shared::new(PyBackedBytes::from(bytes.clone())))
}

impl Executor for Callable {
    fn run(&mut self, job: &Job) -> Answer {
        Python::attach(|py| {
            let input = match job.input.input() {
                Payload::File(file) => file.path.as_os_str().into_pyobject(py)?.into_any(),
                other => {
                    PyMemoryView::from(&Bound::new(py, Buffer(Bytes::Input(other.read()?)))?.into_any())?.into_any()
                }
            };
            let early = job.early.clone().map(|early| Bound::new(py, EarlyOutcomes(early))).transpose()?;
            let function = job.input.function().map(|one| PyFunction(Arc::clone(one)));
            let (ok, output): (bool, Bound<'_, PyBytes>) =
                self.0.bind(py).call1((input, early, function))?.extract()?;
            Ok::<_, PyErr>(Answer { ok, output: payload(&output) })
        })
        .unwrap_or_else(|error| Answer::failed(error.to_string()))
    }
}

/// Executor factory for kernels, and for callables if Python supplies `load(code) -> call`.
struct Python3(Option<Py<PyAny>>);

impl ExecutorFactories for Python3 {
    fn factory(&mut self, work: &Work, code: Vec<u8>) -> Result<ExecutorFactory, LiveError> {
        match work {
            Work::Kernel { name } => Ok(kernel_factory(name.clone())),
            _ => {
                let load = Python::attach(|py| self.0.as_ref().map(|load| load.clone_ref(py)))
                    .ok_or_else(|| LiveError::Setup("this process cannot load callables".into()))?;
                Ok(Box::new(move || {
                    let call = Python::attach(|py| load.call1(py, (PyBytes::new(py, &code),)));
                    let call = call.map_err(|error| format!("the callable cannot be loaded: {error}"))?;
                    Ok(Box::new(Callable(call)) as Box<dyn Executor>)
                }))
            }
        }
    }
}

/// The root of a farm.
#[pyclass(frozen, name = "FarmRoot", module = "crosswind._core")]
pub struct PyFarmRoot {
    root: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    queue: TaskQueue,
    address: String,
    tasks: Option<u64>,
    summary: Mutex<Option<RunSummary>>,
    /// The error that ended the run, if any.
    failure: OnceLock<LiveError>,
}

#[pymethods]
impl PyFarmRoot {
    #[new]
    #[pyo3(signature = (config, token, code = None, tasks_csv = None, load = None, tls = None, journal = None))]
    #[expect(clippy::too_many_arguments, reason = "what a root needs, each an object of Python's")]
    fn new(
        py: Python<'_>,
        config: &str,
        token: Option<&str>,
        code: Option<Vec<u8>>,
        tasks_csv: Option<&[u8]>,
        load: Option<Py<PyAny>>,
        tls: Option<PathBuf>,
        journal: Option<&PyJournal>,
    ) -> PyResult<Self> {
        let access = Access::of(token, tls.as_deref()).map_err(|error| exception(py, &error.into()))?;
        let journal = journal.and_then(|journal| locked(&journal.journal).take());
        let open = || {
            let options: RootOptions = serde_json::from_str(config).map_err(|error| wrong("farm", error))?;
            options.open(&access, code.unwrap_or_default(), tasks_csv, &mut Python3(load), journal)
        };
        let Opened { begin, queue, address, tasks } = py.detach(open).map_err(|error| exception(py, &error))?;
        Ok(Self {
            root: Mutex::new(Some(begin)),
            queue,
            address,
            tasks,
            summary: Mutex::new(None),
            failure: OnceLock::new(),
        })
    }

    /// HOST:PORT to which children connect.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Number of tasks of the workload; None if tasks are submitted.
    #[getter]
    fn tasks(&self) -> Option<u64> {
        self.tasks
    }

    #[getter]
    fn delivered(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.queue.delivered())
    }

    /// Returns `(code, node, message)` of the events so far, without the first `known`.
    fn events(&self, py: Python<'_>, known: usize) -> Vec<(String, Option<String>, String)> {
        let events = py.detach(|| self.queue.events(known));
        events.into_iter().map(|event| (event.code, event.node, event.message)).collect()
    }

    fn start(&self) -> PyResult<()> {
        if let Some(begin) = locked(&self.root).take() {
            std::thread::Builder::new().name("cw-farm".into()).spawn(begin)?;
        }
        Ok(())
    }

    /// Waits until all agents have connected or are no longer waited for, at most `timeout_s`. For submitted tasks
    /// only. Returns whether that is so. Raises the error that ended the run before.
    fn wait_for_agents(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let begun = waited(py, timeout_s, |left| match self.queue.has_begun(left) {
            true => Some(true),
            false => self.queue.has_ended(Duration::ZERO).then_some(false),
        })?;
        self.ended(py)?;
        Ok(begun.unwrap_or_default())
    }

    /// Submits a task; waits while the queue is full. `identity` identifies the task in the journal: `(label, input,
    /// recipe)`. A command gets the data themselves with `is_value`, otherwise a file. A batch of calls may pass on
    /// outcomes early (`news`), and fails when an agent is lost that computes it. A `Function` travels once to each node.
    #[pyo3(signature = (task, data, work = 0.0, name = OsString::new(), identity = None, is_value = false, is_batch = false, function = None))]
    #[expect(clippy::too_many_arguments, reason = "what a task is, each an object of Python's")]
    fn submit(
        &self,
        py: Python<'_>,
        task: u64,
        data: &Bound<'_, PyAny>,
        work: f64,
        name: OsString,
        identity: Option<(Vec<u8>, u64, u64)>,
        is_value: bool,
        is_batch: bool,
        function: Option<&Bound<'_, PyFunction>>,
    ) -> PyResult<()> {
        let data = if let Ok(bytes) = data.cast::<PyBytes>() {
            payload(bytes)
        } else {
            let path: PathBuf = data.extract()?;
            Payload::any_file(&path)
        };
        let identity = identity.map(|(label, input, recipe)| Identity { label, input, recipe }).unwrap_or_default();
        let called = command::names_of(&data, &name, task, is_value);
        let payload = match function {
            Some(function) => data.calling(Arc::clone(&function.get().0)),
            None => data,
        };
        let mut waiting = Some((NewTask { task, payload, work, name: called, is_batch }, Label { name, identity }));
        loop {
            let handed = py.detach(|| self.queue.submit(&mut waiting, LOOK));
            match handed {
                Ok(true) => return Ok(()),
                Ok(false) => py.check_signals()?,
                Err(error) => {
                    self.ended(py)?; // the error that ended the run is more specific
                    return Err(exception(py, &error));
                }
            }
        }
    }

    /// Declares that no more tasks will be submitted.
    fn end_of_tasks(&self) {
        self.queue.end_of_tasks();
    }

    /// Returns `(task, ok, bytes or path, node)` of the available results; waits for at least one, at most
    /// `timeout_s`. Also empty when tasks have printed, and when the run has ended and all are taken; then raises the error
    /// that ended it, if any. With
    /// `or_news`, also empty at any time, at the latest when there is news. With `views`, large results in memory are
    /// memoryviews of memory that nothing else uses.
    #[pyo3(signature = (timeout_s, or_news = false, views = false))]
    fn results<'py>(&self, py: Python<'py>, timeout_s: f64, or_news: bool, views: bool) -> PyResult<Vec<Taken<'py>>> {
        let results = waited(py, timeout_s, |left| match or_news {
            true => Some(self.queue.results_or_news(left)),
            false => match self.queue.results(left) {
                Some(results) if results.is_empty() && !self.queue.has_printed() => None,
                results => Some(results),
            },
        })?;
        let Some(results) = results.unwrap_or_default() else {
            self.ended(py)?;
            return Ok(Vec::new());
        };
        let mut taken = Vec::with_capacity(results.len());
        for result in results {
            let data = match result.payload {
                // A result in a temporary file of the root is deleted with it, so it is read into memory.
                Payload::File(ref file) if !file.is_ours() => file.path.as_os_str().into_pyobject(py)?.into_any(),
                Payload::Bytes(bytes) if views && bytes.len() > COPIED => {
                    let own = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
                    PyMemoryView::from(&Bound::new(py, Buffer(Bytes::Own(own)))?.into_any())?.into_any()
                }
                payload => PyBytes::new(py, &payload.read()?).into_any(),
            };
            taken.push((result.task, result.ok, data, result.node.to_string()));
        }
        Ok(taken)
    }

    /// Withdraws tasks that no node has begun; waits for their answers, at most `timeout_s`. Returns those that are
    /// withdrawn: they have no result. Calls must not overlap.
    fn recall(&self, py: Python<'_>, tasks: Vec<u64>, timeout_s: f64) -> PyResult<Vec<u64>> {
        let mut withdrawn = py.detach(|| self.queue.recall(&tasks));
        let waited = waited(py, timeout_s, |left| self.queue.recalled(left).then_some(()));
        withdrawn.extend(self.queue.take_withdrawn());
        waited.map(|_| withdrawn)
    }

    /// Returns `(begun, withdrawn, partial)`: tasks that nodes have begun, that are withdrawn, and the early outcomes of
    /// batches as `(task, bytes)`, since the last call.
    fn news<'py>(&self, py: Python<'py>) -> News<'py> {
        let news = self.queue.news();
        let partial = news.partial.iter().map(|(task, outcomes)| (*task, PyBytes::new(py, outcomes))).collect();
        (news.begun, news.withdrawn, partial)
    }

    /// Returns `(task, start on the monotonic clock, seconds)` of the commands that have ended since the last call. Those
    /// of all results that were taken are among them.
    fn ran(&self) -> Vec<Attempt> {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        self.queue.ran().iter().map(|ran| (ran.task, seconds(ran.began_ns), seconds(ran.took_ns))).collect()
    }

    /// Returns `(node, task, call of a batch, bytes left out before it, text)` of what tasks printed since the last call: whole lines. What
    /// the tasks of all results that were taken printed is among it.
    fn printed<'py>(&self, py: Python<'py>) -> Vec<Printed<'py>> {
        let printed = self.queue.printed().into_iter();
        printed
            .map(|(node, one)| (node.to_string(), one.task, one.call, one.left_out, PyBytes::new(py, &one.text)))
            .collect()
    }

    /// Ends the run as soon as possible.
    fn interrupt(&self) {
        self.queue.interrupt();
    }

    /// Waits for the end, at most `timeout_s`. Returns whether the run has ended. Raises the error that ended it.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        if waited(py, timeout_s, |left| self.queue.has_ended(left).then_some(()))?.is_none() {
            return Ok(false);
        }
        self.ended(py)?;
        Ok(true)
    }

    /// Returns the summary of the run as JSON, `{makespan_s, tasks, nodes, events, done_s}`; call it after `wait`.
    fn summary(&self) -> PyResult<String> {
        let guard = locked(&self.summary);
        let Some(summary) = guard.as_ref() else { return Ok("null".into()) };
        Ok(summary.to_json().to_string())
    }

    /// Returns each node's log of events and commands, if logs were recorded; call it after `wait`.
    fn logs(&self) -> Vec<(String, String)> {
        let guard = locked(&self.summary);
        guard.iter().flat_map(|summary| &summary.nodes).map(|node| (node.name.clone(), node.log.clone())).collect()
    }

    /// Returns the activities as columns of bytes, for `crosswind.run.columns`; call it after `wait`. Activities of
    /// nodes that are not in the platform are left out.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let guard = locked(&self.summary);
        guard.as_ref().map_or_else(|| Ok(PyDict::new(py)), |summary| table(py, columns::of_run(summary)))
    }
}

impl PyFarmRoot {
    /// Stores the summary once the run has ended. Raises the error that ended it, on every call.
    fn ended(&self, py: Python<'_>) -> PyResult<()> {
        match self.queue.outcome() {
            Some(Ok(summary)) => *locked(&self.summary) = Some(summary),
            Some(Err(error)) => _ = self.failure.set(error),
            None => {}
        }
        self.failure.get().map_or(Ok(()), |error| Err(exception(py, error)))
    }
}

/// Time for Python to end the process of an agent whose run is over. It cannot while a user's function holds the GIL.
const ENDING: Duration = Duration::from_millis(500);

/// Runs an agent until its run ends. `load(code)` returns `call(bytes or path) -> (ok, bytes)`. With `statuses`, by error
/// code, the process is the agent's own and ends soon after, with that status, 1 for other errors and 0 without one.
#[pyfunction]
#[pyo3(signature = (config, token, on_listening, load, tls = None, statuses = None))]
fn run_agent(
    py: Python<'_>,
    config: &str,
    token: Option<&str>,
    on_listening: Py<PyAny>,
    load: Py<PyAny>,
    tls: Option<PathBuf>,
    statuses: Option<HashMap<String, i32>>,
) -> PyResult<()> {
    let result = py.detach(|| {
        let options: AgentOptions = serde_json::from_str(config).map_err(|error| wrong("agent", error))?;
        let own = options.config(Access::of(token, tls.as_deref())?)?;
        let mut raised = None;
        let mut listening = |address: &str| {
            raised = Python::attach(|py| on_listening.call1(py, (address,)).err());
        };
        let result = run(own, &mut Python3(Some(load)), &mut listening);
        if let Some(statuses) = statuses {
            let status = |error: &LiveError| statuses.get(error.code()).copied().unwrap_or(1);
            end_process_after(ENDING, result.as_ref().map_or_else(status, |()| 0));
        }
        Ok::<_, LiveError>((result, raised))
    });
    let (result, raised) = result.map_err(|error| exception(py, &error))?;
    raised.map_or(Ok(()), Err)?;
    result.map_err(|error| exception(py, &error))
}

/// Returns the command line of a task, as the shell gets it. An empty `name` says that the input is a value.
#[pyfunction]
fn command_line(line: &str, input: &[u8], output: &[u8], name: &[u8], task: u64) -> Vec<u8> {
    let name = if name.is_empty() { input } else { name };
    filled(line, &Values { input, output, name, task })
}

/// Whether a command line uses its input or the input's name.
#[pyfunction]
fn uses_input(line: &str) -> bool {
    command::uses_input(line)
}

/// Returns the settings for every agent of a live farm, as JSON: from a point, the work of its tasks (`{kind,
/// command}`) and the limits. `tasks_csv` is the content of the point's tasks file.
#[pyfunction]
#[pyo3(signature = (platform, experiment, work, limits, trace = false, tasks_csv = None))]
fn farm_settings(
    py: Python<'_>,
    platform: &Bound<'_, PyPlatform>,
    experiment: &str,
    work: &str,
    limits: &str,
    trace: bool,
    tasks_csv: Option<&[u8]>,
) -> PyResult<String> {
    let read = |what, error: serde_json::Error| exception(py, &wrong(what, error));
    let work = serde_json::from_str(work).map_err(|error| read("work", error))?;
    let limits = serde_json::from_str(limits).map_err(|error| read("limits", error))?;
    let platform = &platform.get().0;
    let settings = || FarmPoint::from_json(platform, experiment.as_bytes(), tasks_csv)?.live(&work, &limits, trace);
    json(&py.detach(settings).map_err(|error| crate::sim::exception(py, &error))?)
}

/// Replays a live node's log through a fresh policy and returns its number of events. Raises if the commands differ.
#[pyfunction]
fn replay_log(py: Python<'_>, run: &str, node: &str, log: &str) -> PyResult<usize> {
    let settings: Result<RunSettings, _> = serde_json::from_str(run);
    let settings = settings.map_err(|error| exception(py, &wrong("run", error)))?;
    py.detach(|| replay(&settings, node, log)).map_err(|error| exception(py, &error))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("AGENT_PROTOCOL", PROTOCOL.version)?;
    module.add_class::<PyFarmRoot>()?;
    module.add_class::<PyFunction>()?;
    module.add_function(wrap_pyfunction!(run_agent, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(uses_input, module)?)?;
    module.add_function(wrap_pyfunction!(farm_settings, module)?)?;
    module.add_function(wrap_pyfunction!(replay_log, module)?)
}
