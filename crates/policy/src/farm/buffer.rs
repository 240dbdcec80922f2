//! Number of tasks that a node requests ahead, if the user does not set it.
//!
//! The number must prevent starvation while the parent serves others. Let `r` be the tasks per second that a node's
//! subtree uses while it receives nothing, `t` the longest time for which a sibling's task occupies a single port, and
//! `s` the time of a task on the node's own link. Let `u` be the fraction of its time that the port spends on children
//! served before, and `l` the latency. The node requests `r ((t + s) / (1 - u) + 2 l)` tasks and two more: one in
//! transit and one waiting. An inner node adds to that time the longest send of its own port.
//!
//! If the number of tasks is known, a buffer is limited to 1 % of the node's share of them plus two, and to 10 % of the
//! share, but is at least one. At the end of a run all nodes wait for the fullest buffer to drain, and in a short run
//! that costs more than a starved node.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::options::FarmOptions;
use super::order::{self, Rule};

/// Cap on the number of tasks needed; more would only delay the end of a run.
const MOST: f64 = 1e6;
/// Limit of a buffer, beyond two tasks, as a fraction of the tasks that a node uses in the whole run.
const OF_PART: f64 = 0.01;
/// Limit of the whole buffer as such a fraction. With 200 tasks in three levels, slow nodes still had four of their
/// seven tasks to compute when the tasks ran out, and the run took 1.40 times as long as the bound. With this limit it
/// took 1.18 times (simulated).
const ALL_OF_PART: f64 = 0.1;
/// Cap on the busy fraction of a port. A saturated port thus increases the wait at most tenfold.
const BUSIEST: f64 = 0.9;

/// A served child's rates (tasks/s) and times (s) that determine its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub child: u32,
    pub key: f64,
    pub uses: f64,
    /// Rate that it uses while it receives nothing.
    pub empties: f64,
    pub link: f64,
    pub latency_s: f64,
    pub own_sends_s: f64,
    /// Tasks of the whole run that it uses; infinite if unknown.
    pub part: f64,
}

/// Buffer size of each node, in the platform's order; 0 if it never gets a task.
pub(crate) fn places(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, demand: &Demand) -> Vec<u64> {
    let mut places = vec![0u64; platform.nodes.len()];
    let mut line: Vec<Asker> = Vec::new();
    let by_key = order::rule(options.order) == Rule::Fixed;
    for &n in &tree.order {
        let served = tree.children(n).iter().filter(|&&c| demand.served[c as usize]);
        if let Some(tasks) = options.buffer_tasks {
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
                part: part(tree, options, demand, c),
            }
        }));
        for (child, tasks) in of_line(&mut line, options.ports, by_key) {
            places[child as usize] = tasks;
        }
    }
    if let Some(outside) = options.outside {
        // The siblings of the topmost node, which its buffer depends on, are not in this platform.
        tree.children(tree.root).iter().for_each(|&top| places[top as usize] = outside.places);
    }
    places
}

/// Tasks of the whole run that a child's subtree uses; infinite if their number is unknown.
pub(crate) fn part(tree: &Tree, options: &FarmOptions<'_>, demand: &Demand, child: u32) -> f64 {
    let total = demand.of_all(tree, options);
    options.tasks.map_or(f64::INFINITY, |tasks| tasks as f64 * demand.uses[child as usize] / total)
}

/// Yields (child, buffer size) for all served children of a node, sorted by key if `by_key`.
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

/// A port's longest send, s; 0 if it has none.
pub(crate) fn longest_send(children: &[u32], demand: &Demand) -> f64 {
    let served = children.iter().map(|&c| c as usize).filter(|&c| demand.served[c]);
    longest_sends(served.map(|c| (1.0 / demand.link[c], c as u32)))[0].0
}

/// The two longest sends of a port, with their children.
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
