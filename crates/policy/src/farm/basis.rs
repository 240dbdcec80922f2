//! Values computed from a platform once, from which the settings of each of its nodes follow.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::buffer;
use super::demand::Demand;
use super::last::Last;
use super::options::FarmOptions;
use super::order;
use super::settings::{ChildSettings, Settings};

/// The part of a whole tree's figures that the settings of a subtree's nodes depend on.
///
/// A platform that holds only a subtree has the parent of its topmost node as its root, without that parent's other
/// children. With these figures its nodes get the settings that they have in the whole tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Maximum number of tasks that the topmost node requests ahead. It depends on the node's siblings.
    pub places: u64,
    /// Tasks per second that the whole tree uses.
    pub uses_tasks_per_s: f64,
    /// How long before the end of the run a node could finish late ([`Last::late_s`]), s. 0 if the end is not levelled.
    pub late_s: f64,
}

/// Values from which the settings of all nodes of a platform follow.
#[derive(Clone, Debug)]
pub struct Basis {
    pub(super) demand: Demand,
    /// Buffer size of each node, in the platform's order.
    pub(super) places: Vec<u64>,
    /// When the end of the run begins. `None`: it is not levelled.
    level_end: Option<Last>,
}

impl Basis {
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>) -> Self {
        let demand = Demand::of(platform, tree, options);
        let places = buffer::places(platform, tree, options, &demand);
        let level_end = options.levels().then(|| Last::of(platform, tree, options, &demand, &places));
        Self { demand, places, level_end }
    }

    /// Returns the settings of the node `n`. Its children are numbered as in `tree.children`.
    #[must_use]
    pub fn settings(&self, platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, n: u32) -> Settings {
        let node = &platform.nodes[n as usize];
        let send_limit_mb_per_s = match options.ports {
            Ports::Single => f64::INFINITY,
            Ports::Multi => node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        };
        let children = tree.children(n);
        let paces = self.demand.paces(platform, tree, options, n);
        let known = children.iter().zip(&paces).map(|(&c, &pace_mb_per_s)| {
            self.child(platform, tree, options, c).paced(pace_mb_per_s, options.ports, options.task)
        });
        Settings {
            root: n == tree.root,
            computes: node.compute_per_s.get() > 0.0,
            places: self.places[n as usize],
            ports: options.ports,
            send_limit_mb_per_s,
            sends_tasks_per_s: match options.ports {
                Ports::Single => self.demand.through_one_port(children),
                Ports::Multi => send_limit_mb_per_s / options.task.size_mb,
            },
            rule: order::rule(options.order),
            returns: options.returns,
            recovers: options.recovers,
            level_end: self.level_end,
            own_tasks_per_s: node.compute_per_s.get() / options.task.work,
            children: known.collect(),
        }
    }

    /// Returns the settings of a child for its parent, with a pace equal to its link's speed.
    #[must_use]
    pub fn child(&self, platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, child: u32) -> ChildSettings {
        let candidate = options.candidate(platform, tree, child);
        ChildSettings {
            key: order::key(options.order, &candidate),
            receive_limit_mb_per_s: candidate.receive_limit_mb_per_s,
            pace_mb_per_s: candidate.receive_limit_mb_per_s,
            uses_tasks_per_s: self.demand.uses[child as usize],
            empties_tasks_per_s: self.demand.empties[child as usize],
            send_s: 1.0 / self.demand.link[child as usize],
        }
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
            places: self.places[top as usize],
            uses_tasks_per_s: self.demand.of_all(tree, options).min(f64::MAX),
            late_s: self.level_end.map_or(0.0, |last| last.late_s.min(f64::MAX)),
        }
    }
}
