//! What changes next on a platform: the changes of the experiment's file and the drawn failures, in order of time.
//!
//! Each reason for which a node is gone counts by itself: a change in the file, and each table of failures. A node is
//! in the tree while it, and every node above it, has none. Failures of a node continue while nodes above it are gone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::change::{ChangeKind, PlacedChange};
use super::failure::{Effect, PlacedFailure};
use crate::platform::{Platform, Tree};
use crate::units::Quantity;

/// The next change, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    pub change: PlacedChange,
    /// Whether it follows from a drawn failure; otherwise from a change in the file.
    pub drawn: bool,
}

/// Times of one node's failures of one table.
struct Process {
    failure: PlacedFailure,
    times: Box<dyn Iterator<Item = f64>>,
    has_failed: bool,
}

/// Rates of a node without its failures, and its processes that change them.
struct Rates {
    compute_per_s: f64,
    receive_limit_mb_per_s: Option<f64>,
    processes: Vec<usize>,
}

/// An iterator over all changes of a run. With failures it has no end.
pub struct Upcoming<'a> {
    changes: std::iter::Peekable<std::slice::Iter<'a, PlacedChange>>,
    tree: &'a Tree,
    processes: Vec<Process>,
    /// When each process fails or is repaired next: the bits of a time above 0, which order as the time does.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// For how many reasons each node is gone; empty if nothing changes.
    reasons: Vec<u32>,
    /// Whether a change in the file is one of them.
    left: Vec<bool>,
    rates: BTreeMap<u32, Rates>,
    due: VecDeque<Due>,
}

impl<'a> Upcoming<'a> {
    /// `changes` are possible one after the other.
    #[must_use]
    pub fn new(changes: &'a [PlacedChange], failures: &[PlacedFailure], platform: &Platform, tree: &'a Tree) -> Self {
        let count = if changes.is_empty() && failures.is_empty() { 0 } else { platform.nodes.len() };
        let mut found = Self {
            changes: changes.iter().peekable(),
            tree,
            processes: Vec::with_capacity(failures.len()),
            next: BinaryHeap::with_capacity(failures.len()),
            reasons: vec![0; count],
            left: vec![false; count],
            rates: BTreeMap::new(),
            due: VecDeque::new(),
        };
        for &failure in failures {
            let number = found.processes.len();
            if let Effect::Slows { .. } = failure.effect {
                let node = &platform.nodes[failure.node as usize];
                let rates = found.rates.entry(failure.node).or_insert_with(|| Rates {
                    compute_per_s: node.compute_per_s.get(),
                    receive_limit_mb_per_s: node.receive_limit_mb_per_s.map(Quantity::get),
                    processes: Vec::new(),
                });
                rates.processes.push(number);
            }
            found.processes.push(Process { failure, times: Box::new(failure.times()), has_failed: false });
            found.schedule(number);
        }
        found
    }

    fn schedule(&mut self, number: usize) {
        if let Some(at_s) = self.processes[number].times.next() {
            self.next.push(Reverse((at_s.to_bits(), number)));
        }
    }

    fn push(&mut self, at_s: f64, node: u32, kind: ChangeKind, drawn: bool) {
        self.due.push_back(Due { change: PlacedChange { at_s, node, kind }, drawn });
    }

    fn is_gone(&self, node: u32) -> bool {
        self.reasons[node as usize] > 0
    }

    /// Whether a node above this one is gone.
    fn is_cut_off(&self, node: u32) -> bool {
        let (mut at, mut up) = (node, self.tree.parent[node as usize]);
        while at != up {
            if self.is_gone(up) {
                return true;
            }
            (at, up) = (up, self.tree.parent[up as usize]);
        }
        false
    }

    fn leave(&mut self, at_s: f64, node: u32, drawn: bool) {
        self.reasons[node as usize] += 1;
        if self.reasons[node as usize] == 1 && !self.is_cut_off(node) {
            self.push(at_s, node, ChangeKind::Leaves, drawn);
        }
    }

    fn come_back(&mut self, at_s: f64, node: u32, drawn: bool) {
        self.reasons[node as usize] -= 1;
        if self.is_gone(node) || self.is_cut_off(node) {
            return;
        }
        self.push(at_s, node, ChangeKind::Joins, drawn);
        // All nodes below come back with it, and those that have failed meanwhile leave at once.
        let mut below: Vec<u32> = self.tree.children(node).to_vec();
        while let Some(n) = below.pop() {
            if self.is_gone(n) {
                self.push(at_s, n, ChangeKind::Leaves, true);
            } else {
                below.extend(self.tree.children(n));
            }
        }
    }

