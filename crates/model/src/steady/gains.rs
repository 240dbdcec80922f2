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
use super::tree::{Up, Walk};

impl Walk {
    /// Writes the three gains of every node.
    pub(crate) fn gains(&self, tree: &Tree, up: &Up, flow: &[f64], method: Method, rates: &mut Rates) {
        let count = self.stations.len();
        let (size, work) = (self.task.size_mb(), self.task.work_units());
        rates.gain_per_receive_mb_per_s = vec![0.0; count];
        rates.gain_per_send_mb_per_s = vec![0.0; count];
        rates.gain_per_work_per_s = vec![0.0; count];
        let mut worth = vec![0.0; count];
        worth[0] = 1.0;
        for (place, &node) in tree.order.iter().enumerate() {
            let value = worth[place];
            if value == 0.0 {
                continue; // and so are all below: they are no limit to the tree
            }
            let (station, prices, n) = (&self.stations[place], &up.best[place].prices, node as usize);
            // What the law leaves of the compute rate, as a fraction.
            let mut left = 1.0;
            if station.compute > 0.0 {
                left -= station.rho / station.compute * flow[place];
            }
            for child in self.children(place) {
                let received = flow[child];
                if received == 0.0 {
                    continue;
                }
                if station.compute > 0.0 {
                    left -= self.cost[child] / station.compute * received;
                }
                let offer = self.offer(child, up.best[child].rate);
                if received >= offer.limit {
                    let reduced = prices.reduced(station, &offer);
                    worth[child] = value * if method == Method::Exact { reduced.max(0.0) } else { reduced };
                }
                if self.ports == Ports::Single && prices.send > 0.0 {
                    // A faster link also takes less of the parent's port: the derivative of -x / b is x / b^2.
                    let c = tree.order[child] as usize;
                    let share = received * offer.port * offer.port;
                    rates.gain_per_receive_mb_per_s[c] += value * prices.send * share / size;
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
