//! Nodes that leave and join at a time of the run.
//!
//! A node leaves with all below it; what they hold, send and receive is lost at once, and their parent is told at once. One
//! that left may join again, with all below it and nothing in hand; to its parent it is a new child.

use crosswind_policy::farm::{Event, Node};
use crosswind_schema::Tree;

use crate::error::SimError;
use crate::farm::Run;
use crate::outcome::Happened;
use crate::port::NOBODY;
use crate::time::{nanos, seconds};

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is gone.
    Leaves,
    /// It is back.
    Joins,
}

/// Something that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// When, s; faults stand in the order of their times.
    pub at_s: f64,
    /// To whom: place in the platform's file.
    pub node: u32,
    /// What.
    pub kind: FaultKind,
}

/// Refuses faults that cannot happen.
pub(crate) fn check(faults: &[Fault], tree: &Tree) -> Result<(), SimError> {
    let count = tree.parent.len();
    let mut gone = vec![false; count];
    let mut before = 0.0;
    for (at, fault) in faults.iter().enumerate() {
        let wrong = |why| Err(SimError::Fault { at, node: fault.node, why });
        if !(fault.at_s >= before && fault.at_s.is_finite()) {
            return wrong("its time must be at least 0 and not before that of the fault before it");
        }
        before = fault.at_s;
        if fault.node as usize >= count {
            return wrong("there is no such node in the platform");
        }
        if fault.node == tree.root {
            return wrong("the root holds the tasks; it cannot leave");
        }
        let above = tree.parent[fault.node as usize];
        let mut up = above;
        while up != tree.root && !gone[up as usize] {
            up = tree.parent[up as usize];
        }
        if gone[up as usize] {
            return wrong("a node above it is gone at that time");
        }
        if gone[fault.node as usize] != (fault.kind == FaultKind::Joins) {
            return wrong("only who is there can leave, and only who left can join");
        }
        gone[fault.node as usize] = fault.kind == FaultKind::Leaves;
        if fault.kind == FaultKind::Joins {
            for n in below(tree, fault.node) {
                gone[n as usize] = false;
            }
        }
    }
    Ok(())
}

/// A node and all below it.
fn below(tree: &Tree, node: u32) -> Vec<u32> {
    let mut all = vec![node];
    let mut at = 0;
    while at < all.len() {
        all.extend_from_slice(tree.children(all[at]));
        at += 1;
    }
    all
}

impl Run<'_> {
    fn fault_slot(&self) -> u32 {
        (self.nodes.len() + self.ports.len() + self.uplinks.len()) as u32
    }

    pub fn schedule_fault(&mut self, at: usize) {
        if let Some(fault) = self.faults.get(at) {
            self.agenda.at(nanos(fault.at_s).max(self.now), self.fault_slot());
        }
    }

    pub fn next_fault(&mut self) {
        let at = self.events.len();
        let Some(&fault) = self.faults.get(at) else { return };
        let tasks = match fault.kind {
            FaultKind::Leaves => self.leave(fault.node),
            FaultKind::Joins => self.join(fault.node),
        };
        let joined = fault.kind == FaultKind::Joins;
        self.events.push(Happened { t_s: seconds(self.now), node: fault.node, joined, tasks });
        self.schedule_fault(at + 1);
    }

    /// How many of its parent's tasks were out under it.
    fn leave(&mut self, node: u32) -> u64 {
        let (parent, child) = (self.links[node as usize].parent, self.links[node as usize].child);
        for n in below(&self.tree, node) {
            if self.links[n as usize].gone {
                continue;
            }
            let link = &self.links[n as usize];
            self.abandon(link.parent, link.child);
            self.drop_results(n);
            self.touch(n);
            let now = self.now;
            self.processors[n as usize].drop_task(now);
            self.agenda.cancel(n);
            self.links[n as usize].gone = true;
        }
        let p = self.links[parent as usize].port;
        self.ports[p as usize].children[child as usize] = NOBODY;
        let recalled = self.nodes[parent as usize].ledger().map_or(0, |ledger| ledger.lent_to(child));
        self.tell(parent, Event::Left { child });
        recalled as u64
    }

    fn join(&mut self, node: u32) -> u64 {
        let Some(settings) = self.settings.take() else { return 0 };
        let parent = self.links[node as usize].parent;
        let all = below(&self.tree, node);
        for &n in &all {
            self.links[n as usize].gone = false;
            self.nodes[n as usize] = Node::new(settings[n as usize].clone());
            let p = self.links[n as usize].port;
            if p != NOBODY {
                // Who joined alone before has its first number again, and nobody else one.
                let children: Vec<u32> = self.tree.children(n).to_vec();
                for (number, &child) in children.iter().enumerate() {
                    self.links[child as usize].child = number as u32;
                }
                let port = &mut self.ports[p as usize];
                if let Some(shared) = &mut port.shared {
                    **shared = shared.anew();
                    for &child in &children {
                        let link = &self.links[child as usize];
                        shared.add(link.receive_limit, link.ir_send);
                    }
                }
                port.children = children;
            }
        }
        let number = self.tree.children(parent).iter().position(|&c| c == node).unwrap_or(0);
        let known = settings[parent as usize].children[number];
        self.settings = Some(settings);
        let p = self.links[parent as usize].port;
        let link = &mut self.links[node as usize];
        let port = &mut self.ports[p as usize];
        link.child = port.children.len() as u32;
        port.children.push(node);
        if let Some(shared) = &mut port.shared {
            shared.add(link.receive_limit, link.ir_send);
        }
        self.tell(parent, Event::Joined { child: known });
        for n in all {
            self.inbox.push_back((n, Event::Started));
        }
        0
    }

    /// A message that was under way.
    pub fn deliver(&mut self, node: u32, event: Event) {
        let from_gone = match &event {
            Event::Asked { child, .. } | Event::Returned { child, .. } | Event::HandedBack { child, .. } => {
                let p = self.links[node as usize].port;
                self.ports[p as usize].children[*child as usize] == NOBODY
            }
            _ => false,
        };
        if !self.links[node as usize].gone && !from_gone {
            self.tell(node, event);
        }
    }
}
