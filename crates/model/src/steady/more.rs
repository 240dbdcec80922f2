//! Derivative of a node's best rate for more of one of its numbers, where prices are not unique.
//!
//! The best rate is recomputed with the number slightly larger. It is piecewise linear in what children can take and in
//! the limits, and smooth between its kinks in the other numbers. A step below the distance to the next kink therefore
//! gives the derivative up to rounding.

use crosswind_schema::plan::Ports;

use super::balance::Balance;
use super::gains::Worth;
use super::serve::serve;
use super::single;
use super::station::{Offer, Station};
use super::tree::Walk;
use super::up::Up;

/// The step, relative to the changed number.
const STEP: f64 = 1e-6;
/// Derivatives below this are rounding.
const NOISE: f64 = 1e-7;
/// Relative changes of the rate below this are rounding, too, however small the step.
const ROUNDED: f64 = 16.0 * f64::EPSILON;
/// Minimum relative loss of the rate in a jump. Less is rounding.
const LOST: f64 = 1e-10;
/// Ratio of the second test step to the first, for a node's first compute rate: with it, a slope loses proportionally
/// less, a jump the same.
const SMALLER: f64 = 1e-3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The compute rate, and in proportion the cost of interference, tasks/s.
    Compute,
    /// The limit of the link to the parent, tasks/s.
    Receive,
    /// The limit to all children together, tasks/s.
    Send,
    /// What a parent may ask of a child's subtree (below 0: what the subtree can do), and the limit of its link to this node's port, tasks/s, changed in these
    /// proportions.
    Child { child: usize, subtree: f64, link: f64 },
}

impl Walk {
    /// Returns the derivative of the node's best rate for more of a number. See [`Walk::jumps`] for a compute rate of
    /// 0.
    pub(crate) fn more(&self, place: usize, change: Change, up: &Up) -> f64 {
        let station = &self.stations[place];
        let of = match change {
            Change::Compute => station.compute,
            Change::Receive => station.receive,
            Change::Send => station.send,
            Change::Child { child, .. } => self.limit(child, up.best[child].rate),
        };
        if of == f64::INFINITY {
            return 0.0;
        }
        // If the changed number is 0, scale by the node's other numbers.
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
        // Two such steps cancel the first-order error of a smooth function, so the rest falls with their square.
        let half = self.changed(place, change, 0.5 * step, up) - best;
        let more = (4.0 * half - won) / step;
        if more.abs() < NOISE.max(ROUNDED * best.abs() / step) { 0.0 } else { more }
    }

    /// Whether the tree's rate jumps down as soon as a node that computes nothing computes anything. It may then
    /// receive and send only as much as leaves its compute rate something (S >= 0), however small that rate is.
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

    /// Returns the best rate with a number changed by `by`.
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
            let (mut limit, mut receive) = (self.limit(child, up.best[child].rate), own.receive);
            if let Change::Child { child: changed, subtree, link } = change {
                if changed == child {
                    limit = match subtree < 0.0 {
                        true => self.limit(child, (up.best[child].rate + by * subtree).max(0.0)),
                        false => limit + by * subtree,
                    };
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