    /// Takes up a change of the experiment's file.
    fn change(&mut self, change: PlacedChange) {
        let (at_s, node) = (change.at_s, change.node);
        match change.kind {
            ChangeKind::Leaves => {
                self.left[node as usize] = true;
                self.leave(at_s, node, false);
            }
            ChangeKind::Joins => {
                for n in self.tree.below(node) {
                    if std::mem::take(&mut self.left[n as usize]) && n != node {
                        self.reasons[n as usize] -= 1;
                    }
                }
                self.come_back(at_s, node, false);
            }
            ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } => {
                let mut kind = change.kind;
                if let Some(rates) = self.rates.get_mut(&node) {
                    rates.compute_per_s = compute_per_s.unwrap_or(rates.compute_per_s);
                    rates.receive_limit_mb_per_s = receive_limit_mb_per_s.or(rates.receive_limit_mb_per_s);
                    kind = self.slowed(node, compute_per_s.is_some(), receive_limit_mb_per_s.is_some());
                }
                self.push(at_s, node, kind, false);
            }
        }
    }

    /// A process fails, or is repaired.
    fn turn(&mut self, at_s: f64, number: usize) {
        let process = &mut self.processes[number];
        process.has_failed = !process.has_failed;
        let (node, fails) = (process.failure.node, process.has_failed);
        match process.failure.effect {
            Effect::Leaves if fails => self.leave(at_s, node, true),
            Effect::Leaves => self.come_back(at_s, node, true),
            Effect::Slows { compute, link } => {
                let kind = self.slowed(node, compute < 1.0, link < 1.0);
                self.push(at_s, node, kind, true);
            }
        }
        self.schedule(number);
    }

    /// Returns a node's rates as they are, multiplied by the factors of its failures.
    fn slowed(&self, node: u32, computes: bool, receives: bool) -> ChangeKind {
        let rates = &self.rates[&node];
        let (mut compute, mut link) = (1.0, 1.0);
        for process in rates.processes.iter().map(|&number| &self.processes[number]) {
            if let (true, Effect::Slows { compute: factor, link: of_link }) =
                (process.has_failed, process.failure.effect)
            {
                (compute, link) = (compute * factor, link * of_link);
            }
        }
        ChangeKind::Rates {
            compute_per_s: computes.then_some(rates.compute_per_s * compute),
            receive_limit_mb_per_s: rates.receive_limit_mb_per_s.filter(|_| receives).map(|limit| limit * link),
        }
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        while self.due.is_empty() {
            let drawn = self.next.peek().map(|&Reverse((bits, number))| (f64::from_bits(bits), number));
            match (self.changes.peek(), drawn) {
                (Some(&&change), drawn) if drawn.is_none_or(|(at_s, _)| change.at_s <= at_s) => {
                    self.changes.next();
                    self.change(change);
                }
                (_, Some((at_s, number))) => {
                    self.next.pop();
                    self.turn(at_s, number);
                }
                _ => return None,
            }
        }
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAVES: ChangeKind = ChangeKind::Leaves;
    const JOINS: ChangeKind = ChangeKind::Joins;

    /// A chain: 0 is the root, 1 below it, 2 below 1.
    fn chain() -> Platform {
        let node = |name: &str, parent: &str| {
            format!(
                r#"{{"name": "{name}", "parent": "{parent}", "compute_per_s": 2.0, "receive_limit_mb_per_s": 8.0}}"#
            )
        };
        let text = format!(
            r#"{{"schema_version": 1, "name": "c", "node": [{{"name": "a", "compute_per_s": 1.0}}, {}, {}]}}"#,
            node("b", "a"),
            node("c", "b")
        );
        Platform::from_json(text.as_bytes(), "c.json").expect("a platform")
    }

    fn change(at_s: f64, node: u32, kind: ChangeKind) -> PlacedChange {
        PlacedChange { at_s, node, kind }
    }

    fn failure(node: u32, stream: u64, effect: Effect) -> PlacedFailure {
        PlacedFailure { node, mttr_s: 5.0, scale_s: 10.0, shape: 1.0, effect, seed: 3, stream }
    }

    /// Returns the first changes, and asserts that they can happen one after the other.
    fn first(changes: &[PlacedChange], failures: &[PlacedFailure], count: usize) -> Vec<Due> {
        let (platform, tree) = (chain(), chain().tree().expect("a tree"));
        let found: Vec<Due> = Upcoming::new(changes, failures, &platform, &tree).take(count).collect();
        let all: Vec<PlacedChange> = found.iter().map(|due| due.change).collect();
        super::super::change::possible(&all, &tree).expect("possible");
        found
    }

    #[test]
    fn without_failures_they_are_the_changes_of_the_file() {
        let rates = ChangeKind::Rates { compute_per_s: Some(3.0), receive_limit_mb_per_s: None };
        let all = [change(1.0, 2, LEAVES), change(2.0, 1, LEAVES), change(3.0, 1, JOINS), change(4.0, 2, rates)];
        let found = first(&all, &[], 9);
        assert!(found.iter().all(|due| !due.drawn));
        assert_eq!(found.iter().map(|due| due.change).collect::<Vec<_>>(), all);
    }

    #[test]
    fn nodes_above_each_other_fail_at_times_of_their_own() {
        let both = [failure(1, 1, Effect::Leaves), failure(2, 2, Effect::Leaves)];
        let found = first(&[], &both, 4000);
        let alone = |node: u32| first(&[], &[failure(node, u64::from(node), Effect::Leaves)], 400);
        // What a node does by itself is also done beside others: the upper one at the same times.
        let upper: Vec<PlacedChange> = found.iter().map(|due| due.change).filter(|one| one.node == 1).collect();
        assert_eq!(upper[..400], alone(1).iter().map(|due| due.change).collect::<Vec<_>>()[..]);
        let lower = |kind| found.iter().filter(|due| due.change.node == 2 && due.change.kind == kind).count();
        assert!(lower(LEAVES) > 500 && lower(LEAVES) >= lower(JOINS));
    }

    #[test]
    fn a_node_that_has_failed_twice_comes_back_when_the_last_reason_is_gone() {
        let long = PlacedFailure { mttr_s: 1e9, ..failure(1, 1, Effect::Leaves) };
        let fails_s = long.times().next().expect("endless");
        let all = [change(fails_s + 1.0, 1, LEAVES), change(fails_s + 2.0, 1, JOINS)];
        assert_eq!(first(&all, &[long], 1), [Due { change: change(fails_s, 1, LEAVES), drawn: true }]);
        let repaired_s = long.times().nth(1).expect("endless");
        assert_eq!(first(&all, &[long], 2)[1], Due { change: change(repaired_s, 1, JOINS), drawn: true });
    }

    #[test]
    fn slowdowns_multiply_and_end_at_the_exact_rate() {
        let slow = |stream, compute, link| failure(1, stream, Effect::Slows { compute, link });
        let found = first(&[], &[slow(1, 0.3, 1.0), slow(2, 0.7, 0.1)], 1000);
        let mut rates = Vec::new();
        for due in &found {
            let ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } = due.change.kind else {
                panic!("{due:?}");
            };
            rates.extend(compute_per_s);
            assert!(receive_limit_mb_per_s.is_none_or(|limit| limit == 8.0 || limit == 0.8), "{due:?}");
        }
        for rate in [2.0, 0.6, 1.4, 2.0 * (0.3 * 0.7)] {
            assert!(rates.iter().any(|&known| (known - rate).abs() < 1e-15), "{rate}");
        }
        assert!(rates.contains(&2.0));
    }

    #[test]
    fn a_change_of_rates_counts_below_a_failure() {
        let slow = PlacedFailure { mttr_s: 1e9, ..failure(1, 1, Effect::Slows { compute: 0.5, link: 1.0 }) };
        let fails_s = slow.times().next().expect("endless");
        let to = |rate| ChangeKind::Rates { compute_per_s: Some(rate), receive_limit_mb_per_s: None };
        let found = first(&[change(fails_s + 1.0, 1, to(6.0))], &[slow], 3);
        let kinds: Vec<ChangeKind> = found.iter().map(|due| due.change.kind).collect();
        assert_eq!(kinds, [to(1.0), to(3.0), to(6.0)]);
    }
}
