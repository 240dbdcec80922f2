//! Settings of a node and of its children, derived from the platform.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, Tree};

use super::basis::Basis;
use super::last::Last;
use super::mean_task::MeanTask;
use super::options::FarmOptions;
use super::order::{self, Rule};

/// Planned rate of a node that joins in mid-run, tasks/s: what it and its link can do.
#[must_use]
pub fn planned_of_a_late_joiner(node: &Node, task: MeanTask) -> f64 {
    let link = node.link_mb_per_s().unwrap_or(f64::INFINITY) / task.size_mb;
    (node.compute_per_s.get() / task.work).min(link)
}

/// Settings of a child, for use by its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildSettings {
    /// Its key in the order of service, lowest first. `None`: it is never served. See [`order::key`].
    pub key: Option<f64>,
    /// Maximum rate at which it receives, MB/s.
    pub receive_limit_mb_per_s: f64,
    /// Rate at which it is sent to among others, MB/s, at most the receive limit. If the send limit is scarce, no
    /// faster than it can use the tasks. Used with several ports.
    pub pace_mb_per_s: f64,
    /// Tasks per second that its subtree uses.
    pub uses_tasks_per_s: f64,
    /// Tasks per second that its subtree uses while it receives nothing.
    pub empties_tasks_per_s: f64,
    /// Duration of a send of a mean task, s: at its pace, or with a single port at the speed of its link.
    pub send_s: f64,
}

impl ChildSettings {
    /// Returns the settings with the pace that concurrent sends leave it.
    #[must_use]
    pub(crate) fn paced(self, pace_mb_per_s: f64, ports: Ports, task: MeanTask) -> Self {
        let pace_mb_per_s = pace_mb_per_s.min(self.receive_limit_mb_per_s);
        let send_s = if ports == Ports::Single { self.send_s } else { task.size_mb / pace_mb_per_s };
        Self { pace_mb_per_s, send_s, ..self }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether it holds the input and requests nothing.
    pub root: bool,
    /// Whether it computes at all.
    pub computes: bool,
    /// Maximum number of tasks requested or waiting beyond the one that it computes. Not used at the root.
    pub places: u64,
    pub ports: Ports,
    /// Maximum rate to all children together, MB/s; infinite: no limit. Used with several ports.
    pub send_limit_mb_per_s: f64,
    /// Mean tasks per second that its port, or its send limit, can send to all children together.
    pub sends_tasks_per_s: f64,
    /// How the children's keys change.
    pub rule: Rule,
    /// Whether results are sent back up.
    pub returns: bool,
    /// Whether it keeps a ledger.
    pub recovers: bool,
    /// When the last tasks start to go only to nodes that finish them as early as the others. `None`: never. Requires
    /// results.
    pub level_end: Option<Last>,
    /// Tasks per second that the node itself computes.
    pub own_tasks_per_s: f64,
    /// Its children, in the order of the platform's file.
    pub children: Vec<ChildSettings>,
}

impl Settings {
    /// Returns the settings of every node of a platform, in the platform's order. Children are numbered as in
    /// `tree.children`.
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>) -> Vec<Self> {
        Self::each(platform, tree, options).collect()
    }

    /// Iterates over the same settings, so that those of a million nodes need not be in memory together.
    pub fn each<'a>(
        platform: &'a Platform,
        tree: &'a Tree,
        options: &'a FarmOptions<'a>,
    ) -> impl Iterator<Item = Self> + Clone + 'a {
        let basis = Basis::of(platform, tree, options);
        (0..platform.nodes.len() as u32).map(move |n| Self::of_node(platform, tree, options, &basis, n))
    }

    /// Returns the settings of the node `n`.
    #[must_use]
    pub fn of_node(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, basis: &Basis, n: u32) -> Self {
        let node = &platform.nodes[n as usize];
        let send_limit_mb_per_s = match options.ports {
            Ports::Single => f64::INFINITY,
            Ports::Multi => node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        };
        let children = tree.children(n);
        let paces = basis.demand.paces(platform, tree, options, n);
        let known = children.iter().zip(&paces).map(|(&c, &pace_mb_per_s)| {
            Self::child(platform, tree, options, basis, c).paced(pace_mb_per_s, options.ports, options.task)
        });
        Self {
            root: n == tree.root,
            computes: node.compute_per_s.get() > 0.0,
            places: basis.places(n),
            ports: options.ports,
            send_limit_mb_per_s,
            sends_tasks_per_s: match options.ports {
                Ports::Single => basis.demand.through_one_port(children),
                Ports::Multi => send_limit_mb_per_s / options.task.size_mb,
            },
            rule: order::rule(options.order),
            returns: options.returns,
            recovers: options.recovers,
            level_end: basis.level_end,
            own_tasks_per_s: node.compute_per_s.get() / options.task.work,
            children: known.collect(),
        }
    }

    /// Returns the settings of a child for its parent, with a pace equal to its link's speed.
    #[must_use]
    pub fn child(
        platform: &Platform,
        tree: &Tree,
        options: &FarmOptions<'_>,
        basis: &Basis,
        child: u32,
    ) -> ChildSettings {
        let candidate = options.candidate(platform, tree, child);
        ChildSettings {
            key: order::key(options.order, &candidate),
            receive_limit_mb_per_s: candidate.receive_limit_mb_per_s,
            pace_mb_per_s: candidate.receive_limit_mb_per_s,
            uses_tasks_per_s: basis.demand.uses[child as usize],
            empties_tasks_per_s: basis.demand.empties[child as usize],
            send_s: 1.0 / basis.demand.link[child as usize],
        }
    }

    /// Settings of a node without known rates for itself or its children, which are numbered in the order of joining.
    #[must_use]
    pub fn of_a_lone_node(root: bool, options: &FarmOptions<'_>) -> Self {
        Self {
            root,
            computes: true,
            places: options.buffer_tasks.unwrap_or(2),
            ports: options.ports,
            send_limit_mb_per_s: f64::INFINITY,
            sends_tasks_per_s: f64::INFINITY,
            rule: order::rule(options.order),
            returns: options.returns,
            recovers: options.recovers,
            level_end: None, // completion times are unknown
            own_tasks_per_s: 0.0,
            children: Vec::new(),
        }
    }
}
