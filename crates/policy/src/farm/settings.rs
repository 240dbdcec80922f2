//! What a node knows of itself and of its children.

use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, Tree};

use super::buffer;
use super::demand::Demand;
use super::order::{self, Candidate, Rule};

/// A task of mean size and work: what orders and buffers reckon with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Input, MB.
    pub size_mb: f64,
    /// Work units.
    pub work: f64,
}

/// How the farm is to be run: what is the same for all nodes.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    /// The order of service.
    pub order: Order,
    /// Sends at a time.
    pub ports: Ports,
    /// Tasks asked for or waiting beyond the one that is computed; none: chosen per node.
    pub buffer_tasks: Option<u64>,
    /// A mean task.
    pub task: Mean,
    /// How many tasks there are; none: not known, or no end.
    pub tasks: Option<u64>,
    /// What the plan gives each node, tasks/s, in the platform's order; needed by the order `planned`.
    pub planned_tasks_per_s: Option<&'a [f64]>,
    /// Whether results go back up.
    pub returns: bool,
    /// Whether tasks that are out are remembered, so that a lost child's come back. Needs results.
    pub recovers: bool,
    /// Whether the last tasks go only to nodes that are done with them as early as the others, with a single port: see
    /// `ending`.
    pub level_end: bool,
    /// Whether keys, paces and buffers follow what is seen: see [`Estimator`](super::estimate::Estimator).
    pub adapt: bool,
}

impl<'a> Wishes<'a> {
    /// What a policy says, for tasks of a mean size and work, with neither results nor recovery.
    #[must_use]
    pub fn of(policy: &Policy, task: Mean) -> Self {
        Self {
            order: policy.order,
            ports: policy.ports,
            buffer_tasks: policy.buffer_tasks,
            task,
            tasks: None,
            planned_tasks_per_s: None,
            returns: false,
            recovers: false,
            level_end: policy.level_end,
            adapt: policy.adapt,
        }
    }

    /// With an end.
    #[must_use]
    pub fn with_tasks(self, tasks: u64) -> Self {
        Self { tasks: Some(tasks), ..self }
    }

    /// With the rates of a plan.
    #[must_use]
    pub fn with_plan(self, planned_tasks_per_s: &'a [f64]) -> Self {
        Self { planned_tasks_per_s: Some(planned_tasks_per_s), ..self }
    }

    /// Whether the end is levelled. Not where sends share a port, since the end of a send that begins is not known there; and
    /// not with first come, first served, which has no preference.
    #[must_use]
    pub fn levels(&self) -> bool {
        self.level_end
            && self.ports == Ports::Single
            && order::rule(self.order) != Rule::Arrival
            && self.order != Order::RootOnly
    }

    /// With results that go back up, and a memory of what is out.
    #[must_use]
    pub fn with_recovery(self) -> Self {
        Self { returns: true, recovers: true, ..self }
    }
}

/// What the plan gives a node that joins in mid-run, tasks/s: as much as it and its link can do.
#[must_use]
pub fn planned_of_a_guest(node: &Node, task: Mean) -> f64 {
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
    /// What a task of mean size takes on its link, s.
    pub send_s: f64,
}

/// What a node knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether it holds the input and requests nothing.
    pub root: bool,
    /// Whether it computes at all.
    pub computes: bool,
    /// Most tasks asked for or waiting beyond the one that it computes. Not used at the root.
    pub places: u64,
    /// Sends at a time.
    pub ports: Ports,
    /// Most MB/s to all children together; infinite: no limit. Used with several ports.
    pub send_limit_mb_per_s: f64,
    /// How the children's keys come about.
    pub rule: Rule,
    /// Whether results go back up.
    pub returns: bool,
    /// Whether it keeps a ledger.
    pub recovers: bool,
    /// Whether the last tasks go only to nodes that are done with them as early as the others. Needs results.
    pub level_end: bool,
    /// Tasks per second that the node itself computes.
    pub own_tasks_per_s: f64,
    /// Its children, in the order of the platform's file.
    pub children: Vec<ChildSettings>,
}

impl Settings {
    /// Of every node of a platform, in the platform's order. Children are numbered as in `tree.children`.
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>) -> Vec<Self> {
        let demand = Demand::of(platform, tree, wishes);
        let places = buffer::places(platform, tree, wishes, &demand);
        (0..platform.nodes.len())
            .map(|n| {
                let node = &platform.nodes[n];
                let children = tree.children(n as u32);
                let paces = demand.paces(platform, tree, wishes, n as u32);
                let known = children.iter().zip(&paces).map(|(&c, &pace_mb_per_s)| {
                    let child = Self::child_of(platform, tree, wishes, &demand, c);
                    ChildSettings { pace_mb_per_s: pace_mb_per_s.min(child.receive_limit_mb_per_s), ..child }
                });
                Self {
                    root: n as u32 == tree.root,
                    computes: node.compute_per_s.get() > 0.0,
                    places: places[n],
                    ports: wishes.ports,
                    send_limit_mb_per_s: node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
                    rule: order::rule(wishes.order),
                    returns: wishes.returns,
                    recovers: wishes.recovers,
                    level_end: wishes.levels(),
                    own_tasks_per_s: node.compute_per_s.get() / wishes.task.work,
                    children: known.collect(),
                }
            })
            .collect()
    }

    /// Of a node that knows neither its own rate nor its children's: they come in the order of joining.
    #[must_use]
    pub fn of_a_lone_node(root: bool, wishes: &Wishes<'_>) -> Self {
        Self {
            root,
            computes: true,
            places: wishes.buffer_tasks.unwrap_or(2),
            ports: wishes.ports,
            send_limit_mb_per_s: f64::INFINITY,
            rule: order::rule(wishes.order),
            returns: wishes.returns,
            recovers: wishes.recovers,
            level_end: false, // completion times are unknown
            own_tasks_per_s: 0.0,
            children: Vec::new(),
        }
    }

    /// Of a child as its parent knows it, sent to as fast as its link goes.
    #[must_use]
    pub fn child(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>, child: u32) -> ChildSettings {
        Self::child_of(platform, tree, wishes, &Demand::of(platform, tree, wishes), child)
    }

    fn child_of(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>, demand: &Demand, child: u32) -> ChildSettings {
        let candidate = candidate(platform, tree, wishes, child);
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

/// What an order may look at when it places a child.
pub(crate) fn candidate(platform: &Platform, tree: &Tree, wishes: &Wishes<'_>, child: u32) -> Candidate {
    let node = &platform.nodes[child as usize];
    let parent = &platform.nodes[tree.parent[child as usize] as usize];
    Candidate {
        ports: wishes.ports,
        task: wishes.task,
        own_compute_per_s: parent.compute_per_s.get(),
        compute_per_s: node.compute_per_s.get(),
        receive_limit_mb_per_s: node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        ir_send_s_per_mb: node.ir_send_s_per_mb.get(),
        planned_tasks_per_s: wishes.planned_tasks_per_s.map_or(0.0, |rates| rates[child as usize]),
    }
}
