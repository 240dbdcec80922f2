//! Top-down pass: what each node gets and computes when the root does its best, and what limits it.

use crosswind_schema::plan::LimitedBy;

use super::{Curved, Losses, Reach};
use crate::steady::Rates;
use crate::steady::station::ROUNDING;

/// Rates whose relative difference is at most this are equal.
const ALIKE: f64 = 1e-9;
/// Maximum number of bisection steps for the fraction of its best flows that a node with less input sends.
const HALVINGS: usize = 60;

pub(in crate::steady) struct CurvedRates {
    pub rates: Rates,
    /// Upper bound for constant rates.
    pub constant_bound: f64,
}

impl Curved<'_> {
    /// Returns the plan, in the order of the input.
    pub fn rates(&self) -> CurvedRates {
        let count = self.walk.stations.len();
        let mut reach = self.reach();
        let mut rates = Rates {
            throughput_tasks_per_s: reach.planned[0],
            bound_tasks_per_s: reach.any[0],
            root_only_tasks_per_s: self.walk.stations[0].compute,
            computed_tasks_per_s: vec![0.0; count],
            received_tasks_per_s: vec![0.0; count],
            rank: vec![0; count],
            never_send: vec![false; count],
            limited_by: vec![LimitedBy::Compute; count],
            gain_per_receive_mb_per_s: vec![0.0; count],
            gain_per_send_mb_per_s: vec![0.0; count],
            gain_per_work_per_s: vec![0.0; count],
        };
        reach.flow[0] = reach.planned[0];
        let mut worth = vec![0.0; count];
        worth[0] = 1.0;
        for place in 0..count {
            let (n, received) = (self.walk.order[place] as usize, reach.flow[place]);
            let children = self.walk.children(place);
            // Above its steady rate a node keeps the flows of its planned one.
            let is_steady = received <= reach.steady[place] * (1.0 + ALIKE);
            let best = if is_steady { reach.steady[place] } else { reach.planned[place] };
            let at_best = received >= best * (1.0 - ALIKE);
            if is_steady {
                let flows = reach.steady_flow[children.clone()].to_vec();
                reach.flow[children.clone()].copy_from_slice(&flows);
                if !at_best {
                    self.lessen(place, &mut reach);
                }
            }
            reach.flow[children.clone()].iter_mut().filter(|flow| **flow < ROUNDING * received).for_each(|f| *f = 0.0);
            let sent: f64 = reach.flow[children].iter().sum();
            rates.received_tasks_per_s[n] = received;
            rates.computed_tasks_per_s[n] = (received - sent).max(0.0);
            rates.never_send[n] = self.never_send(place);
            rates.limited_by[n] = match (rates.never_send[n], at_best) {
                (true, _) => LimitedBy::NeverSend,
                (false, false) => LimitedBy::Parent,
                (false, true) => self.limited_by(place, &reach),
            };
            self.rank_children(place, &reach, &mut rates);
            if at_best && worth[place] > 0.0 {
                self.gains(place, &reach, &mut worth, &mut rates);
            }
        }
        CurvedRates { rates, constant_bound: reach.constant[0] }
    }

    /// Reduces the flows to the children of a node that gets less than its steady rate: to nothing if it can compute
    /// everything itself, otherwise to the smallest fraction of the best flows. Losses never fall here, so every
    /// fraction is feasible if no more is sent than received.
    fn lessen(&self, place: usize, reach: &mut Reach) {
        let (children, received) = (self.walk.children(place), reach.flow[place]);
        let local = self.local(place, &reach.steady, Losses::Rising);
        let flows = reach.flow[children.clone()].to_vec();
        let sent: f64 = flows.iter().sum();
        let scaled = |part: f64| flows.iter().map(|flow| flow * part).collect::<Vec<f64>>();
        let computes = |part: f64| {
            let (sent, won) = local.sums(&scaled(part));
            sent <= received && local.demand.at(received) <= local.compute + won
        };
        let most = if sent > received { received / sent } else { 1.0 };
        let (mut low, mut high) = (0.0, most);
        if computes(0.0) {
            high = 0.0;
        }
        for _ in 0..HALVINGS {
            if high - low <= ROUNDING * most {
                break;
            }
            let middle = 0.5 * (low + high);
            if computes(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        reach.flow[children].copy_from_slice(&scaled(high));
    }

    /// Whether no rate of its link brings the parent more than it costs.
    fn never_send(&self, place: usize) -> bool {
        if place == 0 {
            return false;
        }
        let compute = self.walk.stations[self.walk.parent(place)].compute;
        self.sends[place].points().iter().all(|&(rate, lost)| rate <= compute * lost)
    }

    fn limited_by(&self, place: usize, reach: &Reach) -> LimitedBy {
        let station = &self.walk.stations[place];
        let (received, sent) = (reach.flow[place], reach.flow[self.walk.children(place)].iter().sum::<f64>());
        let meets = |used: f64, room: f64| used >= room * (1.0 - ALIKE);
        if meets(received + station.drop * sent, station.receive) {
            LimitedBy::ReceiveLimit
        } else if meets(sent, station.send) {
            LimitedBy::SendLimit
        } else if sent > 0.0 && meets(sent, received) && station.compute > 0.0 {
            LimitedBy::LocalCompute
        } else {
            LimitedBy::Compute
        }
    }

    /// Ranks the children that get something by cost per task, lowest first, then those that might get something.
    fn rank_children(&self, place: usize, reach: &Reach, rates: &mut Rates) {
        let cost = |child: usize| {
            let flow = reach.flow[child];
            let rate = if flow > 0.0 { flow } else { self.sends[child].end() };
            (flow == 0.0, self.sends[child].at(rate) / rate)
        };
        let served = self.walk.children(place).filter(|&child| !self.never_send(child));
        let mut keyed: Vec<_> = served.map(|child| (cost(child), child)).collect();
        keyed.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for (rank, (_, child)) in (1..).zip(keyed) {
            rates.rank[self.walk.order[child] as usize] = rank;
        }
    }
}
