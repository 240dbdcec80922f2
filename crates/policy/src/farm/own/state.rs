//! What a policy of the user's own sees of its node.

use std::collections::VecDeque;
use std::sync::Arc;

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::super::event::{Child, TaskId};

/// A child, and what it requested.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnChild {
    /// Index of its node in the platform.
    pub node: u32,
    pub name: String,
    /// Its compute rate, work units/s.
    pub compute_per_s: f64,
    /// Its receive limit, MB/s.
    pub receive_limit_mb_per_s: f64,
    /// Interference at it of receiving, s/MB.
    pub ir_receive_s_per_mb: f64,
    /// Interference at this node of sending to it, s/MB.
    pub ir_send_s_per_mb: f64,
    /// Of a message to it, s.
    pub latency_s: f64,
    /// Tasks that it requested and that no send has begun for.
    pub requested: u64,
    /// Tasks that were sent to it and whose results have not arrived, the one under way included.
    pub out: u64,
    /// Whether a send to it is under way.
    pub sending: bool,
    /// Whether it has left.
    pub gone: bool,
}

/// A node, its waiting tasks and its children.
#[derive(Clone, Debug)]
pub struct OwnState {
    /// Index of the node in the platform.
    pub node: u32,
    pub name: String,
    pub is_root: bool,
    /// Its compute rate, work units/s; 0: it computes nothing.
    pub compute_per_s: f64,
    pub ports: Ports,
    /// Seconds since the start.
    pub now_s: f64,
    /// Tasks that wait here, in the order in which they came.
    pub waiting: Arc<VecDeque<TaskId>>,
    /// The task that is computed here.
    pub computing: Option<TaskId>,
    /// Children in the order of the platform's file; one that left and joined again comes last, as another one.
    pub children: Vec<OwnChild>,
}

impl OwnState {
    pub(super) fn new(platform: &Platform, tree: &Tree, node: u32, ports: Ports) -> Self {
        let own = &platform.nodes[node as usize];
        Self {
            node,
            name: own.name.clone(),
            is_root: node == tree.root,
            compute_per_s: own.compute_per_s.get(),
            ports,
            now_s: 0.0,
            waiting: Arc::default(),
            computing: None,
            children: tree.children(node).iter().map(|&child| OwnChild::new(platform, child)).collect(),
        }
    }

    /// Whether its processor computes nothing at the moment, and can.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.compute_per_s > 0.0 && self.computing.is_none()
    }

    /// Whether a send may begin: with a single port, none is under way.
    #[must_use]
    pub fn is_port_free(&self) -> bool {
        self.ports == Ports::Multi || !self.children.iter().any(|child| child.sending)
    }

    /// Whether anything can begin: a task waits, and a child is open or the node is idle.
    #[must_use]
    pub fn can_begin(&self) -> bool {
        !self.waiting.is_empty() && (self.is_idle() || self.open().next().is_some())
    }

    /// Yields the children that a task may be sent to now: they requested one, none is under way to them, the port is
    /// free, and a task waits.
    pub fn open(&self) -> impl Iterator<Item = (Child, &OwnChild)> {
        let is_open = !self.waiting.is_empty() && self.is_port_free();
        (0..).zip(&self.children).filter(move |(_, child)| is_open && child.takes())
    }
}

impl OwnChild {
    fn new(platform: &Platform, node: u32) -> Self {
        let own = &platform.nodes[node as usize];
        Self {
            node,
            name: own.name.clone(),
            compute_per_s: own.compute_per_s.get(),
            receive_limit_mb_per_s: own.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
            ir_receive_s_per_mb: own.ir_receive_s_per_mb.get(),
            ir_send_s_per_mb: own.ir_send_s_per_mb.get(),
            latency_s: own.latency_s.get(),
            requested: 0,
            out: 0,
            sending: false,
            gone: false,
        }
    }

    pub(super) fn anew(&self) -> Self {
        Self { requested: 0, out: 0, sending: false, gone: false, ..self.clone() }
    }

    fn takes(&self) -> bool {
        self.requested > 0 && !self.sending && !self.gone
    }
}
