//! `crosswind-sim` for Python.

use crosswind_model::{Task, plan};
use crosswind_policy::farm::{Mean, Wishes};
use crosswind_schema::experiment::{ChangeKind, Order, Params, Tasks, change};
use crosswind_schema::plan::Method;
use crosswind_schema::run::{ComputedBy, Run, RunEvent, RunNode, SeenNode};
use crosswind_schema::units::Quantity;
use crosswind_schema::{DescriptionError, Experiment, Node, Platform};
use crosswind_sim::{Farm, Happened, NodeSeen, Options, Outcome, SimError, Trace, simulate as run};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;
use crate::schema::{PyPlatform, json};

/// Code of a child that is none.
const NOBODY: u32 = u32::MAX;

enum Refusal {
    Description(DescriptionError),
    Plan(crosswind_model::ModelError),
    Run(SimError),
}

fn simulated(
    platform: &Platform,
    point: &[u8],
    tasks_csv: Option<&[u8]>,
    trace: bool,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<(Run, Option<Trace>), Refusal> {
    let point = Experiment::from_json(point, "experiment").map_err(Refusal::Description)?;
    let tasks = Tasks::draw(&point.workload, point.seed, tasks_csv).map_err(Refusal::Description)?;
    let count = tasks.count as f64;
    let mean = Mean { size_mb: tasks.total_mb() / count, work: tasks.total_work() / count };
    let rates: Option<Vec<f64>> = match point.policy.order {
        Order::Planned => {
            let task = Task::new(mean.size_mb, mean.work).map_err(Refusal::Plan)?;
            let found = plan(platform, task, point.policy.ports, Method::Exact).map_err(Refusal::Plan)?;
            Some(found.nodes.iter().map(|node| node.received_tasks_per_s).collect())
        }
        _ => None,
    };
    let mut wishes = Wishes::of(&point.policy, mean).with_tasks(tasks.count);
    if let Some(rates) = &rates {
        wishes = wishes.with_plan(rates);
    }
    let farm = Farm {
        platform,
        tasks: &tasks,
        wishes,
        chunk_kib: point.policy.chunk_kib,
        result_size_mb: point.workload.result_size_mb.get(),
    };
    let changes = change::placed(&point.changes, platform).map_err(Refusal::Description)?;
    let mut outcome = run(&farm, Options { changes: &changes, trace }, watch).map_err(Refusal::Run)?;
    let trace = outcome.trace.take();
    Ok((summary(platform, &point, &outcome), trace))
}

fn summary(platform: &Platform, point: &Experiment, outcome: &Outcome) -> Run {
    let name = |node: u32| platform.nodes[node as usize].name.clone();
    let event = |happened: &Happened| {
        let (code, tasks, what) = match happened.kind {
            ChangeKind::Leaves => {
                ("node-left", Some(happened.tasks), format!("leaves; {} tasks run again", happened.tasks))
            }
            ChangeKind::Joins => ("node-joined", None, happened.kind.to_string()),
            kind @ ChangeKind::Rates { .. } => ("rates-changed", None, kind.to_string()),
        };
        let node = name(happened.node);
        let message = format!("{node} {what}");
        RunEvent { t_s: happened.t_s, code: code.into(), node: Some(node), tasks, message }
    };
    Run {
        params: Params::default(),
        seed: point.seed,
        platform: platform.name.clone(),
        order: point.policy.order,
        ports: point.policy.ports,
        compute: ComputedBy::Simulated,
        tasks: outcome.tasks,
        makespan_s: outcome.makespan_s,
        throughput_tasks_per_s: outcome.throughput_tasks_per_s,
        bound_tasks_per_s: None,
        root_only_tasks_per_s: None,
        nodes: (0u32..)
            .zip(&outcome.nodes)
            .map(|(at, node)| RunNode {
                name: name(at),
                tasks: node.tasks,
                busy_s: node.busy_s,
                received_mb: node.received_mb,
                seen: outcome.seen.get(at as usize).map(|seen| beside(&platform.nodes[at as usize], seen)),
            })
            .collect(),
        events: outcome.events.iter().map(event).collect(),
        warnings: Vec::new(),
        resumed: None,
    }
}

/// What was seen of a node beside what the platform says.
fn beside(node: &Node, seen: &NodeSeen) -> SeenNode {
    SeenNode {
        compute_per_s: seen.compute_per_s.beside(Some(node.compute_per_s.get())),
        receive_limit_mb_per_s: seen
            .receive_limit_mb_per_s
            .and_then(|seen| seen.beside(node.receive_limit_mb_per_s.map(Quantity::get))),
        ir_receive_s_per_mb: seen
            .ir_receive_s_per_mb
            .and_then(|seen| seen.beside(Some(node.ir_receive_s_per_mb.get()))),
        ir_send_s_per_mb: seen.ir_send_s_per_mb.and_then(|seen| seen.beside(Some(node.ir_send_s_per_mb.get()))),
    }
}

fn columns<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let kinds: Vec<u8> = trace.kind.iter().map(|kind| *kind as u8).collect();
    columns.set_item("kind", PyBytes::new(py, &kinds))?;
    let child: Vec<u32> = trace.child.iter().map(|child| child.unwrap_or(NOBODY)).collect();
    for (name, values) in [("node", &trace.node), ("child", &child)] {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        columns.set_item(name, PyBytes::new(py, &bytes))?;
    }
    let tasks: Vec<u8> = trace.task.iter().flat_map(|task| task.to_ne_bytes()).collect();
    columns.set_item("task", PyBytes::new(py, &tasks))?;
    for (name, values) in
        [("start_s", &trace.start_s), ("end_s", &trace.end_s), ("mb", &trace.mb), ("work", &trace.work)]
    {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        columns.set_item(name, PyBytes::new(py, &bytes))?;
    }
    Ok(columns)
}

/// Simulates one point of an experiment: its entry of `runs.json` as JSON, and the columns of its trace.
///
/// `progress` is called now and then with the tasks done, on the calling thread; what it raises ends the run.
#[pyfunction]
#[pyo3(signature = (platform, experiment, *, tasks_csv = None, trace = false, progress = None))]
fn simulate<'py>(
    py: Python<'py>,
    platform: &Bound<'py, PyPlatform>,
    experiment: &str,
    tasks_csv: Option<&[u8]>,
    trace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let platform = &platform.get().0;
    let mut raised = None;
    let mut watch = |done: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
        });
        told.map_err(|error| raised = Some(error)).is_ok()
    };
    let done = py.detach(|| simulated(platform, experiment.as_bytes(), tasks_csv, trace, &mut watch));
    if let Some(error) = raised {
        return Err(error);
    }
    let (run, trace) = done.map_err(|refusal| match refusal {
        Refusal::Description(error) => errors::description(py, &error),
        Refusal::Plan(error) => {
            errors::raise(py, "DescriptionError", &error.to_string(), "argument", error.hint().as_deref())
        }
        Refusal::Run(error) => errors::raise(py, "InfeasibleError", &error.to_string(), "infeasible", None),
    })?;
    Ok((json(&run)?, trace.map(|trace| columns(py, &trace)).transpose()?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate, module)?)
}
