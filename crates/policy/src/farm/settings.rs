//! What a node knows of itself and of its children.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, Tree};

use super::buffer;
use super::demand::Demand;
use super::last::Last;
use super::mean_task::MeanTask;
use super::options::FarmOptions;
use super::order::{self, Rule};

/// What the plan gives a node that joins in mid-run, tasks/s: as much as it and its link can do.
#[must_use]
pub fn planned_of_a_guest(node: &Node, task: MeanTask) -> f64 {
    let link = node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get) / task.size_mb;
    (node.compute_per_s.get() / task.work).min(link)
}

/// What a node knows of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildSettings {
    /// Its key in the order of service, lowest first; none: it is never served. See [`order::key`].
    pub key: Option<f64>,
    /// Most MB/s that it receives.
    pub receive_limit_mb_per_s: f64,
    /// MB/s at which it is sent to among others, at most the receive limit: no faster than it can use the tasks, where
    /// the send limit is scarce. Used with several ports.
    pub pace_mb_per_s: f64,
    /// Tasks per second that its subtree uses.
    pub uses_tasks_per_s: f64,
    /// Tasks per second that it uses while it receives nothing.
    pub empties_tasks_per_s: f64,
    /// What a send of a task of mean size takes at that pace, or with a single port on its link, s.
    pub send_s: f64,
}

impl ChildSettings {
    /// The same with what several sends at once leave it.
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
    /// Most tasks asked for or waiting beyond the one that it computes. Not used at the root.
    pub places: u64,
    pub ports: Ports,
    /// Most MB/s to all children together; infinite: no limit. Used with several ports.
    pub send_limit_mb_per_s: f64,
    /// Tasks of mean size per second that its port, or its send limit, lets out to all children together.
    pub sends_tasks_per_s: f64,
    /// How the children's keys come about.
    pub rule: Rule,
    /// Whether results go back up.
    pub returns: bool,
    /// Whether it keeps a ledger.
    pub recovers: bool,
    /// The last tasks go only to nodes that are done with them as early as the others; none: to all that ask. Needs results.
    pub level_end: Option<Last>,
    /// Tasks per second that the node itself computes.
    pub own_tasks_per_s: f64,
    /// Its children, in the order of the platform's file.
    pub children: Vec<ChildSettings>,
}

impl Settings {
    /// Of every node of a platform, in the platform's order. Children are numbered as in `tree.children`.
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, wishes: &FarmOptions<'_>) -> Vec<Self> {
        Self::each(platform, tree, wishes).collect()
    }

    /// The same one by one: those of a million nodes need not be in memory at a time.
    pub fn each<'a>(
        platform: &'a Platform,
        tree: &'a Tree,
        wishes: &'a FarmOptions<'a>,
    ) -> impl Iterator<Item = Self> + Clone + 'a {
        let demand = Demand::of(platform, tree, wishes);
        let places = buffer::places(platform, tree, wishes, &demand);
        let level_end = wishes.levels().then(|| Last::of(platform, tree, wishes, &demand, &places));
        (0..platform.nodes.len()).map(move |n| {
            let node = &platform.nodes[n];
            let send_limit_mb_per_s = match wishes.ports {
                Ports::Single => f64::INFINITY,
                Ports::Multi => node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
            };
            let children = tree.children(n as u32);
            let paces = demand.paces(platform, tree, wishes, n as u32);
            let known = children.iter().zip(&paces).map(|(&c, &pace_mb_per_s)| {
                let child = Self::child_of(platform, tree, wishes, &demand, c);
                child.paced(pace_mb_per_s, wishes.ports, wishes.task)
            });
            Self {
                root: n as u32 == tree.root,
                computes: node.compute_per_s.get() > 0.0,
                places: places[n],
                ports: wishes.ports,
                send_limit_mb_per_s,
                sends_tasks_per_s: match wishes.ports {
                    Ports::Single => demand.through_one_port(children),
                    Ports::Multi => send_limit_mb_per_s / wishes.task.size_mb,
                },
                rule: order::rule(wishes.order),
                returns: wishes.returns,
                recovers: wishes.recovers,
                level_end,
                own_tasks_per_s: node.compute_per_s.get() / wishes.task.work,
                children: known.collect(),
            }
        })
    }

    /// Of a node that knows neither its own rate nor its children's: they come in the order of joining.
    #[must_use]
    pub fn of_a_lone_node(root: bool, wishes: &FarmOptions<'_>) -> Self {
        Self {
            root,
            computes: true,
            places: wishes.buffer_tasks.unwrap_or(2),
            ports: wishes.ports,
            send_limit_mb_per_s: f64::INFINITY,
            sends_tasks_per_s: f64::INFINITY,
            rule: order::rule(wishes.order),
            returns: wishes.returns,
            recovers: wishes.recovers,
            level_end: None, // completion times are unknown
            own_tasks_per_s: 0.0,
            children: Vec::new(),
        }
    }

    /// Of a child as its parent knows it, sent to as fast as its link goes.
    #[must_use]
    pub fn child(platform: &Platform, tree: &Tree, wishes: &FarmOptions<'_>, child: u32) -> ChildSettings {
        Self::child_of(platform, tree, wishes, &Demand::of(platform, tree, wishes), child)
    }

    fn child_of(
        platform: &Platform,
        tree: &Tree,
        wishes: &FarmOptions<'_>,
        demand: &Demand,
        child: u32,
    ) -> ChildSettings {
        let candidate = wishes.candidate(platform, tree, child);
        ChildSettings {
            key: order::key(wishes.order, &candidate),
            receive_limit_mb_per_s: candidate.receive_limit_mb_per_s,
            pace_mb_per_s: candidate.receive_limit_mb_per_s,
            uses_tasks_per_s: demand.uses[child as usize],
            empties_tasks_per_s: demand.empties[child as usize],
            send_s: 1.0 / demand.link[child as usize],
        }
    }
}
