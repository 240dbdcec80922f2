//! Heuristic search for a good tree of many hosts: late acceptance hill climbing (Burke and Bykov 2017).
//!
//! A change is kept if the tree is no slower than now or than `LATE` steps ago. The search can thus cross plateaus,
//! which are wide here (most changes far below a full link change nothing), and shallow valleys. It has one parameter
//! and no temperature.

use super::hung::Hung;
use super::{Shape, better};
use crosswind_schema::random::Random;

/// Number of steps back that a change is compared with. Larger values explore more and take longer; 200 to 2,000 differ
/// little.
const LATE: usize = 500;

/// Changes the tree for `steps` steps. Returns the best tree seen.
pub(super) fn improve(hung: &mut Hung<'_>, any_root: bool, steps: u64, random: &mut Random) -> Shape {
    let hosts = hung.root_first();
    let mut best = (hung.throughput(), hung.shape().clone());
    if hosts.len() < 3 && !(any_root && hosts.len() == 2) {
        return best.1;
    }
    let mut current = best.0;
    let mut late = [current; LATE];
    for step in 0..steps {
        let mut any = || hosts[random.below(hosts.len() as u64) as usize];
        let (a, b) = (any(), any());
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

/// Moves each host as near to the root as possible without making the tree slower, for fewer hops and less latency.
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
