//! How many tasks a node asks for ahead, where the user does not say.
//!
//! Enough that nobody starves while the parent is busy with others. With `r` the tasks per second that a node's subtree
//! uses while it receives nothing, `t` the longest that a task for a sibling keeps a single port, `s` the time of a task on
//! the node's own link, `u` the part of its time that the port gives to those served before, and `l` the latency, it asks
//! for `r ((t + s) / (1 - u) + 2 l)` and two more: one on its way and one that waits. An inner node asks for what its own
//! port may hold while it sends, too.
//!
//! Where the number of tasks is known, no more than 1 % of the node's part of them and two: at the end of a run everybody
//! waits for what lies in the fullest buffer, and in a short run that costs more than a starved node.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::order::{self, Rule};
use super::settings::Wishes;

/// Ahead of a node's need there is no use in more: a run's end would only wait for them.
const MOST: f64 = 1e6;
/// What may wait in a buffer, of the tasks that a node uses in the whole run.
const OF_ALL: f64 = 0.01;
/// A port that is never free for long makes nobody ask for more than so many times as much.
const BUSIEST: f64 = 0.9;

/// The places of each node, in the platform's order; 0 where no task would ever come.
pub(crate) fn places(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>, demand: &Demand) -> Vec<u64> {
    let mut places = vec![0u64; platform.nodes.len()];
    let mut line: Vec<u32> = Vec::new();
    let everybody = demand.uses[tree.root as usize];
    for &n in &tree.order {
        line.clear();
        line.extend(tree.children(n).iter().filter(|&&c| demand.served[c as usize]));
        if let Some(tasks) = wishes.buffer_tasks {
            line.iter().for_each(|&c| places[c as usize] = tasks);
            continue;
        }
        let by_key = order::rule(wishes.order) == Rule::Fixed;
        if by_key {
            line.sort_by(|&a, &b| demand.key[a as usize].total_cmp(&demand.key[b as usize]));
        }
        let longest = longest_sends(&line, demand);
        let use_of = |c: u32| demand.uses[c as usize] / demand.link[c as usize];
        let all: f64 = line.iter().map(|&c| use_of(c)).sum();
        let mut before = 0.0;
        for &c in &line {
            let child = c as usize;
            let send = 1.0 / demand.link[child];
            let (other, busy) = match wishes.ports {
                Ports::Multi => (send, 0.0),
                Ports::Single if longest[0].1 == c => (longest[1].0, if by_key { before } else { all - use_of(c) }),
                Ports::Single => (longest[0].0, if by_key { before } else { all - use_of(c) }),
            };
            before += use_of(c);
            let own_sends = longest_sends(tree.children(c), demand)[0].0;
            let latency = platform.nodes[child].latency_s.get();
            let wait = (other + send) / (1.0 - busy.min(BUSIEST)) + 2.0 * latency + own_sends;
            let of_all = wishes.tasks.map_or(MOST, |tasks| OF_ALL * tasks as f64 * demand.uses[child] / everybody);
            places[child] = (demand.empties[child] * wait).min(MOST).min(of_all).ceil() as u64 + 2;
        }
    }
    places
}

/// The two longest sends of a port, and whose the longest is.
fn longest_sends(children: &[u32], demand: &Demand) -> [(f64, u32); 2] {
    let mut longest = [(0.0f64, u32::MAX); 2];
    for &c in children.iter().filter(|&&c| demand.served[c as usize]) {
        let time = 1.0 / demand.link[c as usize];
        if time > longest[0].0 {
            longest = [(time, c), longest[0]];
        } else if time > longest[1].0 {
            longest[1] = (time, c);
        }
    }
    longest
}
