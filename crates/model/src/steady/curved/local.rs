//! One node with nonlinear losses: its constraints, and its best rate if every loss is replaced by its convex hull.
//!
//! In the terms of [`super::super::station`], a node that takes T tasks/s and sends x_i to child i must satisfy
//!
//! 1. `demand(T) <= C + sum gain_i(x_i)`, `demand(T) = T + C L_r(T)` and `gain_i(x) = x - C L_i(x)`;
//! 2. `sum x <= min(send, T, (receive - T) / drop)`, and `T <= receive`;
//! 3. `0 <= x_i <= limit_i`, and no x_i in a gap of child i.
//!
//! Only the sum of the gains and the sum of the flows matter, so at a given sum concave gains are served by slope. The
//! best rate is the largest T that satisfies (1): a search along one line, exact for any shape of the demand.

use super::curve::{Curve, slope};
use super::search::Found;
use crate::steady::station::ROUNDING;

/// A node and what its children can take, in tasks/s.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub compute: f64,
    /// Receive limit, tasks/s. Infinite at the root.
    pub receive: f64,
    pub drop: f64,
    pub send: f64,
    pub demand: Curve,
    /// Gain by child, up to what it can take; a line over each gap.
    pub gains: Vec<Curve>,
    /// Ranges of rates between which a child can take none, by child.
    pub gaps: Vec<Vec<(f64, f64)>>,
}

/// A linear piece of a concave gain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub slope: f64,
    pub child: usize,
    pub from: f64,
    pub length: f64,
}

/// Concave gains, ready to be served: pieces that bring something, steepest first, and what is sent in any case.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub sent: f64,
    pub won: f64,
    pub steps: Vec<Step>,
}

impl Steps {
    /// Sorts the steepest first. Pieces of one child keep their order.
    pub fn put_in_order(&mut self) {
        self.steps.sort_by(|a, b| b.slope.total_cmp(&a.slope));
    }
}

/// The best rate under concave gains.
#[derive(Clone, Debug)]
pub(super) struct Relaxed {
    pub rate: f64,
    /// Flows in addition to those sent in any case.
    pub flows: Vec<f64>,
    /// The piece that is served in part, if any, and how much of it.
    pub partial: Option<(Step, f64)>,
}

impl Local {
    /// Returns the maximum that (2) lets the node send at a rate.
    fn room(&self, rate: f64) -> f64 {
        let link = if self.drop > 0.0 { (self.receive - rate) / self.drop } else { f64::INFINITY };
        self.send.min(rate).min(link)
    }

    /// Returns the best rate with these flows, or `None` if they are not feasible.
    pub fn rate_with(&self, won: f64, sent: f64) -> Option<f64> {
        let most = if self.drop > 0.0 { self.receive - self.drop * sent } else { self.receive };
        let most = most.min(self.compute + won); // the demand is at least the rate
        let scale = 1.0 + ROUNDING;
        if sent > self.send * scale || sent > most * scale || sent < 0.0 {
            return None;
        }
        let (level, low) = (self.compute + won, sent.min(most));
        let is_met = || self.demand.at(low) <= level + ROUNDING * (self.compute + sent); // if everything is forwarded
        self.demand.last_at_most(level, low, most).or_else(|| is_met().then_some(low))
    }

    /// Returns the ranges of rates between a steady one and the best that its flows do not allow.
    pub fn gaps_between(&self, steady: f64, best: &Found) -> Vec<(f64, f64)> {
        let (sent, won) = self.sums(&best.flows);
        let level = self.compute + won + ROUNDING * (self.compute + sent);
        let mut gaps = Vec::new();
        let mut allowed = self.demand.ranges_at_most(level, sent.max(steady).min(best.rate), best.rate);
        allowed.push((best.rate, best.rate)); // if rounding has left it out
        let mut end = steady;
        for (from, to) in allowed {
            if from > end * (1.0 + ROUNDING) {
                gaps.push((end, from));
            }
            end = end.max(to);
        }
        gaps
    }

    /// Returns the gap of a child in which a flow lies, beyond rounding.
    pub fn gap_at(&self, child: usize, flow: f64) -> Option<(f64, f64)> {
        let is_inside = |&(from, to): &(f64, f64)| from * (1.0 + ROUNDING) < flow && flow < to * (1.0 - ROUNDING);
        self.gaps[child].iter().copied().find(is_inside)
    }

