//! How long before the end of a run a node could be late with a task: while more is left, every node is in time.
//!
//! A node is late by no more than it takes to compute all that it and those below it can hold, or a single task.

use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::options::FarmOptions;

/// The end begins so many times the slowest node's time ahead: children hear of it with a task, so a little late.
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
