//! The tree in the memory layout used for planning.
//!
//! Nodes are stored breadth first, so a node's children are adjacent and every loop runs sequentially through memory.

use std::collections::BTreeMap;
use std::ops::Range;

use crosswind_schema::Tree;
use crosswind_schema::plan::Ports;
use crosswind_schema::platform::Shape;

use super::station::{Offer, Station};
use super::{Columns, Task};
use crate::error::{ModelError, at_least_zero};

/// Rates in tasks per second outside this range are rejected, so that sums and products of them cannot overflow.
const PERMITTED: Range<f64> = 1e-100..1e100;

/// A tree's numbers, breadth first.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub ports: Ports,
    pub task: Task,
    pub stations: Vec<Station>,
    /// Node at each place, as numbered in the input.
    pub order: Vec<u32>,
    /// The children of the node at place p are at `first[p]..first[p + 1]`.
    pub first: Vec<u32>,
    /// For nodes that compute nothing, whose interference therefore costs nothing: its cost per task/s of compute rate.
    pub idle: BTreeMap<u32, Idle>,
}

/// What a node that computes nothing would lose per task/s of compute rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle {
    /// Per task received and returned (IR_r (Z + Z')).
    pub rho: f64,
    /// Per task sent to each child and returned by it (IR_i (Z + Z')).
    pub costs: Vec<f64>,
}

/// Builds the shape of a tree from its parents' indices.
pub(crate) fn shape_of(columns: &Columns<'_>) -> Result<Tree, ModelError> {
    let count = columns.parent.len();
    for (field, length) in [
        ("compute_per_s", columns.compute_per_s.len()),
        ("send_limit_mb_per_s", columns.send_limit_mb_per_s.len()),
        ("receive_limit_mb_per_s", columns.receive_limit_mb_per_s.len()),
        ("receive_limit_drop", columns.receive_limit_drop.len()),
        ("ir_receive_s_per_mb", columns.ir_receive_s_per_mb.len()),
        ("ir_send_s_per_mb", columns.ir_send_s_per_mb.len()),
    ] {
        if length != count {
            let sentence = format!("has {length} values; it must have {count}, as `parent` has");
            return Err(ModelError::argument(field, sentence));
        }
    }
    let mut parents = Vec::with_capacity(count);
    for (at, &parent) in columns.parent.iter().enumerate() {
        parents.push(match parent {
            -1 => None,
            p if p >= 0 && (p as usize) < count => Some(p as u32),
            p => {
                let sentence = format!("is {p}; it must be -1 (the root) or within 0 to {}", count - 1);
                return Err(ModelError::argument(format!("parent[{at}]"), sentence));
            }
        });
    }
    Tree::new(&parents).map_err(|shape| {
        ModelError::argument(
            "parent",
            match shape {
                Shape::NoRoot => "has no root; exactly one node must have the parent -1".to_owned(),
                Shape::TwoRoots(a, b) => format!("is -1 at {a} and at {b}; exactly one node must be the root"),
                Shape::Cycle(ring) => format!("has a cycle of {} nodes, among them {}", ring.len(), ring[0]),
            },
        )
    })
}

impl Walk {
    /// Checks the values and stores them breadth first, in tasks per second.
    pub fn new(columns: &Columns<'_>, tree: Tree, task: Task, ports: Ports) -> Result<Self, ModelError> {
        let count = tree.order.len();
        let (size, moved, work) = (task.size_mb(), task.moved_mb(), task.work_units());
        let result = task.result_mb();
        let mut fine = in_range(columns, tree.root as usize, task, ports);
        let station = |node: u32, receive: f64, rho: f64, cost: f64| {
            let n = node as usize;
            let send = if ports == Ports::Single { 1.0 } else { columns.send_limit_mb_per_s[n] / size };
            let (compute, drop) = (columns.compute_per_s[n] / work, columns.receive_limit_drop[n]);
            Station { compute, rho, receive, drop, send, cost }
        };
        let mut stations = Vec::with_capacity(count);
        let mut first = Vec::with_capacity(count + 1);
        stations.push(station(tree.root, f64::INFINITY, 0.0, 0.0));
        for (place, &parent) in tree.order.iter().enumerate() {
            first.push(stations.len() as u32);
            let parents_compute = stations[place].compute;
            for &node in tree.children(parent) {
                let n = node as usize;
                let receive = columns.receive_limit_mb_per_s[n] / size;
                let rho = share(columns.ir_receive_s_per_mb[n] * moved * (columns.compute_per_s[n] / work));
                let cost = share(columns.ir_send_s_per_mb[n] * moved * parents_compute);
                fine &= (rho < PERMITTED.end)
                    & (cost < PERMITTED.end)
                    & (result == 0.0 || permitted(receive * size / result));
                stations.push(station(node, receive, rho, cost));
            }
        }
        first.push(count as u32);
        let idle = idle(columns, &tree, &first, moved);
        let walk = Self { ports, task, stations, order: tree.order, first, idle };
        if !fine {
            refused(columns, tree.root as usize, ports)?;
            walk.extremes()?;
        }
        Ok(walk)
    }