    /// Returns the totals that flows send and gain.
    pub fn sums(&self, flows: &[f64]) -> (f64, f64) {
        let won = |(gain, &flow): (&Curve, &f64)| gain.at(flow);
        (flows.iter().sum(), self.gains.iter().zip(flows).map(won).sum())
    }

    /// Returns the concave hulls of all gains.
    pub fn whole_steps(&self) -> Steps {
        let mut steps = Steps::default();
        for (child, gain) in self.gains.iter().enumerate() {
            self.hull_of(child, (0.0, gain.end()), &mut steps);
        }
        steps.put_in_order();
        steps
    }

    /// Adds the concave hull of one child's gain within these bounds.
    pub fn hull_of(&self, child: usize, (low, high): (f64, f64), into: &mut Steps) {
        let hull = self.gains[child].concave_hull(low, high);
        into.sent += low;
        into.won += hull[0].1;
        for pair in hull.windows(2) {
            let step = Step { slope: slope(pair[0], pair[1]), child, from: pair[0].0, length: pair[1].0 - pair[0].0 };
            if step.slope <= 0.0 {
                break;
            }
            into.steps.push(step);
        }
    }

    /// Returns the best rate if the gains are those of the steps, which must be sorted.
    pub fn relaxed(&self, steps: &Steps) -> Option<Relaxed> {
        let mut served = vec![(steps.sent, steps.won)];
        let (mut sent, mut won) = served[0];
        for step in &steps.steps {
            sent += step.length;
            won += step.slope * step.length;
            served.push((sent, won));
        }
        let most = self.receive.min(self.compute + won);
        let surplus = |rate: f64| {
            let room = self.room(rate);
            if room < steps.sent * (1.0 - ROUNDING) {
                return f64::NEG_INFINITY;
            }
            let at = served.partition_point(|one| one.0 <= room).max(1) - 1;
            let more = steps.steps.get(at).map_or(0.0, |step| step.slope * (room - served[at].0).max(0.0));
            served[at].1 + more + self.compute - self.demand.at(rate)
        };
        // The surplus is linear between these rates.
        let mut kinks: Vec<f64> = self.demand.points().iter().map(|point| point.0).collect();
        kinks.extend(served.iter().map(|one| one.0));
        kinks.push(self.send);
        if self.drop > 0.0 {
            kinks.extend(served.iter().map(|one| self.receive - self.drop * one.0));
            kinks.extend([self.receive - self.drop * self.send, self.receive / (1.0 + self.drop)]);
        }
        kinks.retain(|&rate| 0.0 <= rate && rate < most);
        kinks.push(most);
        kinks.sort_unstable_by(|a, b| b.total_cmp(a));
        kinks.dedup();
        let rounding = -ROUNDING * (self.compute + won);
        let mut above = (f64::INFINITY, f64::NEG_INFINITY);
        let mut rate = None;
        for low in kinks {
            let left = surplus(low);
            if left >= rounding {
                let part = if above.1.is_finite() && left > 0.0 { left / (left - above.1) } else { 0.0 };
                rate = Some(if part > 0.0 { low + (above.0 - low) * part } else { low });
                break;
            }
            above = (low, left);
        }
        let rate = rate?;
        let wanted = self.demand.at(rate) - self.compute;
        let (flows, partial) = self.fill(steps, wanted, self.room(rate));
        Some(Relaxed { rate, flows, partial })
    }

    /// Serves in the order of the steps until the flows gain `wanted`.
    fn fill(&self, steps: &Steps, wanted: f64, room: f64) -> (Vec<f64>, Option<(Step, f64)>) {
        let mut flows = vec![0.0; self.gains.len()];
        let (mut sent, mut won) = (steps.sent, steps.won);
        for step in &steps.steps {
            let amount = step.length.min((wanted - won) / step.slope).min(room - sent);
            if amount <= 0.0 {
                break;
            }
            flows[step.child] += amount;
            if amount < step.length * (1.0 - ROUNDING) {
                return (flows, Some((*step, amount)));
            }
            sent += amount;
            won += step.slope * amount;
        }
        (flows, None)
    }
}
