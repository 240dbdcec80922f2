//! Best rate of a node with non-concave gains: branch and bound (Falk and Soland 1969).
//!
//! After relaxation to concave hulls, at most one child is served on a line above its gain ([`Local::relaxed`]). Its
//! domain is split at a measured rate under that line, and both halves are relaxed again; the half with the highest
//! bound is next. Every relaxation also suggests flows to try. The gains are linear between measured rates, so the
//! search ends. Where a child cannot take a range of rates, its gain is a line over this gap, and its domain is split at
//! the gap's ends. The search ends early, with a bound above the best flows, when its work budget is used up.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use super::curve::Curve;
use super::local::{Local, Relaxed, Step, Steps};

/// A bound this close to the best rate proves it.
const PROVEN: f64 = 1e-9;

/// The outcome of a search.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub rate: f64,
    pub flows: Vec<f64>,
    pub bound: f64,
}

/// Range of rates for each child.
type Domains = Vec<(f64, f64)>;

struct Branch {
    domains: Domains,
    relaxed: Relaxed,
}

impl Ord for Branch {
    fn cmp(&self, other: &Self) -> Ordering {
        self.relaxed.rate.total_cmp(&other.relaxed.rate)
    }
}
impl PartialOrd for Branch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Branch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Branch {}

struct Search<'a> {
    local: &'a Local,
    whole: Domains,
    /// Children with the same gains have the same number. They are interchangeable, so earlier ones get no less than
    /// later ones.
    kinds: Vec<usize>,
    /// Steps of all whole domains, sorted.
    sorted: Vec<Step>,
    best: Found,
}

/// Finds the best flows. `work`: number of lines that may be evaluated; the first relaxation runs in any case.
pub(super) fn best(local: &Local, work: usize) -> Found {
    let nothing = vec![0.0; local.gains.len()];
    let alone = local.rate_with(0.0, 0.0).unwrap_or(0.0);
    let sorted = local.whole_steps().steps;
    let whole = local.gains.iter().map(|gain| (0.0, gain.end())).collect();
    let mut search =
        Search { local, whole, kinds: kinds(local), sorted, best: Found { rate: alone, flows: nothing, bound: alone } };
    search.run(work);
    search.best
}

impl Search<'_> {
    fn run(&mut self, work: usize) {
        let cost = self.sorted.len() + self.local.gains.len() + 8;
        let mut left = work / cost;
        let mut open = BinaryHeap::new();
        open.extend(self.branch(self.whole.clone()));
        while let Some(branch) = open.pop() {
            let bound = branch.relaxed.rate;
            self.best.bound = bound.max(self.best.rate);
            if bound <= self.best.rate * (1.0 + PROVEN) || left < 2 {
                return;
            }
            let Some((child, below, above)) = self.split(&branch) else { return };
            left -= 2;
            let alike = |other: &usize| self.kinds[*other] == self.kinds[child];
            let (mut less, mut more) = (branch.domains.clone(), branch.domains);
            for later in (child..less.len()).filter(alike) {
                less[later].1 = less[later].1.min(below);
            }
            for earlier in (0..=child).filter(alike) {
                more[earlier].0 = more[earlier].0.max(above);
            }
            for half in [less, more] {
                open.extend(self.branch(half).filter(|one| one.relaxed.rate > self.best.rate));
            }
        }
        self.best.bound = self.best.rate; // no branch is left
    }

    /// Returns where the lower half of a branch ends and the upper one begins: at a measured rate under the line that is
    /// served in part, or at the ends of the gap in which the flow lies.
    fn split(&self, branch: &Branch) -> Option<(usize, f64, f64)> {
        let (step, amount) = branch.relaxed.partial?;
        if let Some((from, to)) = self.local.gap_at(step.child, step.from + amount) {
            return Some((step.child, from, to));
        }
        let between = (step.from, step.from + step.length);
        let at = self.local.gains[step.child].nearest_point(step.from + amount, between)?;
        Some((step.child, at, at))
    }

    /// Relaxes within these domains, and tries the flows that it suggests.
    fn branch(&mut self, domains: Domains) -> Option<Branch> {
        let mut steps = Steps::default();
        let is_whole = |child: usize| domains[child] == self.whole[child];
        for (child, domain) in domains.iter().enumerate().filter(|&(child, _)| !is_whole(child)) {
            self.local.hull_of(child, *domain, &mut steps);
        }
        steps.put_in_order();
        steps.steps = merged(self.sorted.iter().filter(|step| is_whole(step.child)), &steps.steps);
        let mut relaxed = self.local.relaxed(&steps)?;
        for (flow, (low, _)) in relaxed.flows.iter_mut().zip(&domains) {
            *flow += low;
        }
        self.try_flows(&relaxed);
        Some(Branch { domains, relaxed })
    }

    /// Tries the flows of a relaxation, with each measured rate for the child that is served in part.
    fn try_flows(&mut self, relaxed: &Relaxed) {
        let (flows, gains) = (&relaxed.flows, &self.local.gains);
        let (sent, won) = self.local.sums(flows);
        let mut tries = vec![None];
        if let Some((step, _)) = relaxed.partial {
            if self.local.gap_at(step.child, flows[step.child]).is_some() {
                tries.clear();
            }
            let rates = gains[step.child].points().iter().map(|point| point.0);
            tries.extend(rates.map(|rate| Some((step.child, rate))));
        }
        for one in tries {
            let (mut sent, mut won) = (sent, won);
            if let Some((child, rate)) = one {
                sent += rate - flows[child];
                won += gains[child].at(rate) - gains[child].at(flows[child]);
            }
            if let Some(rate) = self.local.rate_with(won, sent).filter(|rate| *rate > self.best.rate) {
                self.best.rate = rate;
                self.best.flows.clone_from(flows);
                if let Some((child, rate)) = one {
                    self.best.flows[child] = rate;
                }
            }
        }
    }
}

/// Returns, for each child, the number of the first child with the same gains.
fn kinds(local: &Local) -> Vec<usize> {
    let mut first: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let bits = |gain: &Curve, gaps: &[(f64, f64)]| {
        gain.points().iter().chain(gaps).flat_map(|point| [point.0.to_bits(), point.1.to_bits()]).collect()
    };
    let each = local.gains.iter().zip(&local.gaps).enumerate();
    each.map(|(child, (gain, gaps))| *first.entry(bits(gain, gaps)).or_insert(child)).collect()
}

fn merged<'a>(first: impl Iterator<Item = &'a Step>, second: &[Step]) -> Vec<Step> {
    let mut all = Vec::new();
    let mut second = second.iter().peekable();
    for step in first {
        while let Some(other) = second.next_if(|other| (other.slope, step.child) > (step.slope, other.child)) {
            all.push(*other);
        }
        all.push(*step);
    }
    all.extend(second);
    all
}
