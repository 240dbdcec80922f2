//! Helpers for the farm tests: platforms from columns, runs, plans.

#![allow(dead_code)] // each test uses its part

use crosswind_model::{Task, plan};
use crosswind_policy::farm::{FarmOptions, MeanTask};
use crosswind_schema::Platform;
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange, Policy};
use crosswind_schema::plan::{Method, Plan, Ports};
use crosswind_sim::{Farm, Options, Outcome, SimError, simulate};
use proptest::prelude::*;

/// A node: parent's place, compute rate, receive limit, ir_receive, ir_send, send limit, drop, what one sender does not
/// reach of the receive limit.
#[derive(Clone, Debug, Default)]
pub struct Spot {
    pub parent: Option<usize>,
    pub compute: f64,
    pub receive: f64,
    pub ir_receive: f64,
    pub ir_send: f64,
    pub send: Option<f64>,
    pub drop: f64,
    pub latency: f64,
    pub missed: f64,
}

pub fn root(compute: f64) -> Spot {
    Spot { compute, ..Spot::default() }
}

pub fn below(parent: usize, compute: f64, receive: f64) -> Spot {
    Spot { parent: Some(parent), compute, receive, ..Spot::default() }
}

pub fn platform(spots: &[Spot]) -> Platform {
    let mut text = "schema_version = 1\nname = \"test\"\n".to_owned();
    for (n, spot) in spots.iter().enumerate() {
        text += &format!("[[node]]\nname = \"n{n}\"\ncompute_per_s = {}\n", spot.compute);
        if let Some(parent) = spot.parent {
            text += &format!(
                "parent = \"n{parent}\"\nreceive_limit_mb_per_s = {}\nir_receive_s_per_mb = {}\nir_send_s_per_mb = {}\n\
                 latency_s = {}\none_sender_share = {}\n",
                spot.receive,
                spot.ir_receive,
                spot.ir_send,
                spot.latency,
                1.0 - spot.missed
            );
        }
        if let Some(send) = spot.send {
            text += &format!("send_limit_mb_per_s = {send}\n");
        }
        text += &format!("receive_limit_drop = {}\n", spot.drop);
    }
    Platform::from_toml(text.as_bytes(), "test").unwrap()
}

pub fn same(count: u64, size_mb: f64, work: f64) -> Tasks {
    Tasks { count, size_mb: Column::Same(size_mb), work: Column::Same(work), ..Tasks::default() }
}

#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub order: Order,
    pub ports: Ports,
    pub buffer: Option<u64>,
    pub adapt: bool,
}

pub fn way(order: Order, ports: Ports, buffer: Option<u64>) -> Way {
    Way { order, ports, buffer, adapt: false }
}

pub fn adapting(order: Order, ports: Ports) -> Way {
    Way { adapt: true, ..way(order, ports, None) }
}

pub fn mean(tasks: &Tasks) -> MeanTask {
    let count = tasks.count as f64;
    MeanTask { size_mb: tasks.total_mb() / count, work: tasks.total_work() / count }
}

pub fn run(platform: &Platform, tasks: &Tasks, way: Way) -> Outcome {
    run_with(platform, tasks, way, 0.0, Options::default())
}

pub fn run_with(platform: &Platform, tasks: &Tasks, way: Way, result_size_mb: f64, options: Options<'_>) -> Outcome {
    try_run_with(platform, tasks, way, result_size_mb, options).unwrap()
}

pub fn try_run_with(
    platform: &Platform,
    tasks: &Tasks,
    way: Way,
    result_size_mb: f64,
    options: Options<'_>,
) -> Result<Outcome, SimError> {
    let task = mean(tasks);
    let policy = Policy {
        order: way.order,
        ports: way.ports.into(),
        buffer_tasks: way.buffer,
        adapt: way.adapt,
        ..Policy::default()
    };
    let farm_options = FarmOptions::of(&policy, task);
    let rates: Vec<f64> = match way.order {
        Order::Planned => {
            let task = Task::new(task.size_mb, task.work).unwrap().returning(result_size_mb).unwrap();
            let plan = plan(platform, task, way.ports, Method::Exact).unwrap();
            plan.nodes.iter().map(|node| node.received_tasks_per_s).collect()
        }
        _ => Vec::new(),
    };
    let farm_options = if rates.is_empty() { farm_options } else { farm_options.with_plan(&rates) };
    let farm = Farm { platform, tasks, farm_options, chunk_kib: policy.chunk_kib, result_size_mb };
    simulate(&farm, options, &mut |_| true)
}

pub fn bound(platform: &Platform, tasks: &Tasks, ports: Ports) -> f64 {
    bound_returning(platform, tasks, ports, 0.0)
}

pub fn bound_returning(platform: &Platform, tasks: &Tasks, ports: Ports, result_size_mb: f64) -> f64 {
    planned_returning(platform, tasks, ports, result_size_mb).bound_tasks_per_s
}

pub fn planned_returning(platform: &Platform, tasks: &Tasks, ports: Ports, result_size_mb: f64) -> Plan {
    let task = mean(tasks);
    let task = Task::new(task.size_mb, task.work).unwrap().returning(result_size_mb).unwrap();
    plan(platform, task, ports, Method::Exact).unwrap()
}

pub const PORTS: [Ports; 2] = [Ports::Single, Ports::Multi];

/// Returns changes in which nodes leave with their subtrees or rejoin; each pick gives a node and a fraction of
/// `span_s`. A node below one that is gone does neither.
pub fn comings_and_goings(tree: &[Spot], picks: &[(prop::sample::Index, f64)], span_s: f64) -> Vec<PlacedChange> {
    let mut times: Vec<f64> = picks.iter().map(|pick| pick.1 * span_s).collect();
    times.sort_by(f64::total_cmp);
    let mut gone = vec![false; tree.len()];
    let mut changes = Vec::new();
    for (pick, at_s) in picks.iter().zip(times) {
        let node = 1 + pick.0.index(tree.len() - 1);
        let mut up = tree[node].parent;
        while let Some(above) = up
            && !gone[above]
        {
            up = tree[above].parent;
        }
        if up.is_some() {
            continue; // a node above it is gone
        }
        let kind = if gone[node] { ChangeKind::Joins } else { ChangeKind::Leaves };
        gone[node] = !gone[node];
        if kind == ChangeKind::Joins {
            for below in node + 1..tree.len() {
                let mut up = tree[below].parent;
                while let Some(above) = up
                    && above > node
                {
                    up = tree[above].parent;
                }
                gone[below] &= up != Some(node);
            }
        }
        changes.push(PlacedChange { at_s, node: node as u32, kind });
    }
    changes
}
