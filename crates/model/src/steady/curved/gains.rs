//! Derivatives of the tree's rate for more of each limit, at the planned rates.
//!
//! A node at its best meets (1) of [`super::local`] and up to two limits. Small changes keep every flow on its line of
//! the curve, or move it to the next one, so the change of the best rate follows from the slopes there. The derivatives
//! are chained from the root down, as without curves.

use super::{Curved, Losses, Reach};
use crate::steady::Rates;
use crate::steady::station::Station;

const ALIKE: f64 = 1e-9;

/// A small change of a node's resources.
#[derive(Clone, Copy, Default)]
struct Change {
    won: f64,
    send: f64,
    receive: f64,
}

/// A node at its best: its limits and the slopes there.
struct Point<'a> {
    station: &'a Station,
    /// Compute rate taken by one more task/s received, including its own computation.
    demand: f64,
    /// Gain of one more task/s sent, to the child that brings most.
    more: f64,
    /// Cost of one task/s less, to the child that brings least.
    less: f64,
    meets_receive: bool,
    meets_send: bool,
    meets_local: bool,
    /// Whether it could compute more than its link brings.
    has_surplus: bool,
}

impl Point<'_> {
    /// Returns how much the node's rate grows.
    fn grows(&self, change: Change) -> f64 {
        let Change { won, send, receive } = change;
        if self.meets_receive && (self.has_surplus || self.station.drop == 0.0 && self.more > 0.0) {
            return receive;
        }
        let over = |change: f64, by: f64| if by > 0.0 { change / by } else { f64::INFINITY };
        let mut least = f64::INFINITY;
        if self.meets_send {
            least = least.min(over(won + self.more * send, self.demand));
        }
        if self.meets_local {
            least = least.min(over(won, self.demand - self.more));
        }
        if self.meets_receive && self.station.drop > 0.0 {
            // The rate and the flows share the link.
            let slope = if receive > 0.0 { self.more } else { self.less } / self.station.drop;
            least = least.min(over(won + slope * receive, self.demand + slope));
        } else if self.meets_receive {
            least = least.min(receive);
        }
        if least.is_finite() { least } else { over(won, self.demand) }
    }

    /// Returns how much the rate grows for one more task/s to a child that brings `brings`. If no more can be sent in
    /// total, another child gets less, at a cost of `costs` per task.
    fn grows_by_child(&self, brings: f64, costs: f64) -> f64 {
        if self.meets_receive && (self.has_surplus || self.station.drop == 0.0) {
            return 0.0;
        }
        let over = |change: f64, by: f64| if change > 0.0 && by > 0.0 { change / by } else { 0.0 };
        let mut least = over(brings, self.demand);
        if self.meets_send {
            least = least.min(over(brings - costs, self.demand));
        }
        if self.meets_local && brings < self.demand {
            least = least.min(over(brings - costs, self.demand - costs));
        }
        if self.meets_receive {
            least = least.min(over(brings - costs, self.demand + costs / self.station.drop));
        }
        least
    }
}

impl Curved<'_> {
    /// Writes the gains of a node at its best, and the worth of each child's subtree for more.
    pub(super) fn gains(&self, place: usize, reach: &Reach, worth: &mut [f64], rates: &mut Rates) {
        let (size, work) = (self.walk.task.size_mb(), self.walk.task.work_units());
        let (station, n) = (&self.walk.stations[place], self.walk.order[place] as usize);
        let (children, rate) = (self.walk.children(place), reach.flow[place]);
        let local = self.local(place, &reach.planned, Losses::Measured);
        let flows = &reach.flow[children.clone()];
        let (sent, won) = local.sums(flows);
        let meets = |flow: f64, most: f64| (flow - most).abs() <= ALIKE * most;
        let first = children.start;
        let is_all = |at: usize| {
            let gaps = &reach.gaps[first + at];
            flows[at] >= local.gains[at].end() * (1.0 - ALIKE) || gaps.iter().any(|gap| meets(flows[at], gap.0))
        };
        let more = (0..flows.len()).filter(|&at| !is_all(at)).map(|at| local.gains[at].slope_after(flows[at]));
        let mut down: Vec<(f64, usize)> = (0..flows.len())
            .filter(|&at| flows[at] > 0.0)
            .map(|at| (local.gains[at].slope_before(flows[at]), at))
            .collect();
        down.sort_by(|a, b| a.0.total_cmp(&b.0));
        let meets = |used: f64, room: f64| room.is_finite() && used >= room * (1.0 - ALIKE);
        let point = Point {
            station,
            demand: local.demand.slope_after(rate),
            more: more.fold(0.0, f64::max),
            less: down.first().map_or(0.0, |one| one.0.max(0.0)),
            meets_receive: meets(rate + station.drop * sent, station.receive),
            meets_send: meets(sent, station.send),
            meets_local: meets(sent, rate),
            has_surplus: local.compute + won - local.demand.at(rate) > ALIKE * (local.compute + rate),
        };
        let lost: f64 = children.clone().map(|child| self.sends[child].at(reach.flow[child])).sum();
        let left = 1.0 - self.receives[place].at(rate) - lost;
        let own = worth[place];
        rates.gain_per_receive_mb_per_s[n] = own * point.grows(Change { receive: 1.0, ..Change::default() }) / size;
        rates.gain_per_send_mb_per_s[n] = own * point.grows(Change { send: 1.0, ..Change::default() }) / size;
        rates.gain_per_work_per_s[n] = if station.compute == 0.0 && left < -ALIKE {
            f64::NEG_INFINITY // it relays more than its processor could handle if it computed anything
        } else {
            own * point.grows(Change { won: left.max(0.0), ..Change::default() }) / work
        };
        for (at, child) in children.enumerate().filter(|&(at, _)| is_all(at)) {
            let slope = self.sends[child].slope_after(flows[at]);
            let brings = 1.0 - station.compute * slope;
            let other = down.iter().find(|one| one.1 != at).map_or(f64::INFINITY, |one| one.0);
            worth[child] = own * point.grows_by_child(brings, other);
        }
    }
}
