//! Upper bound for any tree, and for any schedule that sends outside a tree, proven by prices.
//!
//! Let tasks take any links at once, in fractions, as long as a host's links together carry no more over time than one
//! of them could alone. Every tree's plan is among these flows, and so is every schedule that uses no tree, so the best
//! rate of these flows bounds both. It is a linear program. With C, rho, cost, b and a port's room as in
//! `steady::station` (w = 1/b and room 1 with a single port, w = 1 and the send limit with several), flows x, own work
//! S,
//!
//! ```text
//! max sum S   S_j + sum_out x <= sum_in x           v_j   (not at the root)
//!             S_j + sum_in rho x + sum_out cost x <= C_j   y_j
//!             sum_in x / b <= 1                     r_j
//!             sum_out w x <= room_j                 p_j
//! ```
//!
//! Any prices v (of a task at a host, 0 at the root) and p (of a port) prove the bound
//!
//! ```text
//! sum_j C_j y_j + sum_j room_j p_j + sum_k r_k,   y_j = max(0, 1 - v_j),
//! r_k = max_j b_jk max(0, v_k - v_j - y_k rho_jk - y_j cost_jk - p_j w_jk)
//! ```
//!
//! With all prices 0, it is the sum of the compute rates. With v = 1 below the root, it is the root's own rate plus
//! what it can send. The best lies in between, at the minimum of a convex function, and is found by subgradients:
//! Polyak's step towards what a tree reaches, deflected from the last step if the two point against each other
//! (Camerini, Fratta and Maffioli 1975). Every point on the way is a proof, so the search may stop at any of them.

use crosswind_schema::plan::Ports;

use super::graph::{Graph, Leg};

/// Steps without a better bound after which the target is moved halfway towards it. With 30 the search stops far above
/// the optimum where hosts form groups; with 300 it mostly gets within 1 % of it (tests/property/test_overlay.py).
const PATIENCE: u64 = 300;
/// Deflection factor of a step from the last one: the authors' choice.
const TURN: f64 = 1.5;

/// A bound, and prices that prove it.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    pub rate: f64,
    task: Vec<f64>,
    port: Vec<f64>,
}

struct Prices<'a> {
    graph: &'a Graph,
    root: usize,
    hosts: Vec<usize>,
    /// Price of a task at each host.
    task: Vec<f64>,
    /// Price of each host's port, in units of `port_unit`.
    port: Vec<f64>,
    /// Maximum number of tasks per room of the port. Prices above this are useless.
    port_unit: Vec<f64>,
    slope_task: Vec<f64>,
    slope_port: Vec<f64>,
    last_task: Vec<f64>,
    last_port: Vec<f64>,
}

/// Returns a rate that no tree from `root` beats, at least `reached`, with its proof. Starts from the prices of another
/// root's proof if they are better, and searches until the rate is at most `enough` or for `steps` steps.
pub(super) fn bound(graph: &Graph, root: usize, reached: f64, enough: f64, steps: u64, near: Option<&Proof>) -> Proof {
    let hosts: Vec<usize> =
        graph.reached(root).iter().enumerate().filter(|(_, is_in)| **is_in).map(|(host, _)| host).collect();
    let unit = |host: usize| match graph.ports {
        Ports::Multi => 1.0,
        Ports::Single => hosts.iter().filter_map(|&to| graph.leg(host, to)).map(|leg| leg.receive).fold(0.0, f64::max),
    };
    let mut prices = Prices {
        graph,
        root,
        task: vec![0.0; graph.count],
        port: vec![0.0; graph.count],
        port_unit: (0..graph.count).map(unit).collect(),
        slope_task: vec![0.0; graph.count],
        slope_port: vec![0.0; graph.count],
        last_task: vec![0.0; graph.count],
        last_port: vec![0.0; graph.count],
        hosts,
    };
    let mut least = prices.start(near);
    let (mut aim, mut since) = (reached, 0);
    for _ in 0..steps {
        if least.rate <= enough.max(reached * (1.0 + super::ROUNDING)) {
            break;
        }
        let value = prices.value();
        if value < least.rate {
            least.rate = value;
            least.task.clone_from(&prices.task);
            least.port.clone_from(&prices.port);
            since = 0;
        } else {
            since += 1;
            if since > PATIENCE {
                (aim, since) = (0.5 * (aim + least.rate), 0);
            }
        }
        if !prices.step(value - aim) {
            break;
        }
    }
    least.rate = least.rate.max(reached);
    least
}

