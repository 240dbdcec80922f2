//! Exact search for the best tree of few hosts.
//!
//! A child's subtree that can take more never makes its parent slower, so a best tree consists of best subtrees. For
//! each (feeder, host, set of hosts below it), the search finds the best rate over all ways to split the set among
//! children. There are A000248(m) ways to split m hosts into sets with a head each, so 10 hosts take 15 million
//! evaluations of a node, whereas there are 10^9 trees (over all roots).

use super::graph::Graph;
use super::{Shape, better};
use crate::steady::{Bench, Offer};

/// Eleven hosts would take nine times as long as ten.
pub const MOST_HOSTS: usize = 10;

const IMPOSSIBLE: f64 = -1.0;

struct Table<'a> {
    graph: &'a Graph,
    /// Best rate by feeder, host and the set below it. The root is its own feeder.
    rate: Vec<f64>,
    bench: Bench,
    scratch: Vec<Offer>,
}

/// Returns the best tree from any of these roots, each with all hosts that it reaches.
pub(super) fn best_tree(graph: &Graph, roots: &[usize]) -> Shape {
    let count = graph.count;
    let rate = vec![IMPOSSIBLE; (count * count) << count];
    let mut table = Table { graph, rate, bench: Bench::default(), scratch: Vec::new() };
    let below: Vec<u32> = (0..count).map(|root| mask_of(&graph.reached(root)) & !(1 << root)).collect();
    for mask in 0..1u32 << count {
        for host in (0..count).filter(|host| mask & (1 << host) == 0) {
            let is_root = below[host] == mask && roots.contains(&host);
            let feeders: Vec<usize> = (0..count)
                .filter(|&f| if f == host { is_root } else { mask & (1 << f) == 0 && graph.leg(f, host).is_some() })
                .collect();
            if !feeders.is_empty() {
                table.fill(host, mask, &feeders);
            }
        }
    }
    let mut best = roots[0];
    for &root in &roots[1..] {
        if better(table.rate[table.at(root, root, below[root])], table.rate[table.at(best, best, below[best])]) {
            best = root;
        }
    }
    let mut shape = Shape { root: best, parent: vec![Shape::NOWHERE; count] };
    table.hang(best, best, below[best], &mut shape.parent);
    shape
}

fn mask_of(hosts: &[bool]) -> u32 {
    hosts.iter().enumerate().map(|(host, &is_in)| u32::from(is_in) << host).sum()
}

fn hosts_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..u32::BITS as usize).filter(move |host| mask & (1 << host) != 0)
}

impl Table<'_> {
    fn at(&self, feeder: usize, host: usize, below: u32) -> usize {
        (feeder * self.graph.count + host) << self.graph.count | below as usize
    }

    /// Computes the best rate of `host` over these hosts below it, for each feeder.
    fn fill(&mut self, host: usize, below: u32, feeders: &[usize]) {
        let mut best = vec![IMPOSSIBLE; feeders.len()];
        self.each_split(host, below, &mut Vec::new(), &mut |table, children| {
            for (best, &feeder) in best.iter_mut().zip(feeders) {
                let rate = table.look(feeder, host, children);
                if better(rate, *best) || *best < 0.0 {
                    *best = rate;
                }
            }
            false
        });
        for (rate, &feeder) in best.into_iter().zip(feeders) {
            let at = self.at(feeder, host, below);
            self.rate[at] = rate;
        }
    }

    /// Returns the rate of `host` with children that head these sets.
    fn look(&mut self, feeder: usize, host: usize, children: &[(usize, u32)]) -> f64 {
        let Some(station) = self.graph.station(feeder, host) else { return IMPOSSIBLE };
        self.scratch.clear();
        for &(child, below) in children {
            let limit = self.rate[self.at(host, child, below)];
            self.scratch.extend(self.graph.offer(host, child, limit));
        }
        self.graph.rate(&station, &mut self.scratch, &mut self.bench)
    }

    /// Enumerates the ways to split a set among children of `host`. Returns whether `visit` ended it by returning
    /// `true`.
    fn each_split(
        &mut self,
        host: usize,
        rest: u32,
        children: &mut Vec<(usize, u32)>,
        visit: &mut impl FnMut(&mut Self, &[(usize, u32)]) -> bool,
    ) -> bool {
        if rest == 0 {
            return visit(self, children);
        }
        let first = rest & rest.wrapping_neg();
        let others = rest & !first;
        let mut more = 0; // every subset of the others, the empty one first, so a star is tried before deeper trees
        loop {
            let family = first | more;
            for head in hosts_of(family) {
                let below = family & !(1 << head);
                if self.rate[self.at(host, head, below)] >= 0.0 {
                    children.push((head, below));
                    let ended = self.each_split(host, rest & !family, children, visit);
                    children.pop();
                    if ended {
                        return true;
                    }
                }
            }
            more = more.wrapping_sub(others) & others;
            if more == 0 {
                return false;
            }
        }
    }

    /// Writes the parents of the best tree below `host`.
    fn hang(&mut self, feeder: usize, host: usize, below: u32, parent: &mut [usize]) {
        parent[host] = feeder;
        let wanted = self.rate[self.at(feeder, host, below)];
        let mut found = Vec::new();
        self.each_split(host, below, &mut Vec::new(), &mut |table, children| {
            let is_it = table.look(feeder, host, children) >= wanted;
            if is_it {
                found = children.to_vec();
            }
            is_it
        });
        for (child, below) in found {
            self.hang(host, child, below, parent);
        }
    }
}
