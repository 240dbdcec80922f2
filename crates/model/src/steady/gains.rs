//! What one more MB/s or one more work unit/s at a node would bring the whole tree.
//!
//! The prices of each node's constraints, chained from the root down: a subtree is worth to the tree what its parent is
//! worth times what one more task/s of it brings the parent. For the exact method these are a dual solution of the whole
//! tree's linear program, so where the optimum is not degenerate they are its derivatives. Where it is (two limits reached
//! at the same point), the derivative for more differs from that for less, and a gain lies between the two; of a
//! constraint met exactly when a child is filled, it is the derivative for more. For the greedy method they are the
//! derivatives of what that rule reaches, which may be negative: more for one child may push out a better one.

use crosswind_schema::plan::{Method, Ports};

use super::Rates;
use super::station::Prices;
use super::tree::Walk;
use super::up::Up;

impl Walk {
    /// Writes what one more task/s of each child's subtree would bring the whole tree.
    pub(crate) fn hand_down(&self, place: usize, method: Method, prices: &Prices, up: &Up, worth: &mut [f64]) {
        let first = self.children(place).start;
        for &child in &up.order[first..first + up.served[place] as usize] {
            let child = child as usize;
            let offer = self.offer(child, up.best[child].rate);
            let reduced = prices.reduced(&self.stations[place], &offer);
            worth[child] = worth[place]
                * match method {
                    Method::Exact => reduced.max(0.0),
                    Method::Greedy if up.flow[child] >= offer.limit => reduced,
                    Method::Greedy => 0.0,
                };
        }
    }

    /// Writes the three gains of a node that does its best: of one that could do more, nothing limits the tree.
    pub(crate) fn gains(&self, place: usize, worth: f64, prices: &Prices, flow: &[f64], rates: &mut Rates) {
        let (size, work) = (self.task.size_mb(), self.task.work_units());
        let (station, n) = (&self.stations[place], self.order[place] as usize);
        // What the law leaves of the compute rate, as a fraction.
        let taken: f64 = self.children(place).map(|child| self.stations[child].cost * flow[child]).sum();
        let left =
            if station.compute > 0.0 { 1.0 - (station.rho * flow[place] + taken) / station.compute } else { 1.0 };
        if self.ports == Ports::Single && prices.send > 0.0 {
            for child in self.children(place).filter(|&child| flow[child] > 0.0) {
                // A faster link also takes less of the parent's port: the derivative of -x / b is x / b^2.
                let port = 1.0 / self.stations[child].receive;
                let c = self.order[child] as usize;
                rates.gain_per_receive_mb_per_s[c] += worth * prices.send * flow[child] * port * port / size;
            }
        }
        rates.gain_per_receive_mb_per_s[n] += worth * prices.receive / size;
        if self.ports == Ports::Multi {
            rates.gain_per_send_mb_per_s[n] = worth * prices.send / size;
        }
        // Below 0 only by rounding: where the whole rate is lost to transfers, more of it changes nothing.
        rates.gain_per_work_per_s[n] = worth * prices.compute * left.max(0.0) / work;
    }
}