impl Prices<'_> {
    /// Selects the best of the prices that need no search.
    fn start(&mut self, near: Option<&Proof>) -> Proof {
        let count = self.graph.count;
        // Each task below the root is worth one, and the root's port is worth its best use.
        let mut root_sends = Proof { rate: 0.0, task: vec![1.0; count], port: vec![0.0; count] };
        root_sends.port[self.root] = if self.graph.send[self.root].is_finite() { 1.0 } else { 0.0 };
        let all_compute = Proof { rate: 0.0, task: vec![0.0; count], port: vec![0.0; count] };
        let mut best: Option<Proof> = None;
        for mut start in [all_compute, root_sends].into_iter().chain(near.cloned()) {
            start.task[self.root] = 0.0;
            self.task.clone_from(&start.task);
            self.port.clone_from(&start.port);
            start.rate = self.value();
            if best.as_ref().is_none_or(|best| start.rate < best.rate) {
                best = Some(start);
            }
        }
        let best = best.unwrap_or_default();
        self.task.clone_from(&best.task);
        self.port.clone_from(&best.port);
        best
    }

    fn own(&self, host: usize) -> f64 {
        (1.0 - self.task[host]).max(0.0)
    }

    /// Returns the net value of one task per second over a link.
    fn worth(&self, from: usize, to: usize, leg: &Leg) -> f64 {
        let port = self.port[from] * self.port_unit[from] * self.weight(leg);
        self.task[to] - self.task[from] - self.own(to) * leg.rho - self.own(from) * leg.cost - port
    }

    /// Returns the room of the sender's port that one task takes.
    fn weight(&self, leg: &Leg) -> f64 {
        if self.graph.ports == Ports::Single { 1.0 / leg.receive } else { 1.0 }
    }

    /// Returns the bound that these prices prove, and computes its slopes.
    fn value(&mut self) -> f64 {
        let graph = self.graph;
        self.slope_task.fill(0.0);
        self.slope_port.fill(0.0);
        let mut value = 0.0;
        for at in 0..self.hosts.len() {
            let host = self.hosts[at];
            value += graph.compute[host] * self.own(host);
            if self.own(host) > 0.0 {
                self.slope_task[host] -= graph.compute[host];
            }
            if graph.send[host].is_finite() {
                value += graph.send[host] * self.port[host] * self.port_unit[host];
                self.slope_port[host] += graph.send[host] * self.port_unit[host];
            }
        }
        for at in 0..self.hosts.len() {
            let to = self.hosts[at];
            if to == self.root {
                continue;
            }
            let mut best: Option<(f64, usize, Leg)> = None;
            for &from in &self.hosts {
                let Some(leg) = graph.leg(from, to) else { continue };
                let brings = leg.receive * self.worth(from, to, &leg);
                if brings > best.map_or(0.0, |(most, ..)| most) {
                    best = Some((brings, from, leg));
                }
            }
            let Some((brings, from, leg)) = best else { continue };
            value += brings;
            let lost_in = if self.own(to) > 0.0 { leg.rho } else { 0.0 };
            let lost_out = if self.own(from) > 0.0 { leg.cost } else { 0.0 };
            self.slope_task[to] += leg.receive * (1.0 + lost_in);
            self.slope_task[from] -= leg.receive * (1.0 - lost_out);
            self.slope_port[from] -= leg.receive * self.weight(&leg) * self.port_unit[from];
        }
        value
    }

    /// Descends along the slope by the step that a linear slope would need to reduce the value by `excess`. Returns
    /// whether there is a slope.
    fn step(&mut self, excess: f64) -> bool {
        self.keep_inside();
        let (mut against, mut length) = (0.0, 0.0);
        for &host in &self.hosts {
            against += self.slope_task[host] * self.last_task[host] + self.slope_port[host] * self.last_port[host];
            length += self.last_task[host].powi(2) + self.last_port[host].powi(2);
        }
        if against < 0.0 {
            let turn = TURN * against / length;
            for &host in &self.hosts {
                self.slope_task[host] -= turn * self.last_task[host];
                self.slope_port[host] -= turn * self.last_port[host];
            }
            self.keep_inside();
        }
        let square: f64 =
            self.hosts.iter().map(|&host| self.slope_task[host].powi(2) + self.slope_port[host].powi(2)).sum();
        if square == 0.0 {
            return false;
        }
        for &host in &self.hosts {
            self.task[host] = (self.task[host] - excess / square * self.slope_task[host]).clamp(0.0, 1.0);
            self.port[host] = (self.port[host] - excess / square * self.slope_port[host]).clamp(0.0, 1.0);
        }
        std::mem::swap(&mut self.slope_task, &mut self.last_task);
        std::mem::swap(&mut self.slope_port, &mut self.last_port);
        true
    }

    /// Zeroes slopes that point outward at the boundary of the permitted prices.
    fn keep_inside(&mut self) {
        let outwards = |price: f64, slope: f64| (price <= 0.0 && slope > 0.0) || (price >= 1.0 && slope < 0.0);
        for &host in &self.hosts {
            if host == self.root || outwards(self.task[host], self.slope_task[host]) {
                self.slope_task[host] = 0.0;
            }
            if self.graph.send[host].is_infinite() || outwards(self.port[host], self.slope_port[host]) {
                self.slope_port[host] = 0.0;
            }
        }
    }
}
