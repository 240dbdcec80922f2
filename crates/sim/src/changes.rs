//! Nodes that leave, join, or have other rates from a time of the run on.
//!
//! A node leaves with all below it; what they hold, send and receive is lost at once, and their parent is told at once. One
//! that left may join again, with all below it and nothing in hand; to its parent it is a new child.

use crosswind_policy::farm::{Event, Node};
use crosswind_schema::experiment::ChangeKind;

use crate::farm::Run;
use crate::outcome::Happened;
use crate::port::NO_NODE;
use crate::time::{nanos, seconds};

impl Run<'_> {
    fn change_slot(&self) -> u32 {
        (self.nodes.len() + self.network.ports.len() + self.network.uplinks.len()) as u32
    }

    pub fn schedule_change(&mut self, at: usize) {
        if let Some(change) = self.changes.get(at) {
            self.agenda.at(nanos(change.at_s).max(self.now), self.change_slot());
        }
    }

    pub fn next_change(&mut self) {
        let at = self.recorded.events.len();
        let Some(&change) = self.changes.get(at) else { return };
        let tasks = match change.kind {
            ChangeKind::Leaves => self.leave(change.node),
            ChangeKind::Joins => self.join(change.node),
            ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } => {
                self.other_rates(change.node, compute_per_s, receive_limit_mb_per_s);
                0
            }
        };
        self.recorded.events.push(Happened { t_s: seconds(self.now), node: change.node, kind: change.kind, tasks });
        self.schedule_change(at + 1);
    }

    /// A result under way keeps the rate that it began with.
    fn other_rates(&mut self, node: u32, compute_per_s: Option<f64>, receive_limit_mb_per_s: Option<f64>) {
        if let Some(compute) = compute_per_s {
            self.touch(node);
            self.processors[node as usize].compute_at(compute);
        }
        if let Some(limit) = receive_limit_mb_per_s {
            self.network.links[node as usize].receive_limit = limit * 1e-9;
            if !self.network.links[node as usize].gone {
                self.receiving_changed(node);
            }
        }
    }

    /// How many of its parent's tasks were out under it.
    fn leave(&mut self, node: u32) -> u64 {
        let (parent, child) = (self.network.links[node as usize].parent, self.network.links[node as usize].child);
        for n in self.tree.below(node) {
            if self.network.links[n as usize].gone {
                continue;
            }
            let link = &self.network.links[n as usize];
            self.abandon(link.parent, link.child);
            self.drop_results(n);
            self.touch(n);
            let now = self.now;
            self.processors[n as usize].drop_task(now);
            self.agenda.cancel(n);
            self.network.links[n as usize].gone = true;
        }
        // The node that joins in its place numbers its children anew and has asked for nothing.
        let links = &self.network.links;
        self.agenda.lose(|n| links[n as usize].gone);
        let p = self.network.links[parent as usize].port;
        self.network.ports[p as usize].children[child as usize] = NO_NODE;
        let recalled = self.nodes[parent as usize].ledger().map_or(0, |ledger| ledger.lent_to(child));
        self.tell(parent, Event::Left { child });
        self.estimates_leave(node, parent, child);
        recalled as u64
    }

    fn join(&mut self, node: u32) -> u64 {
        let Some(settings) = self.settings.take() else { return 0 };
        let parent = self.network.links[node as usize].parent;
        let all = self.tree.below(node);
        for &n in &all {
            self.network.links[n as usize].gone = false;
            self.nodes[n as usize] = Node::new(settings[n as usize].clone());
            let p = self.network.links[n as usize].port;
            if p != NO_NODE {
                // A node that joined alone before gets its first number again; no other node gets one.
                let children: Vec<u32> = self.tree.children(n).to_vec();
                for (number, &child) in children.iter().enumerate() {
                    self.network.links[child as usize].child = number as u32;
                }
                let port = &mut self.network.ports[p as usize];
                if let Some(shared) = &mut port.shared {
                    **shared = shared.anew();
                    for &child in &children {
                        let link = &self.network.links[child as usize];
                        shared.add(link.receive_limit, link.ir_send);
                    }
                }
                port.children = children;
            }
        }
        let number = self.tree.children(parent).iter().position(|&c| c == node).unwrap_or(0);
        let known = settings[parent as usize].children[number];
        self.settings = Some(settings);
        let p = self.network.links[parent as usize].port;
        let link = &mut self.network.links[node as usize];
        let port = &mut self.network.ports[p as usize];
        link.child = port.children.len() as u32;
        port.children.push(node);
        if let Some(shared) = &mut port.shared {
            shared.add(link.receive_limit, link.ir_send);
        }
        self.estimates_join(node, parent);
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
                let p = self.network.links[node as usize].port;
                self.network.ports[p as usize].children[*child as usize] == NO_NODE
            }
            _ => false,
        };
        if !self.network.links[node as usize].gone && !from_gone {
            self.tell(node, event);
        }
    }
}
