//! How many tasks a node asks for ahead, where the user does not say.
//!
//! Enough to avoid starvation while the parent is busy with others. With `r` the tasks per second that a node's subtree
//! uses while it receives nothing, `t` the longest that a task for a sibling keeps a single port, `s` the time of a task on
//! the node's own link, `u` the part of its time that the port gives to those served before, and `l` the latency, it asks
//! for `r ((t + s) / (1 - u) + 2 l)` and two more: one on its way and one that waits. An inner node asks for what its own
//! port may hold while it sends, too.
//!
//! Where the number of tasks is known, no more than 1 % of the node's part of them and two, and no more than 10 % of it in
//! all, but one: at the end of a run all nodes wait for the fullest buffer to drain, and in a short run that costs more
//! than a starved node.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::options::FarmOptions;
use super::order::{self, Rule};

/// Ahead of a node's need there is no use in more: a run's end would only wait for them.
const MOST: f64 = 1e6;
/// What may wait in a buffer beside two, of the tasks that a node uses in the whole run.
const OF_PART: f64 = 0.01;
/// What may wait in a buffer in all. Of 200 tasks in three levels, slow nodes had four of their seven before them when the
/// tasks were out, and the run took 1.40 times as long as the bound; with this 1.18 times (simulated).
const ALL_OF_PART: f64 = 0.1;
/// A port that is never free for long makes a node ask for no more than this many times as much.
const BUSIEST: f64 = 0.9;

/// A child that is served, as its places depend on it; tasks/s and s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub child: u32,
    pub key: f64,
    pub uses: f64,
    /// What it uses while it receives nothing.
    pub empties: f64,
    pub link: f64,
    pub latency_s: f64,
    pub own_sends_s: f64,
    /// Tasks of the whole run that it uses; infinite if unknown.
    pub part: f64,
}

/// The places of each node, in the platform's order; 0 where no task would ever come.
pub(crate) fn places(platform: &Platform, tree: &Tree, wishes: &FarmOptions<'_>, demand: &Demand) -> Vec<u64> {
    let mut places = vec![0u64; platform.nodes.len()];
    let mut line: Vec<Asker> = Vec::new();
    let by_key = order::rule(wishes.order) == Rule::Fixed;
    for &n in &tree.order {
        let served = tree.children(n).iter().filter(|&&c| demand.served[c as usize]);
        if let Some(tasks) = wishes.buffer_tasks {
            served.for_each(|&c| places[c as usize] = tasks);
            continue;
        }
        line.clear();
        line.extend(served.map(|&c| {
            let child = c as usize;
            let uses = demand.uses[child];
            Asker {
                child: c,
                key: demand.key[child],
                uses,
                empties: demand.empties[child],
                link: demand.link[child],
                latency_s: platform.nodes[child].latency_s.get(),
                own_sends_s: longest_send(tree.children(c), demand),
                part: part(tree, wishes, demand, c),
            }
        }));
        for (child, tasks) in of_line(&mut line, wishes.ports, by_key) {
            places[child as usize] = tasks;
        }
    }
    places
}

/// Tasks of the whole run that a child's subtree uses; infinite where their number is not known.
pub(crate) fn part(tree: &Tree, wishes: &FarmOptions<'_>, demand: &Demand, child: u32) -> f64 {
    let total = demand.uses[tree.root as usize];
    wishes.tasks.map_or(f64::INFINITY, |tasks| tasks as f64 * demand.uses[child as usize] / total)
}

/// The places of each child of a node, of all that are served, in the order of the file.
pub(crate) fn of_line(line: &mut [Asker], ports: Ports, by_key: bool) -> impl Iterator<Item = (u32, u64)> + '_ {
    if by_key {
        line.sort_by(|a, b| a.key.total_cmp(&b.key));
    }
    let longest = longest_sends(line.iter().map(|asker| (1.0 / asker.link, asker.child)));
    let use_of = |asker: &Asker| asker.uses / asker.link;
    let all: f64 = line.iter().map(use_of).sum();
    let mut before = 0.0;
    line.iter().map(move |asker| {
        let send = 1.0 / asker.link;
        let (other, busy) = match ports {
            Ports::Multi => (send, 0.0),
            Ports::Single => {
                let other = if longest[0].1 == asker.child { longest[1].0 } else { longest[0].0 };
                (other, if by_key { before } else { all - use_of(asker) })
            }
        };
        before += use_of(asker);
        let wait = (other + send) / (1.0 - busy.min(BUSIEST)) + 2.0 * asker.latency_s + asker.own_sends_s;
        let needed = (asker.empties * wait).min(MOST).min(OF_PART * asker.part).ceil() + 2.0;
        (asker.child, needed.min((ALL_OF_PART * asker.part).ceil()).max(1.0) as u64)
    })
}

/// A port's longest send, s; 0 where it has none.
pub(crate) fn longest_send(children: &[u32], demand: &Demand) -> f64 {
    let served = children.iter().map(|&c| c as usize).filter(|&c| demand.served[c]);
    longest_sends(served.map(|c| (1.0 / demand.link[c], c as u32)))[0].0
}

/// The two longest sends of a port, and the child with the longest.
fn longest_sends(sends: impl Iterator<Item = (f64, u32)>) -> [(f64, u32); 2] {
    let mut longest = [(0.0f64, u32::MAX); 2];
    for send in sends {
        if send.0 > longest[0].0 {
            longest = [send, longest[0]];
        } else if send.0 > longest[1].0 {
            longest[1] = send;
        }
    }
    longest
}
