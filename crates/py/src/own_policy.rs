//! Policies of the user's own, classes of Python (`crosswind.policy`), in simulations.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crosswind_experiment::farm::FarmPoint;
use crosswind_experiment::own::{Child, Choice, OwnChild, OwnPolicy, OwnState, TaskId};
use crosswind_experiment::{ExperimentError, SimError, columns};
use crosswind_schema::experiment::Tasks;
use crosswind_schema::plan::Ports;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors;
use crate::schema::{PyPlatform, json};
use crate::sim::{exception, table};
use crate::watched::{locked, watched};

/// A task, as a policy sees it.
#[pyclass(frozen, get_all, name = "PolicyTask", module = "crosswind._core")]
struct PyTask {
    number: TaskId,
    size_mb: f64,
    work: f64,
    release_s: f64,
    deadline_s: Option<f64>,
    user: Option<String>,
}

/// A child of a node, as a policy sees it.
#[pyclass(get_all, name = "PolicyChild", module = "crosswind._core")]
struct PyChild {
    name: String,
    compute_per_s: f64,
    receive_limit_mb_per_s: f64,
    ir_receive_s_per_mb: f64,
    ir_send_s_per_mb: f64,
    latency_s: f64,
    requested: u64,
    out: u64,
    sending: bool,
    gone: bool,
    _number: Child,
    /// Platform index of its parent.
    _parent: u32,
}

impl PyChild {
    fn new(parent: u32, number: Child, state: &OwnChild) -> Self {
        Self {
            name: state.name.clone(),
            compute_per_s: state.compute_per_s,
            receive_limit_mb_per_s: state.receive_limit_mb_per_s,
            ir_receive_s_per_mb: state.ir_receive_s_per_mb,
            ir_send_s_per_mb: state.ir_send_s_per_mb,
            latency_s: state.latency_s,
            requested: state.requested,
            out: state.out,
            sending: state.sending,
            gone: state.gone,
            _number: number,
            _parent: parent,
        }
    }
}

/// A node, as its policy sees it.
#[pyclass(name = "PolicyNode", module = "crosswind._core")]
struct PyNode {
    tasks_of_run: Arc<Tasks>,
    state: OwnState,
    children_seen: Vec<Py<PyChild>>,
    #[pyo3(get)]
    seed: u64,
}

impl PyNode {
    fn task(&self, number: TaskId) -> PyTask {
        let tasks = &*self.tasks_of_run;
        PyTask {
            number,
            size_mb: tasks.size_mb.get(number),
            work: tasks.work.get(number),
            release_s: tasks.release_s(number),
            deadline_s: tasks.deadline_s(number),
            user: tasks.user(number).map(str::to_owned),
        }
    }

    /// Shows the state that the policy decides on.
    fn show(&mut self, py: Python<'_>, state: &OwnState) -> PyResult<()> {
        self.state.now_s = state.now_s;
        self.state.computing = state.computing;
        self.state.waiting = Arc::clone(&state.waiting);
        for (number, child) in (0..).zip(&state.children) {
            let Some(seen) = self.children_seen.get(number as usize) else {
                self.children_seen.push(Py::new(py, PyChild::new(state.node, number, child))?);
                self.state.children.truncate(number as usize);
                self.state.children.push(child.clone());
                continue;
            };
            let mut seen = seen.borrow_mut(py);
            if (seen.requested, seen.out, seen.sending, seen.gone)
                != (child.requested, child.out, child.sending, child.gone)
            {
                (seen.requested, seen.out) = (child.requested, child.out);
                (seen.sending, seen.gone) = (child.sending, child.gone);
                self.state.children[number as usize].clone_from(child);
            }
        }
        Ok(())
    }
}

#[pymethods]
impl PyNode {
    #[getter]
    fn name(&self) -> &str {
        &self.state.name
    }

    #[getter]
    fn is_root(&self) -> bool {
        self.state.is_root
    }

    #[getter]
    fn compute_per_s(&self) -> f64 {
        self.state.compute_per_s
    }

