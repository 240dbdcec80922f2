//! What one more MB/s or one more work unit/s at a node would bring the whole tree.
//!
//! The prices of each node's constraints, chained from the root down: a subtree is worth to the tree what its parent is
//! worth times what one more task/s of it brings the parent. For the exact method these are a dual solution of the whole
//! tree's linear program, so where the optimum is not degenerate they are its derivatives. Where it is (two limits reached
//! at the same point), the derivative for more differs from that for less, and a gain lies between the two; of a
//! constraint met exactly when a child is filled, it is the derivative for more. For the greedy method they are the
//! derivatives of what that rule reaches, which may be negative: more for one child may push out a better one.

use crosswind_schema::Tree;
use crosswind_schema::plan::{Method, Ports};

use super::Rates;
use super::station::Prices;
use super::tree::{Up, Walk};

impl Walk {
    /// What one more task/s of each subtree would bring the whole tree.
    pub(crate) fn worth(&self, up: &Up, method: Method) -> Vec<f64> {
        let mut worth = vec![0.0; self.stations.len()];
        worth[0] = 1.0;
        for place in 0..worth.len() {
            if worth[place] == 0.0 {
                continue; // and so is all below
            }
            let station = &self.stations[place];
            let prices = Prices::of(station, &up.best[place]);
            let range = self.children(place);
            for &child in &up.order[range.start..range.start + up.served[place] as usize] {
                let child = child as usize;
                let offer = self.offer(child, up.best[child].rate);
                let reduced = prices.reduced(station, &offer);
                worth[child] = worth[place]
                    * match method {
                        Method::Exact => reduced.max(0.0),
                        Method::Greedy if up.flow[child] >= offer.limit => reduced,
                        Method::Greedy => 0.0,
                    };
            }
        }
        worth
    }

    /// The dual's value: no schedule is faster, whether or not the rates found reach it.
    pub(crate) fn bound(&self, up: &Up, worth: &[f64]) -> f64 {
        let own = |place: usize| Prices::of(&self.stations[place], &up.best[place]).own_bound(&self.stations[place]);
        (0..worth.len()).filter(|&place| worth[place] != 0.0).map(|place| worth[place] * own(place)).sum()
    }

    /// Writes the three gains of every node.
    pub(crate) fn gains(&self, tree: &Tree, up: &Up, worth: &[f64], flow: &[f64], rates: &mut Rates) {
        let count = self.stations.len();
        let (size, work) = (self.task.size_mb(), self.task.work_units());
        rates.gain_per_receive_mb_per_s = vec![0.0; count];
        rates.gain_per_send_mb_per_s = vec![0.0; count];
        rates.gain_per_work_per_s = vec![0.0; count];
        for (place, &node) in tree.order.iter().enumerate() {
            let value = worth[place];
            if value == 0.0 || flow[place] < up.best[place].rate {
                continue; // it could do more already: nothing about it limits the tree
            }
            let (station, n) = (&self.stations[place], node as usize);
            let prices = Prices::of(station, &up.best[place]);
            // What the law leaves of the compute rate, as a fraction.
            let mut left = 1.0;
            if station.compute > 0.0 {
                left -= station.rho / station.compute * flow[place];
                let taken: f64 = self.children(place).map(|child| self.stations[child].cost * flow[child]).sum();
                left -= taken / station.compute;
            }
            if self.ports == Ports::Single && prices.send > 0.0 {
                for child in self.children(place).filter(|&child| flow[child] > 0.0) {
                    // A faster link also takes less of the parent's port: the derivative of -x / b is x / b^2.
                    let port = self.stations[child].port;
                    let c = tree.order[child] as usize;
                    rates.gain_per_receive_mb_per_s[c] += value * prices.send * flow[child] * port * port / size;
                }
            }
            rates.gain_per_receive_mb_per_s[n] += value * prices.receive / size;
            if self.ports == Ports::Multi {
                rates.gain_per_send_mb_per_s[n] = value * prices.send / size;
            }
            // Below 0 only by rounding: where the whole rate is lost to transfers, more of it changes nothing.
            rates.gain_per_work_per_s[n] = value * prices.compute * left.max(0.0) / work;
        }
    }
}
