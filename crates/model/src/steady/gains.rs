//! Gain of the whole tree for one more MB/s or one more work unit/s at a node: derivatives for more.
//!
//! The derivatives of each node's best rate are chained from the root down: the worth of a subtree to the tree is its
//! parent's worth times what one more task/s of it brings the parent. A node's own derivatives are the prices of its
//! constraints where these are unique. Where they are not (two limits reached at the same point, identical children, a
//! node that computes nothing), the derivative for more differs from that for less, and [`super::more`] finds it. The
//! prices alone, unique or not, prove the bound ([`Walk::hand_down`]).
//!
//! For the greedy method they are the derivatives of that rule's result, from its prices. They may be negative: more
//! for one child may displace a better one.

use std::collections::{BTreeMap, BTreeSet};

use crosswind_schema::plan::{Method, Ports};

use super::Rates;
use super::more::Change;
use super::station::{Prices, ROUNDING, Station, Stop};
use super::tree::Walk;
use super::up::Up;

/// Relative differences below this count as equal.
const ALIKE: f64 = 1e-9;

/// Worth of each subtree to the tree for more, and which links are already included together with their parents' ports.
pub(crate) struct Worth {
    subtree: Vec<f64>,
    with_link: Vec<bool>,
    /// Number of child evaluations that [`super::more`] may still use. Beyond that, gains are the prices, which lie
    /// between the derivatives for more and for less: planning a million nodes that tie everywhere must not take
    /// minutes.
    budget: u64,
}

/// About a third of a second.
const BUDGET: u64 = 4_000_000;

impl Worth {
    pub fn new(count: usize) -> Self {
        let mut subtree = vec![0.0; count];
        subtree[0] = 1.0;
        Self { subtree, with_link: vec![false; count], budget: BUDGET }
    }

    /// Whether the budget allows `solutions` solutions of a node with `children` children. Deducts them if so.
    pub fn affords(&mut self, solutions: usize, children: usize) -> bool {
        let cost = solutions as u64 * (children as u64 + 4);
        let may = cost <= self.budget;
        if may {
            self.budget -= cost;
        }
        may
    }
}

impl Walk {
    /// Writes the worth of one more task/s of each child's subtree to the tree, by the prices: the dual's chain.
    pub(crate) fn hand_down(&self, place: usize, method: Method, prices: &Prices, up: &Up, worth: &mut [f64]) {
        let first = self.children(place).start;
        for &child in &up.order[first..first + up.served[place] as usize] {
            let child = child as usize;
            let offer = self.offered(child, up);
            let reduced = prices.reduced(&self.stations[place], &offer);
            worth[child] = worth[place]
                * match method {
                    Method::Exact => reduced.max(0.0),
                    Method::Greedy if up.flow[child] >= offer.limit => reduced,
                    Method::Greedy => 0.0,
                };
        }
    }

    /// Writes the gains of the node's limits, and the worth of each child's subtree. Nothing limits the tree at a node
    /// that could do more.
    pub(crate) fn hand_down_more(
        &self,
        place: usize,
        method: Method,
        prices: &Prices,
        up: &Up,
        worth: &mut Worth,
        rates: &mut Rates,
    ) {
        let own = worth.subtree[place];
        if self.jumps(place, up, worth) {
            rates.gain_per_work_per_s[self.order[place] as usize] = f64::NEG_INFINITY;
        }
        if own > 0.0
            && self.returns_bind(place, up)
            && up.flow[place] >= self.returned(place) * (1.0 - ROUNDING)
            && !worth.with_link[place]
        {
            rates.gain_per_receive_mb_per_s[self.order[place] as usize] += own / self.task.result_mb();
        }
        if own == 0.0 || up.flow[place] < up.best[place].rate {
            return;
        }
        let unique = method == Method::Greedy || self.has_unique_prices(place, prices, up);
        if !unique && worth.affords(self.solutions(place, up), self.children(place).len()) {
            self.gains_of_more(place, up, worth, rates);
        } else {
            self.hand_down(place, method, prices, up, &mut worth.subtree);
            self.gains(place, worth, prices, &up.flow, rates);
        }
    }

