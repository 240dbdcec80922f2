//! The whole tree: best rates from the leaves up, flows from the root down.
//!
//! Nodes stand breadth first, so that a node's children are neighbours and every loop runs straight through memory.

use std::ops::Range;

use crosswind_schema::Tree;
use crosswind_schema::plan::{LimitedBy, Method, Ports};
use crosswind_schema::platform::Shape;

use super::balance::Balance;
use super::serve::{serve, serve_to};
use super::single;
use super::station::{Best, Offer, Prices, Station, Stop};
use super::{Columns, Rates, Task};
use crate::error::{ModelError, at_least_zero};

/// Rates in tasks per second outside this range are refused: sums and products of them stay far from overflow.
const PERMITTED: Range<f64> = 1e-100..1e100;

/// A tree's numbers, breadth first.
pub(crate) struct Walk {
    pub ports: Ports,
    pub task: Task,
    pub stations: Vec<Station>,
    /// Per node: what a task sent to it costs its parent, IR_s Z C.
    pub cost: Vec<f64>,
    /// Children of the node at place p stand at `first[p]..first[p + 1]`.
    pub first: Vec<u32>,
}

/// What the way up finds, breadth first.
pub(crate) struct Up {
    /// Best rate of each subtree, and why it is not better.
    pub best: Vec<Best>,
    /// Upper bound on each subtree's rate.
    pub bound: Vec<f64>,
    /// What each node gets when its parent does its best.
    pub flow: Vec<f64>,
    /// Children in the order of service, in the parent's range; `served[p]` of them are worth it.
    pub order: Vec<u32>,
    pub served: Vec<u32>,
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
    /// Checks the values and lines them up breadth first.
    pub fn new(columns: &Columns<'_>, tree: &Tree, task: Task, ports: Ports) -> Result<Self, ModelError> {
        let count = tree.order.len();
        let size = task.size_mb();
        let mut walk = Self {
            ports,
            task,
            stations: Vec::with_capacity(count),
            cost: Vec::with_capacity(count),
            first: Vec::with_capacity(count + 1),
        };
        let mut next = 1;
        for &node in &tree.order {
            let n = node as usize;
            let value = |name: &'static str, values: &[f64], unit, exclusive| {
                at_least_zero(|| format!("{name}[{n}]"), values[n], unit, exclusive)
            };
            let rate = |what: &'static str, value: f64| {
                let permitted = value == 0.0 || PERMITTED.contains(&value);
                if permitted { Ok(value) } else { Err(ModelError::Extreme { node: n, what, value }) }
            };
            let below_root = node != tree.root;
            let per_s = value("compute_per_s", columns.compute_per_s, "1/s", false)?;
            let compute = rate("compute rate", per_s / task.work_units())?;
            let ir_receive = value("ir_receive_s_per_mb", columns.ir_receive_s_per_mb, "s/MB", false)?;
            let receive = match below_root {
                true => {
                    let limit = value("receive_limit_mb_per_s", columns.receive_limit_mb_per_s, "MB/s", true)?;
                    rate("receive limit", limit / size)?.max(PERMITTED.start)
                }
                false => f64::INFINITY,
            };
            let send = match (ports, columns.send_limit_mb_per_s[n]) {
                (Ports::Single, _) => 1.0,
                (Ports::Multi, f64::INFINITY) => f64::INFINITY,
                (Ports::Multi, _) => {
                    let limit = value("send_limit_mb_per_s", columns.send_limit_mb_per_s, "MB/s", true)?;
                    rate("send limit", limit / size)?
                }
            };
            let cost = match below_root {
                true => {
                    let parent = columns.compute_per_s[tree.parent[n] as usize] / task.work_units();
                    value("ir_send_s_per_mb", columns.ir_send_s_per_mb, "s/MB", false)? * size * parent
                }
                false => 0.0,
            };
            let rho = if below_root { ir_receive * size * compute } else { 0.0 };
            for (what, share) in [("interference of receiving at", rho), ("interference of sending to", cost)] {
                rate(what, if share < PERMITTED.start { 0.0 } else { share })?;
            }
            let drop = value("receive_limit_drop", columns.receive_limit_drop, "", false)?;
            walk.stations.push(Station { compute, rho, receive, drop, send });
            walk.cost.push(cost);
            walk.first.push(next);
            next += tree.children(node).len() as u32;
        }
        walk.first.push(next);
        Ok(walk)
    }

    pub fn children(&self, place: usize) -> Range<usize> {
        self.first[place] as usize..self.first[place + 1] as usize
    }

    /// Room of the parent's port that a task to the node takes.
    fn port(&self, place: usize) -> f64 {
        match self.ports {
            Ports::Single => 1.0 / self.stations[place].receive,
            Ports::Multi => 1.0,
        }
    }

    pub fn offer(&self, place: usize, limit: f64) -> Offer {
        Offer { child: place as u32, cost: self.cost[place], port: self.port(place), limit }
    }

    /// Whether a task sent to the node costs its parent at least the task (IR_s Z C >= 1).
    pub fn never_send(&self, place: usize) -> bool {
        self.cost[place] >= 1.0
    }

    /// Best rate and bound of every subtree, leaves first.
    pub fn up(&self, method: Method) -> Up {
        let count = self.stations.len();
        let idle = Best { rate: 0.0, stop: Stop::Filled, prices: Prices::default() };
        let mut up = Up {
            best: vec![idle; count],
            bound: vec![0.0; count],
            flow: vec![0.0; count],
            order: (0..count as u32).collect(),
            served: vec![0; count],
        };
        let exact_single = method == Method::Exact && self.ports == Ports::Single;
        let (mut offers, mut flows) = (Vec::new(), Vec::new());
        let (mut keys, mut balance) = (Keys::default(), Balance::default());
        for place in (0..count).rev() {
            let station = &self.stations[place];
            let range = self.children(place);
            keys.clear();
            for child in range.clone().filter(|&c| !self.never_send(c)) {
                keys.add(self.offer(child, up.best[child].rate).priority(), child);
            }
            up.served[place] = keys.write_order(&mut up.order[range.clone()]);
            let served = range.start..range.start + up.served[place] as usize;
            offers.clear();
            offers.extend(up.order[served.clone()].iter().map(|&c| self.offer(c as usize, up.best[c as usize].rate)));
            flows.clear();
            flows.resize(offers.len(), 0.0);
            let best = if exact_single {
                let (best, other) = single::best(station, &offers, &mut balance, &mut flows);
                if let Some((kind, price)) = other.filter(|&(_, price)| price > 0.0) {
                    keys.clear();
                    for offer in &offers {
                        keys.add(single::priority(station, offer, kind, price), offer.child as usize);
                    }
                    keys.write_order(&mut up.order[served]);
                }
                best
            } else {
                serve(station, &offers, &mut flows)
            };
            up.bound[place] = best.prices.own_bound(station);
            for (offer, &flow) in offers.iter().zip(&flows) {
                let child = offer.child as usize;
                up.flow[child] = flow;
                up.bound[place] += best.prices.reduced(station, offer).max(0.0) * up.bound[child];
            }
            up.best[place] = best;
        }
        up
    }

    /// The plan: what each node gets, computes and is limited by, in the order of the input.
    pub fn rates(&self, tree: &Tree, method: Method) -> Result<Rates, ModelError> {
        let count = self.stations.len();
        let up = self.up(method);
        let bound = match (method, self.ports) {
            (Method::Greedy, Ports::Single) => self.up(Method::Exact).bound[0],
            _ => up.bound[0],
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
        let flow = self.down(&up);
        for (place, &node) in tree.order.iter().enumerate() {
            let n = node as usize;
            let children = self.children(place);
            let sent: f64 = flow[children.clone()].iter().sum();
            rates.received_tasks_per_s[n] = flow[place];
            rates.computed_tasks_per_s[n] = (flow[place] - sent).max(0.0);
            rates.never_send[n] = place > 0 && self.never_send(place);
            rates.limited_by[n] = self.limited_by(place, flow[place], &up.best[place]);
            let served = &up.order[children.start..children.start + up.served[place] as usize];
            for (rank, &child) in (1..).zip(served) {
                rates.rank[tree.order[child as usize] as usize] = rank;
            }
        }
        self.gains(tree, &up, &flow, method, &mut rates);
        Ok(rates)
    }

    /// What each node gets, root first: all that its parent's best gives it, or less where the parent gets less.
    fn down(&self, up: &Up) -> Vec<f64> {
        let mut flow = vec![0.0; self.stations.len()];
        flow[0] = up.best[0].rate;
        let (mut offers, mut flows) = (Vec::new(), Vec::new());
        for place in 0..flow.len() {
            let range = self.children(place);
            if range.is_empty() || flow[place] == 0.0 {
                continue;
            }
            if flow[place] >= up.best[place].rate {
                flow[range.clone()].copy_from_slice(&up.flow[range]);
                continue;
            }
            let station = &self.stations[place];
            let served = &up.order[range.start..range.start + up.served[place] as usize];
            offers.clear();
            offers.extend(served.iter().map(|&c| self.offer(c as usize, up.best[c as usize].rate)));
            flows.clear();
            flows.resize(offers.len(), 0.0);
            if serve_to(station, &offers, flow[place], &mut flows).is_some() {
                for (offer, &amount) in offers.iter().zip(&flows) {
                    flow[offer.child as usize] = amount;
                }
            } else {
                // In proportion to the best flows: always possible, as all constraints allow scaling down.
                let (rate, per_task) = (up.best[place].rate, station.per_task());
                let needed = per_task * flow[place] - station.compute;
                let share = (needed / (per_task * rate - station.compute)).clamp(0.0, 1.0);
                for child in range {
                    flow[child] = share * up.flow[child];
                }
            }
        }
        flow
    }

    fn limited_by(&self, place: usize, received: f64, best: &Best) -> LimitedBy {
        if place > 0 && self.never_send(place) {
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

/// Children with their priorities, to be put in order: highest first, equal ones in the order of the file.
#[derive(Default)]
struct Keys {
    keyed: Vec<(f64, u32)>,
}

impl Keys {
    fn clear(&mut self) {
        self.keyed.clear();
    }

    fn add(&mut self, priority: f64, child: usize) {
        self.keyed.push((priority, child as u32));
    }

    /// Writes the children in order to the front of `places`; how many they are.
    fn write_order(&mut self, places: &mut [u32]) -> u32 {
        if self.keyed.len() > 1 {
            self.keyed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        for (place, &(_, child)) in places.iter_mut().zip(&self.keyed) {
            *place = child;
        }
        self.keyed.len() as u32
    }
}
