//! How many tasks a node asks for ahead, where the user does not say.
//!
//! Enough that nobody starves while the parent is busy with somebody else. With `r` the most tasks per second that a
//! node's subtree can use, `t` the longest that a task sent to a sibling keeps the parent's port, `s` the time of a task on
//! the node's own link and `l` the latency, it asks for `r (t + s + 2 l)` and two more: one on its way and one that waits.
//! An inner node besides needs what its own sends hold while they last.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::order;
use super::settings::{Wishes, candidate};

/// Ahead of a node's need there is no use in more: a run's end would only wait for them.
const MOST: f64 = 1e6;

/// The places of each node, in the platform's order; 0 where no task could ever be computed.
pub(crate) fn places(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>) -> Vec<u64> {
    let count = platform.nodes.len();
    let (size, work) = (wishes.task.size_mb, wishes.task.work);
    let link = |n: u32| platform.nodes[n as usize].receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get) / size;
    // The most tasks per second that each subtree can use, leaves first.
    let mut uses = vec![0.0f64; count];
    let mut served = vec![false; count];
    for &n in tree.order.iter().rev() {
        let own = platform.nodes[n as usize].compute_per_s.get() / work;
        let below: f64 = tree.children(n).iter().filter(|&&c| served[c as usize]).map(|&c| uses[c as usize]).sum();
        uses[n as usize] = (own + below).min(link(n));
        served[n as usize] = n != tree.root
            && uses[n as usize] > 0.0
            && order::key(wishes.order, &candidate(platform, tree, wishes, n)).is_some();
    }
    let mut places = vec![0u64; count];
    let longest_of = |n: u32| {
        // The two longest sends of a port: a child waits for the longest of the others.
        let mut longest = [(0.0f64, u32::MAX); 2];
        for &c in tree.children(n).iter().filter(|&&c| served[c as usize]) {
            let time = 1.0 / link(c);
            if time > longest[0].0 {
                longest = [(time, c), longest[0]];
            } else if time > longest[1].0 {
                longest[1].0 = time;
            }
        }
        longest
    };
    for &n in &tree.order {
        let longest = longest_of(n);
        for &c in tree.children(n).iter().filter(|&&c| served[c as usize]) {
            places[c as usize] = wishes.buffer_tasks.unwrap_or_else(|| {
                let other = match wishes.ports {
                    Ports::Single if longest[0].1 == c => longest[1].0,
                    Ports::Single => longest[0].0,
                    Ports::Multi => 0.0,
                };
                let latency = platform.nodes[c as usize].latency_s.get();
                let own_send = longest_of(c)[0].0;
                let wait = other + 1.0 / link(c) + 2.0 * latency + own_send;
                (uses[c as usize] * wait).min(MOST).ceil() as u64 + 2
            });
        }
    }
    places
}