    #[getter]
    fn ports(&self) -> &'static str {
        if self.state.ports == Ports::Single { "single" } else { "multi" }
    }

    #[getter]
    fn time_s(&self) -> f64 {
        self.state.now_s
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.state.waiting.len()
    }

    #[getter]
    fn tasks(&self) -> Vec<PyTask> {
        self.state.waiting.iter().map(|&task| self.task(task)).collect()
    }

    #[getter]
    fn computing(&self) -> Option<PyTask> {
        self.state.computing.map(|task| self.task(task))
    }

    #[getter]
    fn idle(&self) -> bool {
        self.state.is_idle()
    }

    #[getter]
    fn can_begin(&self) -> bool {
        self.state.can_begin()
    }

    #[getter]
    fn port_free(&self) -> bool {
        self.state.is_port_free()
    }

    #[getter]
    fn children(&self, py: Python<'_>) -> Vec<Py<PyChild>> {
        self.children_seen.iter().map(|child| child.clone_ref(py)).collect()
    }

    #[getter]
    fn open(&self, py: Python<'_>) -> Vec<Py<PyChild>> {
        self.state.open().map(|(child, _)| self.children_seen[child as usize].clone_ref(py)).collect()
    }
}

/// The exception of a policy, which outlives the simulation.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// An instance of the user's class.
struct PyPolicy {
    /// The instance, and the node that it sees. `None`: they could not be created.
    made: Option<(Py<PyAny>, Py<PyNode>)>,
    class: String,
    own_first: bool,
    failure: Option<String>,
    raised: Raised,
    /// No tasks.
    nothing: Arc<VecDeque<TaskId>>,
}

impl PyPolicy {
    fn new(state: &OwnState, make: &Py<PyAny>, tasks: &Arc<Tasks>, seed: u64, raised: &Raised) -> Self {
        Python::attach(|py| {
            let class = make.getattr(py, "__name__").and_then(|name| name.extract(py)).unwrap_or_default();
            let (raised, nothing) = (Arc::clone(raised), Arc::default());
            let mut policy = Self { made: None, class, own_first: true, failure: None, raised, nothing };
            let mut create = || -> PyResult<()> {
                let tasks_of_run = Arc::clone(tasks);
                let mut node = PyNode { tasks_of_run, state: state.clone(), children_seen: Vec::new(), seed };
                node.show(py, state)?;
                let node = Py::new(py, node)?;
                let instance = make.call1(py, (node.clone_ref(py),))?;
                policy.own_first = instance.getattr(py, "own_first")?.is_truthy(py)?;
                policy.made = Some((instance, node));
                Ok(())
            };
            if let Err(error) = create() {
                policy.fail(py, "__init__", error);
            }
            policy
        })
    }

    fn fail(&mut self, py: Python<'_>, method: &str, error: PyErr) {
        let name = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
        self.failure = Some(format!("{}.{method} raised {name}: {}", self.class, error.value(py)));
        locked(&self.raised).get_or_insert(error);
    }

    fn call(&mut self, state: &OwnState, method: &'static str, about: About) -> Choice {
        if self.failure.is_some() {
            return Choice::Wait;
        }
        Python::attach(|py| {
            match self.called(py, state, method, about) {
                Ok(Ok(choice)) => return choice,
                Ok(Err(what)) => self.failure = Some(format!("{}.{method} {what}", self.class)),
                Err(error) => self.fail(py, method, error),
            }
            Choice::Wait
        })
    }

    fn called(&self, py: Python<'_>, state: &OwnState, method: &str, about: About) -> PyResult<Result<Choice, String>> {
        let Some((instance, node)) = &self.made else { return Ok(Ok(Choice::Wait)) };
        node.borrow_mut(py).show(py, state)?;
        let chosen = match about {
            About::Nothing => instance.call_method1(py, method, (node,))?,
            About::Child(child) => {
                let child = node.borrow(py).children_seen[child as usize].clone_ref(py);
                instance.call_method1(py, method, (node, child))?
            }
            About::Task(task) => {
                let task = node.borrow(py).task(task);
                instance.call_method1(py, method, (node, task))?
            }
        };
        // The simulator changes these tasks next: without another owner it need not copy them.
        node.borrow_mut(py).state.waiting = Arc::clone(&self.nothing);
        Ok(choice(state.node, node.bind(py), chosen.bind(py)))
    }
}

