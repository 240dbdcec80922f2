//! Values computed from a platform once, from which the settings of each of its nodes follow.

use crosswind_schema::{Platform, Tree};

use super::buffer;
use super::demand::Demand;
use super::last::Last;
use super::options::FarmOptions;
use super::outside::Outside;

/// Values from which the settings of all nodes of a platform follow.
#[derive(Clone, Debug)]
pub struct Basis {
    pub(super) demand: Demand,
    /// Buffer size of each node, in the platform's order.
    places: Vec<u64>,
    /// When the end of the run begins. `None`: it is not levelled.
    pub(super) level_end: Option<Last>,
}

impl Basis {
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>) -> Self {
        let demand = Demand::of(platform, tree, options);
        let places = buffer::places(platform, tree, options, &demand);
        let level_end = options.levels().then(|| Last::of(platform, tree, options, &demand, &places));
        Self { demand, places, level_end }
    }

    /// Returns the maximum number of tasks that the node `n` requests ahead.
    #[must_use]
    pub fn places(&self, n: u32) -> u64 {
        self.places[n as usize]
    }

    /// Returns what the nodes of the subtree below and at `top` need of the rest of the tree.
    #[must_use]
    pub fn outside(&self, tree: &Tree, options: &FarmOptions<'_>, top: u32) -> Outside {
        Outside {
            places: self.places(top),
            uses_tasks_per_s: self.demand.of_all(tree, options).min(f64::MAX),
            late_s: self.level_end.map_or(0.0, |last| last.late_s.min(f64::MAX)),
        }
    }
}
