//! The derivative of a node's best rate for more of one of its numbers, where prices are not unique.
//!
//! The best rate is computed again with the number a little larger. It is piecewise linear in what children can take and in
//! the limits, and smooth between its kinks in the other numbers, so that a step below the distance of the next kink gives
//! the derivative to rounding.

use crosswind_schema::plan::Ports;

use super::balance::Balance;
use super::gains::Worth;
use super::serve::serve;
use super::single;
use super::station::{Offer, Station};
use super::tree::Walk;
use super::up::Up;

/// The step, as a part of what is changed.
const STEP: f64 = 1e-6;
/// Derivatives below this are rounding.
const NOISE: f64 = 1e-7;
/// So is a change of the rate by less than this part of it, however small the step that brought it.
const ROUNDED: f64 = 16.0 * f64::EPSILON;
/// Part of the rate that is lost in a jump, at least: less is rounding.
const LOST: f64 = 1e-10;
/// How much smaller the second step of a node's first compute rate is: a slope loses so much less, a jump the same.
const SMALLER: f64 = 1e-3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The compute rate, and with it what interference costs, tasks/s.
    Compute,
    /// The link's limit, tasks/s.
    Receive,
    /// The limit to all children together, tasks/s.
    Send,
    /// What a child's subtree can take, and the limit of its link to this node's port, tasks/s, in these proportions.
    Child { child: usize, subtree: f64, link: f64 },
}

impl Walk {
    /// The derivative of the node's best rate for more of a number; see [`Walk::jumps`] for a compute rate of 0.
    pub(crate) fn more(&self, place: usize, change: Change, up: &Up) -> f64 {
        let station = &self.stations[place];
        let of = match change {
            Change::Compute => station.compute,
            Change::Receive => station.receive,
            Change::Send => station.send,
            Change::Child { child, .. } => up.best[child].rate,
        };
        if of == f64::INFINITY {
            return 0.0;
        }
        // Against what else the node has, where what is changed is nothing.
        let scale = if of > 0.0 { of } else { up.best[place].rate.max(0.0) };
        let scale = if scale > 0.0 {
            scale
        } else if station.receive.is_finite() {
            station.receive
        } else {
            1.0
        };
        let best = self.changed(place, change, 0.0, up);
        let step = STEP * scale;
        let won = self.changed(place, change, step, up) - best;
        // Of a smooth function the error of two such steps falls with their square.
        let half = self.changed(place, change, 0.5 * step, up) - best;
        let more = (4.0 * half - won) / step;
        if more.abs() < NOISE.max(ROUNDED * best.abs() / step) { 0.0 } else { more }
    }

    /// Whether the tree's rate jumps down as soon as a node that computes nothing computes anything: it may then receive and
    /// send no more than leaves its compute rate something (S >= 0), however small that is.
    pub(crate) fn jumps(&self, place: usize, up: &Up, worth: &mut Worth) -> bool {
        let Some(idle) = self.idle.get(&(place as u32)) else { return false };
        let sent: f64 = self.children(place).zip(&idle.costs).map(|(child, cost)| cost * up.flow[child]).sum();
        if idle.rho * up.flow[place] + sent <= 1.0 + STEP {
            return false;
        }
        let (mut at, mut best) = (place, up.best[place].rate);
        let steps = [STEP * best, SMALLER * STEP * best];
        let mut less = steps.map(|step| self.changed(place, Change::Compute, step, up));
        let is_jump = |best: f64, less: [f64; 2]| {
            let lost = less.map(|less| best - less);
            lost[1] > LOST * best && lost[1] > 0.5 * lost[0]
        };
        while at > 0 && is_jump(best, less) {
            let parent = self.parent(at);
            if !worth.affords(2, self.children(parent).len()) {
                return true;
            }
            let change = Change::Child { child: at, subtree: -1.0, link: 0.0 };
            let lost = less.map(|less| up.best[at].rate - less);
            (at, best) = (parent, up.best[parent].rate);
            less = lost.map(|lost| self.changed(parent, change, lost, up));
        }
        is_jump(best, less)
    }

    pub(crate) fn parent(&self, place: usize) -> usize {
        self.first.partition_point(|&first| first as usize <= place) - 1
    }

    /// The best rate with a number changed by so much.
    fn changed(&self, place: usize, change: Change, by: f64, up: &Up) -> f64 {
        let mut station = self.stations[place];
        let idle = self.idle.get(&(place as u32));
        let compute = match change {
            Change::Compute => station.compute + by,
            _ => station.compute,
        };
        let grown = if station.compute > 0.0 { compute / station.compute } else { 1.0 };
        station.rho = idle.map_or(station.rho * grown, |idle| idle.rho * compute);
        station.compute = compute;
        match change {
            Change::Receive => station.receive += by,
            Change::Send => station.send += by,
            Change::Compute | Change::Child { .. } => {}
        }
        let mut offers = Vec::with_capacity(self.children(place).len());
        for (at, child) in self.children(place).enumerate() {
            let own = &self.stations[child];
            let cost = idle.map_or(own.cost * grown, |idle| idle.costs[at] * compute);
            let (mut limit, mut receive) = (up.best[child].rate, own.receive);
            if let Change::Child { child: changed, subtree, link } = change {
                if changed == child {
                    limit = (limit + by * subtree).max(0.0);
                    receive += by * link;
                }
            }
            if cost < 1.0 {
                offers.push(Offer::new(child as u32, cost, receive, limit, self.ports));
            }
        }
        best(&station, &mut offers, self.ports)
    }
}

fn best(station: &Station, offers: &mut [Offer], ports: Ports) -> f64 {
    offers.sort_by(|a, b| b.priority().total_cmp(&a.priority()));
    let mut flows = vec![0.0; offers.len()];
    match ports {
        Ports::Single => single::best(station, offers, &mut Balance::default(), &mut flows).rate,
        Ports::Multi => serve(station, offers, &mut flows).rate,
    }
}
