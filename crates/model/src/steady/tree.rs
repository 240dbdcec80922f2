//! The whole tree: best rates from the leaves up, flows from the root down.
//!
//! Nodes stand breadth first, so that a node's children are neighbours and every loop runs straight through memory.

use std::ops::Range;

use crosswind_schema::Tree;
use crosswind_schema::plan::{LimitedBy, Method, Ports};
use crosswind_schema::platform::Shape;

use super::balance::Balance;
use super::ranking::highest_first;
use super::serve::{serve, serve_to};
use super::single;
use super::station::{Best, Offer, Station, Stop};
use super::{Columns, Rates, Task};
use crate::error::{ModelError, at_least_zero};

/// Rates in tasks per second outside this range are refused: sums and products of them stay far from overflow.
const PERMITTED: Range<f64> = 1e-100..1e100;

/// A tree's numbers, breadth first.
pub(crate) struct Walk {
    pub ports: Ports,
    pub task: Task,
    pub stations: Vec<Station>,
    /// Children of the node at place p stand at `first[p]..first[p + 1]`.
    pub first: Vec<u32>,
}

/// What the way up finds, breadth first.
pub(crate) struct Up {
    /// Best rate of each subtree, and why it is not better.
    pub best: Vec<Best>,
    /// What each node gets when its parent does its best.
    pub flow: Vec<f64>,
    /// Children in the order of service, in the parent's range; `served[p]` of them are worth it.
    pub order: Vec<u32>,
    pub served: Vec<u32>,
    /// Place of each node in its parent's order, from 1.
    pub rank: Vec<u32>,
    /// What each node sends at its best.
    pub sent: Vec<f64>,
}

