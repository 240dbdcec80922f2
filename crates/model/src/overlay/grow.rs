//! Trees grown from the root, one host at a time: starting points of the search, and trees to compare with.

use super::Shape;
use super::graph::Graph;
use crosswind_schema::random::Random;

/// Selects the next host and its parent.
pub(super) enum Rule<'a> {
    /// As near to the root as possible.
    Star,
    /// As far from the root as possible: each host is the child of the last one.
    Chain,
    /// The fastest link from the tree to a host outside.
    Widest,
    /// Any link from the tree to a host outside.
    Random(&'a mut Random),
}

/// Grows the tree over all hosts that the root reaches. Ties go to the fastest link, then to the first in the file.
pub(super) fn grow(graph: &Graph, root: usize, mut rule: Rule<'_>) -> Shape {
    let mut parent = vec![Shape::NOWHERE; graph.count];
    let mut depth = vec![0i64; graph.count];
    // The best offer of each host in the tree to hosts outside, cached while valid: at most one evaluation per pair and
    // host.
    let mut best: Vec<Option<(Key, usize)>> = vec![None; graph.count];
    parent[root] = root;
    let mut joined = vec![root];
    for _ in 1..graph.count {
        for &from in &joined {
            if best[from].is_none_or(|(_, to)| parent[to] != Shape::NOWHERE) {
                let mut found: Option<(Key, usize)> = None;
                for to in (0..graph.count).filter(|&to| parent[to] == Shape::NOWHERE) {
                    let Some(leg) = graph.leg(from, to) else { continue };
                    let key = match &mut rule {
                        Rule::Star => (-depth[from], leg.receive),
                        Rule::Chain => (depth[from], leg.receive),
                        Rule::Widest => (0, leg.receive),
                        Rule::Random(random) => (0, random.unit()),
                    };
                    if found.is_none_or(|(known, _)| key > known) {
                        found = Some((key, to));
                    }
                }
                best[from] = found;
            }
        }
        let mut next: Option<(Key, usize, usize)> = None;
        for &from in &joined {
            let Some((key, to)) = best[from] else { continue };
            if next.is_none_or(|(known, ..)| key > known) {
                next = Some((key, from, to));
            }
        }
        let Some((_, from, to)) = next else { break };
        parent[to] = from;
        depth[to] = depth[from] + 1;
        joined.push(to);
    }
    Shape { root, parent }
}

/// Primary key, then the link's rate or a random number.
type Key = (i64, f64);
