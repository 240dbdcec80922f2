//! How long before the end of a run a node could finish late. While more remains, every node finishes in time.
//!
//! A node is late by at most the time to compute all that it and those below it can hold, or a single task.

use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::demand::Demand;
use super::options::FarmOptions;

/// The end begins this many times the slowest node's time ahead. Children learn of it with a task, so with some delay.
const AHEAD: f64 = 2.0;

/// When the end of a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Last {
    /// The end begins when all remaining tasks could be done within this time, s.
    pub late_s: f64,
    /// Whether the end begins with the last fifth of the tasks at the latest, because rates may change and slower nodes
    /// may join.
    pub may_change: bool,
}

impl Last {
    pub(crate) fn of(
        platform: &Platform,
        tree: &Tree,
        options: &FarmOptions<'_>,
        demand: &Demand,
        places: &[u64],
    ) -> Self {
        let mut held: Vec<f64> = places.iter().map(|&places| places as f64 + 1.0).collect();
        let mut slowest_s = 0.0f64;
        let elsewhere_s = options.outside.map_or(0.0, |outside| outside.late_s);
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
            let own = platform.nodes[n].compute_per_s.get() / options.task.work;
            if own > 0.0 {
                slowest_s = slowest_s.max(1.0 / own);
            }
        }
        Self { late_s: (AHEAD * slowest_s).max(elsewhere_s), may_change: options.adapt || options.recovers }
    }
}