/// What a method is called about.
#[derive(Clone, Copy)]
enum About {
    Nothing,
    Child(Child),
    Task(TaskId),
}

/// Returns what a method chose, or why it is no choice.
fn choice(own: u32, node: &Bound<'_, PyNode>, chosen: &Bound<'_, PyAny>) -> Result<Choice, String> {
    if chosen.is_none() {
        return Ok(Choice::Wait);
    }
    let refused = || {
        let shown = chosen.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
        format!("returned {shown}; it must be a child, the node itself, a pair of one of them and a task, or None")
    };
    let (place, task) = match chosen.cast::<PyTuple>() {
        Ok(pair) => {
            let (place, task) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyTask>)>().map_err(|_| refused())?;
            (place, Some(task.get().number))
        }
        Err(_) => (chosen.clone(), None),
    };
    if let Ok(child) = place.cast::<PyChild>() {
        let child = child.borrow();
        if child._parent != own {
            return Err(format!("returned {:?}, which is a child of another node", child.name));
        }
        return Ok(Choice::Send { child: child._number, task });
    }
    if place.is(node) { Ok(Choice::Compute(task)) } else { Err(refused()) }
}

impl OwnPolicy for PyPolicy {
    fn own_first(&self) -> bool {
        self.own_first
    }

    fn choose(&mut self, node: &OwnState) -> Choice {
        self.call(node, "choose", About::Nothing)
    }

    fn on_ask(&mut self, node: &OwnState, child: Child) -> Choice {
        self.call(node, "on_ask", About::Child(child))
    }

    fn on_arrival(&mut self, node: &OwnState, task: TaskId) -> Choice {
        self.call(node, "on_arrival", About::Task(task))
    }

    fn on_done(&mut self, node: &OwnState, task: TaskId) -> Choice {
        self.call(node, "on_done", About::Task(task))
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.clone()
    }
}

/// Simulates one point of a farm with a policy of the user's own: `policy(node)` is called once for each node. Otherwise
/// as `simulate`.
#[pyfunction]
#[pyo3(signature = (platform, experiment, policy, *, tasks_csv = None, trace = false, progress = None))]
fn simulate_own<'py>(
    py: Python<'py>,
    platform: &Bound<'py, PyPlatform>,
    experiment: &str,
    policy: Py<PyAny>,
    tasks_csv: Option<&[u8]>,
    trace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let platform = &platform.get().0;
    let raised = Raised::default();
    let done = watched(py, progress, |watch| {
        let point = FarmPoint::from_json(platform, experiment.as_bytes(), tasks_csv)?;
        let (tasks, seed) = (Arc::new(point.tasks.clone()), point.experiment.seed);
        point.simulate_own(trace, &mut |state| PyPolicy::new(state, &policy, &tasks, seed, &raised), watch)
    })?;
    let (run, trace) = done.map_err(|error| failed(py, &error, &raised))?;
    Ok((json(&run)?, trace.map(|trace| table(py, columns::of_trace(&trace))).transpose()?))
}

/// Returns the error of a simulation, with the policy's exception as its cause.
fn failed(py: Python<'_>, error: &ExperimentError, raised: &Raised) -> PyErr {
    let ExperimentError::Simulation(SimError::Policy { .. }) = error else { return exception(py, error) };
    match locked(raised).take() {
        // Ctrl-C, or the end of the interpreter.
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause,
        cause => {
            let hint = cause.is_none().then_some("docs/guides/write-a-policy.md says what may be chosen");
            let error = errors::raise(py, "CrosswindError", &error.to_string(), "policy", hint);
            error.set_cause(py, cause);
            error
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTask>()?;
    module.add_class::<PyChild>()?;
    module.add_class::<PyNode>()?;
    module.add_function(wrap_pyfunction!(simulate_own, module)?)
}