/// The shape of a tree given by its parents' indices.
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
    /// Checks the values and lines them up breadth first, in tasks per second.
    pub fn new(columns: &Columns<'_>, tree: &Tree, task: Task, ports: Ports) -> Result<Self, ModelError> {
        let count = tree.order.len();
        let (size, work) = (task.size_mb(), task.work_units());
        let mut walk = Self { ports, task, stations: Vec::with_capacity(count), first: Vec::with_capacity(count + 1) };
        let (mut next, mut fine) = (1, true);
        for &node in &tree.order {
            let n = node as usize;
            let (compute, drop) = (columns.compute_per_s[n] / work, columns.receive_limit_drop[n]);
            let (mut receive, mut rho, mut cost) = (f64::INFINITY, 0.0, 0.0);
            if node != tree.root {
                let (ir_receive, ir_send) = (columns.ir_receive_s_per_mb[n], columns.ir_send_s_per_mb[n]);
                let parents_compute = columns.compute_per_s[tree.parent[n] as usize] / work;
                receive = columns.receive_limit_mb_per_s[n] / size;
                rho = share(ir_receive * size * compute);
                cost = share(ir_send * size * parents_compute);
                fine &= PERMITTED.contains(&receive) & (ir_receive >= 0.0) & (ir_send >= 0.0);
            }
            let send = match ports {
                Ports::Single => 1.0,
                Ports::Multi => columns.send_limit_mb_per_s[n] / size,
            };
            fine &= permitted(compute) & permitted(rho) & permitted(cost) & permitted(drop);
            fine &= PERMITTED.contains(&send) | (send == f64::INFINITY);
            let port = if ports == Ports::Single { 1.0 / receive } else { 1.0 };
            walk.stations.push(Station { compute, rho, receive, drop, send, unit: 1.0 / (1.0 + rho), cost, port });
            walk.first.push(next);
            next += tree.children(node).len() as u32;
        }
        walk.first.push(next);
        if !fine {
            refused(columns, tree.root as usize, ports)?;
            walk.extremes(tree)?;
        }
        Ok(walk)
    }

    /// The first rate whose sums and products could overflow.
    fn extremes(&self, tree: &Tree) -> Result<(), ModelError> {
        for (place, station) in self.stations.iter().enumerate() {
            for (what, value, may_be_infinite) in [
                ("the compute rate", station.compute, false),
                ("the receive limit", station.receive, place == 0),
                ("the send limit", station.send, true),
                ("receive_limit_drop", station.drop, false),
                ("the interference of receiving", station.rho, false),
                ("the parent's interference of sending", station.cost, false),
            ] {
                let unlimited = may_be_infinite && value == f64::INFINITY;
                if !(permitted(value) || unlimited) {
                    return Err(ModelError::Extreme { node: tree.order[place] as usize, what, value });
                }
            }
        }
        Ok(())
    }

    pub fn children(&self, place: usize) -> Range<usize> {
        self.first[place] as usize..self.first[place + 1] as usize
    }

    pub fn offer(&self, place: usize, limit: f64) -> Offer {
        let Station { cost, port, receive, .. } = self.stations[place];
        let per_port = if self.ports == Ports::Single { receive } else { 1.0 };
        Offer { child: place as u32, cost, port, per_port, limit }
    }

    /// Tasks won per room of the parent's port, the paper's priority; multi-port: the order of lowest interference rates.
    fn priority(&self, place: usize) -> f64 {
        let Station { cost, receive, .. } = self.stations[place];
        if self.ports == Ports::Single { (1.0 - cost) * receive } else { 1.0 - cost }
    }

    /// Whether a task sent to the node costs its parent at least the task (IR_s Z C >= 1).
    pub fn never_send(&self, place: usize) -> bool {
        self.stations[place].cost >= 1.0 // the root's is 0
    }

    /// Best rate of every subtree, leaves first.
    pub fn up(&self, method: Method) -> Up {
        let count = self.stations.len();
        let idle = Best { rate: 0.0, stop: Stop::Filled, side: None, port_price: 0.0 };
        let mut up = Up {
            best: vec![idle; count],
            flow: vec![0.0; count],
            order: vec![0; count],
            served: vec![0; count],
            rank: vec![0; count],
            sent: vec![0.0; count],
        };
        let exact_single = method == Method::Exact && self.ports == Ports::Single;
        let (mut keyed, mut offers, mut flows, mut balance) = (Vec::new(), Vec::new(), Vec::new(), Balance::default());
        for place in (0..count).rev() {
            let station = &self.stations[place];
            let range = self.children(place);
            if range.is_empty() {
                up.best[place] = Best { rate: station.receive.min(station.alone()), ..idle };
                if station.alone() >= station.receive {
                    up.best[place] = Best::of_link(station);
                }
                continue;
            }
            keyed.clear();
            for child in range.clone() {
                if !self.never_send(child) {
                    keyed.push((self.priority(child), child as u32));
                }
            }
            highest_first(&mut keyed);
            offers.clear();
            for &(_, child) in &keyed {
                offers.push(self.offer(child as usize, up.best[child as usize].rate));
            }
            flows.clear();
            flows.resize(offers.len(), 0.0);
            let best = match exact_single {
                true => single::best(station, &offers, &mut balance, &mut flows),
                false => serve(station, &offers, &mut flows),
            };
            let mut sent = 0.0;
            for (offer, &flow) in offers.iter().zip(&flows) {
                up.flow[offer.child as usize] = flow;
                sent += flow;
            }
            if let Some((kind, price)) = best.side.filter(|&(_, price)| exact_single && price > 0.0) {
                for (entry, offer) in keyed.iter_mut().zip(&offers) {
                    entry.0 = single::priority(station, offer, kind, price);
                }
                highest_first(&mut keyed);
            }
            for (rank, (place, &(_, child))) in (1..).zip(up.order[range].iter_mut().zip(&keyed)) {
                *place = child;
                up.rank[child as usize] = rank;
            }
            up.sent[place] = sent;
            up.served[place] = offers.len() as u32;
            up.best[place] = best;
        }
        up
    }

    /// The plan: what each node gets, computes and is limited by, in the order of the input.
    pub fn rates(&self, tree: &Tree, method: Method) -> Result<Rates, ModelError> {
        let count = self.stations.len();
        let up = self.up(method);
        let worth = self.worth(&up, method);
        let bound = match (method, self.ports) {
            (Method::Greedy, Ports::Single) => {
                let exact = self.up(Method::Exact);
                self.bound(&exact, &self.worth(&exact, Method::Exact))
            }
            _ => self.bound(&up, &worth),
        };
        let throughput = up.best[0].rate;
        let mut rates = Rates {
            throughput_tasks_per_s: throughput,
            bound_tasks_per_s: bound.max(throughput),
            root_only_tasks_per_s: self.stations[0].compute,
            computed_tasks_per_s: vec![0.0; count],
            received_tasks_per_s: vec![0.0; count],
            rank: vec![0; count],
            never_send: vec![false; count],
            limited_by: vec![LimitedBy::Compute; count],
            ..Rates::default()
        };
        let (flow, sent) = self.down(&up);
        for (place, &node) in tree.order.iter().enumerate() {
            let n = node as usize;
            rates.received_tasks_per_s[n] = flow[place];
            rates.computed_tasks_per_s[n] = (flow[place] - sent[place]).max(0.0);
            rates.rank[n] = up.rank[place];
            rates.never_send[n] = self.never_send(place);
            rates.limited_by[n] = self.limited_by(place, flow[place], &up.best[place]);
        }
        self.gains(tree, &up, &worth, &flow, &mut rates);
        Ok(rates)
    }

    /// What each node gets and sends: all that its parent's best gives it, or less where the parent gets less.
    fn down(&self, up: &Up) -> (Vec<f64>, Vec<f64>) {
        let (mut flow, mut sent) = (up.flow.clone(), up.sent.clone());
        flow[0] = up.best[0].rate;
        let (mut offers, mut flows) = (Vec::new(), Vec::new());
        for place in 0..flow.len() {
            if flow[place] >= up.best[place].rate {
                continue;
            }
            let range = self.children(place);
            let station = &self.stations[place];
            let wanted = station.per_task() * flow[place] - station.compute;
            if wanted <= 0.0 {
                flow[range].fill(0.0);
                sent[place] = 0.0;
                continue;
            }
            let served = &up.order[range.start..range.start + up.served[place] as usize];
            offers.clear();
            offers.extend(served.iter().map(|&c| self.offer(c as usize, up.best[c as usize].rate)));
            flows.clear();
            flows.resize(offers.len(), 0.0);
            if serve_to(station, &offers, flow[place], &mut flows) {
                for (offer, &amount) in offers.iter().zip(&flows) {
                    flow[offer.child as usize] = amount;
                }
            } else {
                // In proportion to the best flows: always possible, as all constraints allow scaling down.
                let most = station.per_task() * up.best[place].rate - station.compute;
                let share = (wanted / most).clamp(0.0, 1.0);
                flow[range.clone()].iter_mut().for_each(|flow| *flow *= share);
            }
            sent[place] = flow[range].iter().sum();
        }
        (flow, sent)
    }

    fn limited_by(&self, place: usize, received: f64, best: &Best) -> LimitedBy {
        if self.never_send(place) {
            return LimitedBy::NeverSend;
        }
        if received < best.rate {
            return LimitedBy::Parent;
        }
        match (best.stop, self.ports) {
            (Stop::Filled, _) => LimitedBy::Compute,
            (Stop::Receive, _) => LimitedBy::ReceiveLimit,
            (Stop::Local, _) => LimitedBy::LocalCompute,
            (Stop::Port, Ports::Single) => LimitedBy::Port,
            (Stop::Port, Ports::Multi) => LimitedBy::SendLimit,
        }
    }
}

/// Whether a value is one that arithmetic carries safely.
fn permitted(value: f64) -> bool {
    (value == 0.0) | PERMITTED.contains(&value)
}

/// The first value out of its range.
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

/// A share of a task that is too small to count is none: it would only overflow when divided by.
fn share(value: f64) -> f64 {
    if value < PERMITTED.start { 0.0 } else { value }
}