    /// Whether what its link carries back, (6), is less than a subtree could do.
    fn returns_bind(&self, place: usize, up: &Up) -> bool {
        self.returned(place) < up.best[place].rate
    }

    /// Returns how much more a parent may ask of a child per task/s of the child's link.
    fn more_of_link(&self, child: usize, up: &Up) -> f64 {
        let slope = || self.task.size_mb() / self.task.result_mb();
        let best = up.best[child].rate;
        if self.returns_bind(child, up) {
            slope()
        } else if self.returned(child) > best * (1.0 + ALIKE) {
            self.more(child, Change::Receive, up)
        } else {
            self.more(child, Change::Receive, up).min(slope())
        }
    }

    /// Returns how often [`Walk::gains_of_more`] solves a node: three times for each number of its own, and twice as
    /// often for each distinct child.
    fn solutions(&self, place: usize, up: &Up) -> usize {
        let kinds: BTreeSet<[u64; 5]> = self.children(place).map(|child| self.kind(child, up)).collect();
        9 + 9 * kinds.len()
    }

    /// Key under which children bring the same gain.
    fn kind(&self, child: usize, up: &Up) -> [u64; 5] {
        let Station { cost, receive, rho, drop, .. } = self.stations[child];
        [cost, receive, rho, drop, up.best[child].rate].map(f64::to_bits)
    }

    /// Writes the gains of a node at its best, and the worth of each child's subtree, if the prices are unique or the
    /// rule is the greedy one. `worth`: what one more task/s of the node brings the tree.
    fn gains(&self, place: usize, worth: &Worth, prices: &Prices, flow: &[f64], rates: &mut Rates) {
        let with_link = worth.with_link[place];
        let worth = worth.subtree[place];
        let (size, work) = (self.task.size_mb(), self.task.work_units());
        let (station, n) = (&self.stations[place], self.order[place] as usize);
        // Fraction of the compute rate that the law leaves.
        let taken: f64 = self.children(place).map(|child| self.stations[child].cost * flow[child]).sum();
        let left = match self.idle.get(&(place as u32)) {
            None => 1.0 - (station.rho * flow[place] + taken) / station.compute,
            Some(idle) => {
                let costs = self.children(place).zip(&idle.costs).map(|(child, cost)| cost * flow[child]);
                1.0 - idle.rho * flow[place] - costs.sum::<f64>()
            }
        };
        if self.ports == Ports::Single && prices.send > 0.0 {
            for child in self.children(place).filter(|&child| flow[child] > 0.0) {
                // A faster link also takes less of the parent's port: the derivative of -x / b is x / b^2.
                let port = 1.0 / self.stations[child].receive;
                let c = self.order[child] as usize;
                rates.gain_per_receive_mb_per_s[c] += worth * prices.send * flow[child] * port * port / size;
            }
        }
        if !with_link {
            rates.gain_per_receive_mb_per_s[n] += worth * prices.receive / size;
        }
        if self.ports == Ports::Multi {
            rates.gain_per_send_mb_per_s[n] = worth * prices.send / size;
        }
        // Below 0 only by rounding. If the whole rate is lost to transfers, more of it changes nothing.
        if rates.gain_per_work_per_s[n] == 0.0 {
            rates.gain_per_work_per_s[n] = worth * prices.compute * left.max(0.0) / work;
        }
    }

