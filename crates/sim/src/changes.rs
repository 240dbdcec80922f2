//! Scheduled changes of a run: nodes that leave, join, or change their rates.
//!
//! A node leaves together with its subtree. Everything the subtree holds, sends and receives is lost at once, and its
//! parent is notified at once. A node that left may join again with its subtree and without tasks; its parent treats it
//! as a new child.

use crosswind_policy::farm::{Decide, Event};
use crosswind_schema::experiment::failure::Effect;
use crosswind_schema::experiment::{ChangeKind, Due, PlacedChange, PlacedFailure};

use crate::error::SimError;
use crate::farm::Run;
use crate::inbox::News;
use crate::outcome::Happened;
use crate::port::{NO_NODE, Port};
use crate::processor::IDLE;
use crate::results::Uplink;
use crate::time::{nanos, seconds};
use crate::world::{Changing, InVain, World};

/// Tasks that failures may cut short one after the other without any task done in between, and more for each node that
/// fails.
const MOST_REDONE: (u64, u64) = (10_000, 100);
/// Drawn changes without any task done, between two checks whether anything can happen.
const CHANGES_BETWEEN_CHECKS: u64 = 1 << 12;

impl World<'_> {
    fn change_slot(&self) -> u32 {
        (self.sites.len() + self.network.ports.len() + self.network.uplinks.len()) as u32
    }

    pub fn schedule_change(&mut self) {
        if let Some(due) = self.changing.next {
            self.agenda.at(nanos(due.change.at_s).max(self.now), self.change_slot());
        }
    }

    /// Whether something other than a change may still happen.
    fn is_under_way(&self) -> bool {
        self.agenda.has_messages()
            || self.sites.iter().any(|site| site.processor.task != IDLE)
            || self.network.ports.iter().any(Port::is_sending)
            || self.network.uplinks.iter().any(Uplink::is_sending)
    }

    /// Applies new rates to a node. A result in transit keeps the rate at which it began.
    fn other_rates(&mut self, node: u32, compute_per_s: Option<f64>, receive_limit_mb_per_s: Option<f64>) {
        if let Some(compute) = compute_per_s {
            self.touch(node);
            self.sites[node as usize].processor.compute_at(compute);
        }
        if let Some(limit) = receive_limit_mb_per_s {
            let limit = self.farm.platform.nodes[node as usize].reached(limit);
            self.sites[node as usize].link.receive_limit = limit * 1e-9;
            if !self.sites[node as usize].link.gone {
                self.receiving_changed(node);
            }
        }
    }
}

