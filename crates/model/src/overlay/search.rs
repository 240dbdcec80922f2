//! A good tree of many hosts: late acceptance hill climbing (Burke and Bykov 2017).
//!
//! A change stays when the tree is no slower than it was now, or `LATE` steps ago: so it crosses plains, which are wide
//! here (most changes far below a full link change nothing), and shallow valleys. One number to choose, no temperature.

use super::hung::Hung;
use super::random::Random;
use super::{Shape, better};

/// Steps back that a change is compared with. Longer looks further and takes longer; 200 to 2,000 differ little.
const LATE: usize = 500;

/// Changes the tree for so many steps, and leaves it as the best that was seen.
pub(super) fn improve(hung: &mut Hung<'_>, any_root: bool, steps: u64, random: &mut Random) -> Shape {
    let hosts = hung.root_first();
    let mut best = (hung.throughput(), hung.shape().clone());
    if hosts.len() < 3 && !(any_root && hosts.len() == 2) {
        return best.1;
    }
    let mut current = best.0;
    let mut late = [current; LATE];
    for step in 0..steps {
        let (a, b) = (hosts[random.below(hosts.len())], hosts[random.below(hosts.len())]);
        let keeps_root = any_root || (a != hung.shape().root && b != hung.shape().root);
        let changed = match random.below(4) {
            0 | 1 => hung.rehang(a, b),
            2 => keeps_root && hung.swap(a, b),
            _ => hung.insert(a, b),
        };
        if !changed {
            continue;
        }
        let now = hung.throughput();
        let then = &mut late[step as usize % LATE];
        if now >= current || now >= *then {
            current = now;
            if better(now, best.0) {
                best = (now, hung.shape().clone());
            }
        } else {
            hung.undo();
        }
        *then = then.max(current);
    }
    best.1
}

/// Hangs each host as near to the root as it can be without making the tree slower: fewer hops, less to wait for.
pub(super) fn flatten(hung: &mut Hung<'_>) {
    for host in hung.root_first() {
        let mut above = Vec::new();
        let mut at = host;
        while at != hung.shape().root {
            at = hung.shape().parent[at];
            above.push(at);
        }
        above.reverse();
        above.pop(); // its parent
        for ancestor in above {
            let before = hung.throughput();
            if hung.rehang(host, ancestor) {
                if !better(before, hung.throughput()) {
                    break;
                }
                hung.undo();
            }
        }
    }
}