    /// Whether the prices of a node at its best are unique: there are as many marginal children as constraints with a
    /// price, each gets a part of what it could take, and no other constraint is exactly met.
    fn has_unique_prices(&self, place: usize, prices: &Prices, up: &Up) -> bool {
        let (station, best) = (&self.stations[place], &up.best[place]);
        if station.compute == 0.0 {
            return false;
        }
        let children = self.children(place);
        let served = &up.order[children.start..children.start + up.served[place] as usize];
        let sent: f64 = children.clone().map(|child| up.flow[child]).sum();
        let meets = |used: f64, room: f64| room.is_finite() && used >= room * (1.0 - ALIKE);
        if best.stop == Stop::Receive && best.side_price == 1.0 && station.drop == 0.0 {
            // The link is the only limit. Unless it is only just reached, more of anything else changes nothing.
            if station.alone() >= station.receive * (1.0 - ALIKE) {
                return station.alone() > station.receive * (1.0 + ALIKE);
            }
            return served.iter().any(|&child| {
                let child = child as usize;
                up.flow[child] < self.limit(child, up.best[child].rate) * (1.0 - ALIKE)
            });
        }
        let port: f64 = children.clone().map(|child| up.flow[child] * self.offer(child, 0.0).port).sum();
        let unpriced = [
            (prices.receive, best.rate + station.drop * sent, station.receive),
            (prices.send, port, station.send),
            (prices.local, sent, best.rate),
        ];
        if unpriced.iter().any(|&(price, used, room)| price <= ALIKE && meets(used, room)) {
            return false;
        }
        let mut priced = unpriced.iter().filter(|(price, ..)| *price > ALIKE).count();
        for &child in served {
            let child = child as usize;
            let (flow, limit) = (up.flow[child], self.limit(child, up.best[child].rate));
            let reduced = prices.reduced(station, &self.offer(child, limit));
            let (some, all) = (flow > ALIKE * limit, flow >= limit * (1.0 - ALIKE));
            if reduced.abs() <= ALIKE {
                if all || !some || priced == 0 {
                    return false;
                }
                priced -= 1;
            }
        }
        priced == 0
    }

    /// Like [`Walk::gains`], by small changes of the node's numbers, and the worth of its children.
    fn gains_of_more(&self, place: usize, up: &Up, worth: &mut Worth, rates: &mut Rates) {
        let (size, work) = (self.task.size_mb(), self.task.work_units());
        let n = self.order[place] as usize;
        let own = worth.subtree[place];
        let of = |change| worth_of(own, self.more(place, change, up));
        if rates.gain_per_work_per_s[n] == 0.0 {
            // More never slows the best plan except by a jump. A value that is indistinguishable from rounding counts
            // as 0.
            rates.gain_per_work_per_s[n] = of(Change::Compute).max(0.0) / work;
        }
        if self.ports == Ports::Multi {
            rates.gain_per_send_mb_per_s[n] = of(Change::Send) / size;
        }
        if place > 0 && !worth.with_link[place] {
            rates.gain_per_receive_mb_per_s[n] += of(Change::Receive) / size;
        }
        self.children_of_more(place, up, worth, rates);
    }

    /// Writes what more of each child's subtree, and of its link, brings the tree. Identical children bring the same.
    fn children_of_more(&self, place: usize, up: &Up, worth: &mut Worth, rates: &mut Rates) {
        let own = worth.subtree[place];
        let mut known: BTreeMap<([u64; 5], u64), (f64, f64)> = BTreeMap::new();
        for child in self.children(place).filter(|&child| !self.never_send(child)) {
            let link = if self.ports == Ports::Single { self.more_of_link(child, up) } else { 0.0 };
            let (subtree, faster) = *known.entry((self.kind(child, up), link.to_bits())).or_insert_with(|| {
                let of = |subtree, link| self.more(place, Change::Child { child, subtree, link }, up);
                (of(1.0, 0.0), if self.ports == Ports::Single { of(link, 1.0) } else { 0.0 })
            });
            // More never slows the best plan except by a jump, which the jumping node reports itself.
            worth.subtree[child] = worth_of(own, subtree.max(0.0));
            if self.ports == Ports::Single {
                worth.with_link[child] = true;
                rates.gain_per_receive_mb_per_s[self.order[child] as usize] =
                    worth_of(own, faster) / self.task.size_mb();
            }
        }
    }
}

/// Multiplies, keeping 0 even if a change makes a rate jump.
fn worth_of(worth: f64, more: f64) -> f64 {
    if worth == 0.0 { 0.0 } else { worth * more }
}