    /// Returns an error for the first rate outside the range in which arithmetic is safe.
    fn extremes(&self) -> Result<(), ModelError> {
        for (place, station) in self.stations.iter().enumerate() {
            for (what, value, may_be_infinite) in [
                ("the compute rate", station.compute, false),
                ("the receive limit", station.receive, place == 0),
                ("the send limit", station.send, true),
                ("the rate of results", self.returned(place), true),
                ("receive_limit_drop", station.drop, false),
                ("the interference of receiving", station.rho, false),
                ("the parent's interference of sending", station.cost, false),
            ] {
                let unlimited = may_be_infinite && value == f64::INFINITY;
                if !unlimited && !permitted(value) {
                    return Err(ModelError::Extreme { node: self.order[place] as usize, what, value });
                }
            }
        }
        Ok(())
    }

    pub fn children(&self, place: usize) -> Range<usize> {
        self.first[place] as usize..self.first[place + 1] as usize
    }

    pub fn offer(&self, place: usize, limit: f64) -> Offer {
        let Station { cost, receive, .. } = self.stations[place];
        Offer::new(place as u32, cost, receive, limit, self.ports)
    }

    /// Returns the results per second that the node's link takes up to its parent, (6) of [`super::station`]. Infinite
    /// without results and at the root.
    pub fn returned(&self, place: usize) -> f64 {
        let result = self.task.result_mb();
        if result > 0.0 && place > 0 {
            self.stations[place].receive * (self.task.size_mb() / result)
        } else {
            f64::INFINITY
        }
    }

    /// Returns the rate that a parent may ask of the node: the best of its subtree, as far as results come back.
    pub fn limit(&self, place: usize, best: f64) -> f64 {
        best.min(self.returned(place))
    }

    /// Whether sending a task to the node costs its parent at least one task (IR_s (Z + Z') C >= 1).
    pub fn never_send(&self, place: usize) -> bool {
        self.stations[place].cost >= 1.0 // the root's is 0
    }
}

fn idle(columns: &Columns<'_>, tree: &Tree, first: &[u32], moved: f64) -> BTreeMap<u32, Idle> {
    let computes = |node: u32| columns.compute_per_s[node as usize] > 0.0;
    let of = |(place, &node): (usize, &u32)| {
        let children = &tree.order[first[place] as usize..first[place + 1] as usize];
        let rho = if node == tree.root { 0.0 } else { columns.ir_receive_s_per_mb[node as usize] * moved };
        let costs = children.iter().map(|&child| columns.ir_send_s_per_mb[child as usize] * moved).collect();
        (place as u32, Idle { rho, costs })
    };
    tree.order.iter().enumerate().filter(|(_, node)| !computes(**node)).map(of).collect()
}

/// Whether every value by itself is in range. Checks whole columns, which is faster than node by node.
fn in_range(columns: &Columns<'_>, root: usize, task: Task, ports: Ports) -> bool {
    let scaled = |unit: f64| PERMITTED.start * unit..PERMITTED.end * unit;
    let (rates, limits) = (scaled(task.work_units()), scaled(task.size_mb()));
    let below_root =
        |values: &[f64], fine: &dyn Fn(f64) -> bool| all(&values[..root], fine) & all(&values[root + 1..], fine);
    all(columns.compute_per_s, |v| (v == 0.0) | rates.contains(&v))
        & all(columns.receive_limit_drop, permitted)
        & all(&columns.receive_limit_mb_per_s[..root], |v| limits.contains(&v))
        & all(&columns.receive_limit_mb_per_s[root + 1..], |v| limits.contains(&v))
        & below_root(columns.ir_receive_s_per_mb, &|v| v >= 0.0)
        & below_root(columns.ir_send_s_per_mb, &|v| v >= 0.0)
        & (ports == Ports::Single || all(columns.send_limit_mb_per_s, |v| limits.contains(&v) | (v == f64::INFINITY)))
}

/// Like `Iterator::all`, but without stopping at the first failure, so that it vectorizes.
fn all(values: &[f64], fine: impl Fn(f64) -> bool) -> bool {
    values.iter().fold(true, |all, &value| all & fine(value))
}

/// Whether a value is in the range in which arithmetic is safe.
pub(crate) fn permitted(value: f64) -> bool {
    (value == 0.0) | PERMITTED.contains(&value)
}

/// Returns an error for the first value out of range.
fn refused(columns: &Columns<'_>, root: usize, ports: Ports) -> Result<(), ModelError> {
    for n in 0..columns.parent.len() {
        let value = |name: &str, values: &[f64], unit: &str, exclusive: bool| {
            at_least_zero(|| format!("{name}[{n}]"), values[n], unit, exclusive)
        };
        value("compute_per_s", columns.compute_per_s, "1/s", false)?;
        value("receive_limit_drop", columns.receive_limit_drop, "", false)?;
        if n != root {
            value("receive_limit_mb_per_s", columns.receive_limit_mb_per_s, "MB/s", true)?;
            value("ir_receive_s_per_mb", columns.ir_receive_s_per_mb, "s/MB", false)?;
            value("ir_send_s_per_mb", columns.ir_send_s_per_mb, "s/MB", false)?;
        }
        if ports == Ports::Multi && columns.send_limit_mb_per_s[n] != f64::INFINITY {
            value("send_limit_mb_per_s", columns.send_limit_mb_per_s, "MB/s", true)?;
        }
    }
    Ok(())
}

/// Rounds a negligible share of a task to 0: it would only overflow when divided by.
pub(crate) fn share(value: f64) -> f64 {
    if value < PERMITTED.start { 0.0 } else { value }
}
