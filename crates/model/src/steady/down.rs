//! Top-down pass: what each node gets, computes and is limited by, starting at the root, and the bound that proves it.

use crosswind_schema::plan::{LimitedBy, Method, Ports};

use super::Rates;
use super::gains::Worth;
use super::serve::serve_to;
use super::station::{Best, Offer, Prices, ROUNDING, Stop};
use super::tree::Walk;
use super::up::Up;

/// Working memory, reused from node to node.
#[derive(Default)]
struct Bench {
    offers: Vec<Offer>,
    flows: Vec<f64>,
}

impl Walk {
    /// Returns the plan, in the order of the input.
    pub fn rates(&self, method: Method) -> Rates {
        let count = self.stations.len();
        let mut up = self.up(method);
        let throughput = up.best[0].rate;
        let mut rates = Rates {
            throughput_tasks_per_s: throughput,
            bound_tasks_per_s: 0.0,
            root_only_tasks_per_s: self.stations[0].compute,
            computed_tasks_per_s: vec![0.0; count],
            received_tasks_per_s: vec![0.0; count],
            rank: vec![0; count],
            never_send: vec![false; count],
            limited_by: vec![LimitedBy::Compute; count],
            gain_per_receive_mb_per_s: vec![0.0; count],
            gain_per_send_mb_per_s: vec![0.0; count],
            gain_per_work_per_s: vec![0.0; count],
        };
        // Value of one more task/s of a subtree: by the prices, which prove the bound, and as the derivative for more.
        let (mut worth, mut more) = (vec![0.0; count], Worth::new(count));
        let mut bench = Bench::default();
        (worth[0], up.flow[0]) = (1.0, throughput);
        for (place, &node) in self.order.iter().enumerate() {
            let n = node as usize;
            let (best, received) = (up.best[place], up.flow[place]);
            let prices = Prices::of(&self.stations[place], &best);
            if worth[place] != 0.0 && self.returned(place) < best.rate {
                rates.bound_tasks_per_s += worth[place] * self.returned(place); // (6): what its subtree can do does not matter
            } else if worth[place] != 0.0 {
                rates.bound_tasks_per_s += worth[place] * prices.own_bound(&self.stations[place]);
                self.hand_down(place, method, &prices, &up, &mut worth);
            }
            self.hand_down_more(place, method, &prices, &up, &mut more, &mut rates);
            if received < best.rate {
                self.lessen(place, &mut up, &mut bench);
            }
            let range = self.children(place);
            // Treat rounding residue as zero: a rate of 1e-16 tasks/s would never send a task, or send for ever.
            up.flow[range.clone()].iter_mut().filter(|flow| **flow < ROUNDING * received).for_each(|flow| *flow = 0.0);
            for (rank, &child) in (1..).zip(&up.order[range.start..range.start + up.served[place] as usize]) {
                rates.rank[self.order[child as usize] as usize] = rank;
            }
            let sent: f64 = up.flow[range].iter().sum();
            rates.received_tasks_per_s[n] = received;
            rates.computed_tasks_per_s[n] = (received - sent).max(0.0);
            rates.never_send[n] = self.never_send(place);
            rates.limited_by[n] = self.limited_by(place, received, &best);
        }
        if method == Method::Greedy && self.ports == Ports::Single {
            rates.bound_tasks_per_s = self.rates(Method::Exact).bound_tasks_per_s; // the rule's own prices prove nothing
        }
        rates.bound_tasks_per_s = rates.bound_tasks_per_s.max(throughput);
        rates
    }

    /// Computes the flows to the children of a node that gets less than its best.
    fn lessen(&self, place: usize, up: &mut Up, bench: &mut Bench) {
        let (range, station) = (self.children(place), &self.stations[place]);
        let Bench { offers, flows } = bench;
        let wanted = station.per_task() * up.flow[place] - station.compute;
        if wanted <= 0.0 {
            up.flow[range].fill(0.0);
            return;
        }
        let served = &up.order[range.start..range.start + up.served[place] as usize];
        offers.clear();
        offers.extend(served.iter().map(|&c| self.offered(c as usize, up)));
        flows.clear();
        flows.resize(offers.len(), 0.0);
        if serve_to(station, offers, up.flow[place], flows) {
            for (offer, &amount) in offers.iter().zip(flows.iter()) {
                up.flow[offer.child as usize] = amount;
            }
        } else {
            // In proportion to the best flows: always feasible, since all constraints allow scaling down.
            let most = station.per_task() * up.best[place].rate - station.compute;
            let share = (wanted / most).clamp(0.0, 1.0);
            up.flow[range].iter_mut().for_each(|flow| *flow *= share);
        }
    }

    fn limited_by(&self, place: usize, received: f64, best: &Best) -> LimitedBy {
        if self.never_send(place) {
            return LimitedBy::NeverSend;
        }
        if received < best.rate {
            let returns = received >= self.returned(place) * (1.0 - ROUNDING);
            return if returns { LimitedBy::ReturnLink } else { LimitedBy::Parent };
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
