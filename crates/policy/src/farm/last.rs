//! How long before the end of a run a node could be late with a task: while more is left, the end need not be looked at.
//!
//! At most: what a node and those below it can hold, at the rate at which they compute it, or one task's own time.

use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::options::FarmOptions;

/// How often the slowest node's time is looked ahead: children hear of the end with a task, so a little late.
const AHEAD: f64 = 2.0;

/// When the end of a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Last {
    /// When all could be done within so many seconds.
    pub late_s: f64,
    /// With the last fifth at the latest: rates may turn out to be others, and slower nodes may come.
    pub may_change: bool,
}

impl Last {
    pub(crate) fn of(
        platform: &Platform,
        tree: &Tree,
        wishes: &FarmOptions<'_>,
        demand: &Demand,
        places: &[u64],
    ) -> Self {
        let mut held: Vec<f64> = places.iter().map(|&places| places as f64 + 1.0).collect();
        let mut slowest_s = 0.0f64;
        for &node in tree.order.iter().rev() {
            let n = node as usize;
            if node != tree.root {
                if !demand.served[n] {
                    continue;
                }
                held[tree.parent[n] as usize] += held[n];
                let one_s = 1.0 / demand.empties[n];
                slowest_s = slowest_s.max((held[n] * one_s).max(1.0 / demand.can[n]) + one_s);
            }
            let own = platform.nodes[n].compute_per_s.get() / wishes.task.work;
            if own > 0.0 {
                slowest_s = slowest_s.max(1.0 / own);
            }
        }
        Self { late_s: AHEAD * slowest_s, may_change: wishes.adapt || wishes.recovers }
    }
}