impl<P: Decide> Run<'_, P> {
    /// Applies the next change.
    ///
    /// # Errors
    /// When failures keep the farm from getting on with its tasks.
    pub fn next_change(&mut self) -> Result<(), SimError> {
        let Some(Due { change, drawn }) = self.world.changing.next.take() else { return Ok(()) };
        let tasks = match change.kind {
            ChangeKind::Leaves => self.leave(change.node),
            ChangeKind::Joins => self.join(change.node),
            ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } => {
                self.world.other_rates(change.node, compute_per_s, receive_limit_mb_per_s);
                0
            }
        };
        let recorded = &mut self.world.recorded;
        if drawn {
            recorded.redone[change.node as usize] += tasks;
        } else {
            let t_s = seconds(self.world.now);
            recorded.events.push(Happened { t_s, node: change.node, kind: change.kind, tasks });
        }
        let changing = &mut self.world.changing;
        changing.next = changing.upcoming.next();
        self.world.schedule_change();
        if drawn { self.check_progress(change, tasks) } else { Ok(()) }
    }

    /// Counts a drawn change, and checks that tasks are done between such changes: failures have no end.
    fn check_progress(&mut self, change: PlacedChange, redone: u64) -> Result<(), SimError> {
        let (done, nodes) = (self.world.progress.done, self.nodes.len());
        let Changing { in_vain, failures, .. } = &mut self.world.changing;
        if in_vain.done != done {
            *in_vain = InVain { done, ..InVain::default() };
        }
        (in_vain.changes, in_vain.redone) = (in_vain.changes + 1, in_vain.redone + redone);
        if change.kind == ChangeKind::Joins && !in_vain.back.is_empty() {
            self.world.tree.below(change.node).into_iter().for_each(|n| in_vain.back[n as usize] = true);
        }
        let redone = in_vain.redone;
        if redone >= MOST_REDONE.0 + MOST_REDONE.1 * failures.len() as u64 {
            let (tasks, time_s) = (self.world.farm.tasks.count, seconds(self.world.now));
            return Err(SimError::Failing { done, tasks, time_s, redone });
        }
        // A node that came back and could compute a task has got one, which was done, was cut short or is under way.
        let all_back =
            |failure: &PlacedFailure| failure.effect != Effect::Leaves || in_vain.back[failure.node as usize];
        let is_due = redone == 0 && in_vain.changes % CHANGES_BETWEEN_CHECKS == 0;
        if is_due && in_vain.back.is_empty() {
            in_vain.back = vec![false; nodes];
        } else if is_due && failures.iter().all(all_back) && !self.world.is_under_way() {
            return Err(self.stuck());
        }
        Ok(())
    }

    /// Removes a node and its subtree. Returns how many of the parent's tasks were outstanding there.
    fn leave(&mut self, node: u32) -> u64 {
        let (parent, child) = (self.world.sites[node as usize].link.parent, self.world.sites[node as usize].link.child);
        for n in self.world.tree.below(node) {
            if self.world.sites[n as usize].link.gone {
                continue;
            }
            let link = &self.world.sites[n as usize].link;
            self.world.abandon(link.parent, link.child);
            self.world.drop_results(n);
            self.world.touch(n);
            self.world.cut_task(n);
            self.world.agenda.cancel(n);
            self.world.sites[n as usize].link.gone = true;
        }
        // A node that joins in its place renumbers its children and has requested nothing.
        let sites = &self.world.sites;
        self.world.agenda.lose(|n| sites[n as usize].link.gone);
        let p = self.world.sites[parent as usize].link.port;
        self.world.network.ports[p as usize].children[child as usize] = NO_NODE;
        let recalled = self.nodes[parent as usize].lent_to(child);
        self.tell(parent, Event::Left { child });
        self.world.estimates_leave(node, parent, child);
        recalled as u64
    }

    fn join(&mut self, node: u32) -> u64 {
        let Some(settings) = self.world.changing.settings.take() else { return 0 };
        let parent = self.world.sites[node as usize].link.parent;
        let all = self.world.tree.below(node);
        for &n in &all {
            self.world.sites[n as usize].link.gone = false;
            self.nodes[n as usize] = (self.make)(n, settings[n as usize].clone());
            let p = self.world.sites[n as usize].link.port;
            if p != NO_NODE {
                // A descendant that had rejoined on its own gets its first number back. All others keep theirs.
                let children: Vec<u32> = self.world.tree.children(n).to_vec();
                for (number, &child) in children.iter().enumerate() {
                    self.world.sites[child as usize].link.child = number as u32;
                }
                let port = &mut self.world.network.ports[p as usize];
                if let Some(shared) = &mut port.shared {
                    **shared = shared.anew();
                    for &child in &children {
                        let link = &self.world.sites[child as usize].link;
                        shared.add(link.receive_limit, link.ir_send);
                    }
                }
                port.children = children;
            }
        }
        let number = self.world.tree.children(parent).iter().position(|&c| c == node).unwrap_or(0);
        let known = settings[parent as usize].children[number];
        self.world.changing.settings = Some(settings);
        let p = self.world.sites[parent as usize].link.port;
        let link = &mut self.world.sites[node as usize].link;
        let port = &mut self.world.network.ports[p as usize];
        link.child = port.children.len() as u32;
        port.children.push(node);
        if let Some(shared) = &mut port.shared {
            shared.add(link.receive_limit, link.ir_send);
        }
        self.world.estimates_join(node, parent);
        self.nodes[parent as usize].joins(node);
        self.tell(parent, Event::Joined { child: known });
        for n in all {
            self.world.inbox.push(n, News::of(Event::Started));
        }
        0
    }

    /// Delivers a message, unless its sender or receiver has left.
    pub fn deliver(&mut self, node: u32, news: News) {
        let sender = match &news {
            News::Requested { child, .. } | News::Returned { child, .. } => Some(*child),
            News::Other(event) => match **event {
                Event::Given { first, .. } => return self.release(first),
                Event::HandedBack { child, .. } => Some(child),
                _ => None,
            },
            News::Arrived { .. } => None,
        };
        let link = &self.world.sites[node as usize].link;
        let children = |p: u32| &self.world.network.ports[p as usize].children;
        let from_gone = sender.is_some_and(|child| children(link.port)[child as usize] == NO_NODE);
        if !link.gone && !from_gone {
            self.tell_news(node, news);
        }
    }
}
