//! A node's children: their state, and what happens when a child joins, drains or is lost.

use std::collections::VecDeque;

use crosswind_policy::farm::{ChildSettings, Event};
use crosswind_schema::units::Quantity;
use rustc_hash::FxHashMap;

use crate::action::{Action, Peer, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::frame::Frame;
use crate::quota::Quota;
use crate::record::AgentEvent;
use crate::settings::{RunSettings, Work};

/// A child, by its number in the policy. The number is not reused: a child that leaves and reconnects gets a new one.
#[derive(Debug)]
pub(crate) struct Child {
    pub name: String,
    pub number: u32,
    /// Whether the child has a link.
    pub connected: bool,
    /// Time at which bytes last arrived over the link, ns.
    pub received_ns: u64,
    /// Whether the policy has been notified that the child is gone.
    pub left: bool,
    /// Number of agents in its subtree and its first request, tasks. `None` until it reports that it is ready.
    pub ready: Option<(u32, u64)>,
    pub reported: bool,
    /// Progress of draining; `None` unless it is to leave.
    pub draining: Option<Draining>,
    pub link: Link,
    pub out: Out,
    /// Whether it announced that it ends because of its own error, such as a full disk, or is lost because of this node.
    /// None of its tasks is to blame then.
    pub failed: bool,
    pub quota: Quota,
}

/// Rates and latency of the link to a child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The link's receive limit while the child sends nothing, MB/s, and by how much each MB/s that it sends lowers
    /// this.
    pub receive_limit: f64,
    pub receive_limit_drop: f64,
    pub latency_ns: u64,
    /// Rate at which the child sends to its own children, MB/s of the platform. Emulated links only.
    pub sends: f64,
    /// The policy's limit, MB/s. `None`: no limit.
    pub limit: Option<f64>,
}

/// The tasks that a child's subtree holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    /// The unfinished transfer to the child.
    pub sending: Option<Sending>,
    pub sent: Sent,
    /// The task that the child computes itself, if it has children and reports this.
    pub computing: Option<u64>,
}

/// Tasks sent to a child and not returned, in the order of sending, which is the order in which it computes them. A
/// result is found without a search: below the root of a wide tree, there may be many thousands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Each task with its turn. The first one is held; others may have returned.
    order: VecDeque<(u64, u64)>,
    /// The turn of each task that is held.
    held: FxHashMap<u64, u64>,
    turn: u64,
}

impl Sent {
    pub fn push(&mut self, task: u64) {
        self.turn += 1;
        self.order.push_back((task, self.turn));
        self.held.insert(task, self.turn);
    }

    /// Removes a task. Returns whether it was there.
    pub fn remove(&mut self, task: u64) -> bool {
        let held = self.held.remove(&task).is_some();
        while self.order.front().is_some_and(|entry| !self.holds(entry)) {
            self.order.pop_front();
        }
        // A task that takes long stays in front of many that have returned.
        if self.order.len() > 2 * self.held.len() + 64 {
            let held = &self.held;
            self.order.retain(|(task, turn)| held.get(task) == Some(turn));
        }
        held
    }

    fn holds(&self, (task, turn): &(u64, u64)) -> bool {
        self.held.get(task) == Some(turn)
    }

    pub fn contains(&self, task: u64) -> bool {
        self.held.contains_key(&task)
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub fn first(&self) -> Option<u64> {
        self.order.front().map(|(task, _)| *task)
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.order.iter().filter(|entry| self.holds(entry)).map(|(task, _)| *task)
    }
}

/// A task being sent to a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sending {
    pub task: u64,
    pub paused: bool,
    /// Rate last written in a frame, MB/s of the platform. `None`: the transfer is not paced.
    pub reported: Option<f64>,
}

/// State of a child that is to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draining {
    /// Number of tasks that it handed back.
    pub handed_back: u64,
    /// Whether it was sent `Finish`, after everything under it had returned.
    pub has_finish: bool,
}

impl Child {
    pub fn new(run: &RunSettings, place: u32, number: u32, now_ns: u64) -> Self {
        let node = &run.platform.nodes[place as usize];
        Self {
            name: node.name.clone(),
            number,
            connected: false,
            received_ns: now_ns,
            left: false,
            ready: None,
            reported: false,
            draining: None,
            link: Link {
                receive_limit: node.link_mb_per_s().unwrap_or(f64::INFINITY),
                receive_limit_drop: node.link_drop(),
                latency_ns: latency(run, place),
                sends: 0.0,
                limit: None,
            },
            out: Out::default(),
            failed: false,
            quota: Quota::default(),
        }
    }

    /// Whether anything in the child's subtree may compute tasks of this node. A child that is not ready yet may. A
    /// ready one does if it holds tasks, or if it is served and requests some. An inner node left without children does
    /// neither.
    pub fn may_compute(&self, served: bool) -> bool {
        let asks = served && self.quota.wants();
        self.connected && (self.ready.is_none() || asks || !self.out.sent.is_empty())
    }

    /// Whether it was sent `Finish` because it is to leave.
    pub fn is_drained(&self) -> bool {
        self.draining.is_some_and(|draining| draining.has_finish)
    }

    /// Returns the task that the child is computing, which may have ended it if it is lost. Tasks that wait, or are
    /// further down, are not suspected.
    fn suspect(&self) -> Option<u64> {
        if self.failed {
            return None;
        }
        self.out.computing.filter(|task| self.out.sent.contains(*task)).or_else(|| self.out.sent.first())
    }
}

impl<P: TaskBytes> Agent<P> {
    /// Marks a child that is about to be lost because of this node: none of its tasks is to blame.
    pub fn acquit(&mut self, child: u32) {
        if let Some(child) = self.children.get_mut(child as usize) {
            child.failed = true;
        }
    }

    pub(crate) fn lose(&mut self, child: u32, why: &str, now_ns: u64) {
        let Some(state) = self.children.get(child as usize).filter(|child| !child.left) else { return };
        let (name, suspect) = (state.name.clone(), state.suspect());
        self.act(Action::Note(format!("{name} is lost: {why}")));
        let out = self.out_under(child);
        if let Some(task) = suspect {
            self.task_store.lost_with(task);
        }
        self.forget(child, false, now_ns);
        let message = format!("{name} was lost: {why}; {out} tasks that were out under it wait again");
        self.record_event_of(name, "agent-lost", out, message, now_ns);
    }

    pub(crate) fn forget(&mut self, child: u32, bye: bool, now_ns: u64) {
        self.withdraw_recalled(child as usize);
        let state = &mut self.children[child as usize];
        (state.connected, state.left, state.link.sends, state.out.sending) = (false, true, 0.0, None);
        self.act(Action::Close { child, bye });
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.result_from(child as usize, 0.0, now_ns);
            self.share(now_ns);
        }
        self.estimate(now_ns, |estimator, _, revisions| estimator.left(child, revisions));
        self.handle_event(Event::Left { child }, now_ns);
    }

    pub(crate) fn record_event_of(&mut self, name: String, code: &str, tasks: u64, message: String, now_ns: u64) {
        let root_ns = self.clock.root_ns(now_ns);
        let (code, node) = (code.into(), Some(name));
        self.account.agent_events.push(AgentEvent { root_ns, code, node, number: None, tasks: Some(tasks), message });
    }

    /// Records an event at this node.
    pub fn record_event(&mut self, code: &str, tasks: Option<u64>, message: String) {
        let node = Some(self.name.clone());
        let root_ns = self.clock.root_ns(self.now_ns);
        self.account.agent_events.push(AgentEvent { root_ns, code: code.into(), node, number: None, tasks, message });
    }

    /// Starts draining a child: it is released once no task of this node is left under it.
    pub(crate) fn drain(&mut self, child: u32, now_ns: u64) {
        let state = &mut self.children[child as usize];
        if !state.left && state.draining.is_none() {
            state.draining = Some(Draining::default());
            let note = format!("{} is to leave", state.name);
            self.act(Action::Note(note));
            self.handle_event(Event::Draining { child }, now_ns);
        }
    }

    /// Sends `Finish` to the draining children that hold no more tasks.
    pub(crate) fn finish_the_drained(&mut self) {
        for child in 0..self.children.len() as u32 {
            let waits = self.children[child as usize].draining.is_some_and(|draining| !draining.has_finish);
            if !waits || self.out_under(child) > 0 {
                continue;
            }
            let state = &mut self.children[child as usize];
            if let (true, Some(draining)) = (state.connected, &mut state.draining) {
                draining.has_finish = true;
                self.send_frame(Peer::Child(child), Frame::Finish);
            }
        }
    }

    /// Removes a drained child whose report is complete.
    pub(crate) fn release(&mut self, child: u32, now_ns: u64) {
        let state = &self.children[child as usize];
        let (name, back) = (state.name.clone(), state.draining.map_or(0, |draining| draining.handed_back));
        self.forget(child, true, now_ns);
        let message = format!("{name} left when it was asked to; it gave {back} tasks back");
        self.record_event_of(name, "agent-left", back, message, now_ns);
    }

    /// Adds a child that is new or reconnects. Returns its number in the policy.
    pub(crate) fn join(&mut self, place: u32, number: u32, settings: ChildSettings, now_ns: u64) -> u32 {
        let mut fresh = Child::new(&self.run, place, number, now_ns);
        fresh.connected = true;
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.child(self.run.platform.nodes[place as usize].ir_send_s_per_mb.get());
        }
        self.by_name.insert(fresh.name.clone(), self.children.len() as u32);
        self.children.push(fresh);
        self.layout.join(&self.run, place, &mut self.estimator);
        self.handle_event(Event::Joined { child: settings }, now_ns);
        (self.children.len() - 1) as u32
    }
}

/// Minimum time of a message to a node, ns of the clock.
pub(crate) fn latency(run: &RunSettings, place: u32) -> u64 {
    let scale = if let Work::Emulated { time_scale, .. } = run.work { time_scale } else { 1.0 };
    (run.platform.nodes[place as usize].latency_s.get() / scale * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_sent_to_a_child_keep_their_order_whichever_returns_first() {
        let mut sent = Sent::default();
        for task in [7, 3, 9, 5] {
            sent.push(task);
        }
        assert!(sent.remove(3) && !sent.remove(3) && !sent.contains(3));
        sent.push(3); // sent again: behind the others
        assert_eq!((sent.first(), sent.iter().collect::<Vec<_>>()), (Some(7), vec![7, 9, 5, 3]));
        assert!([7, 9, 5, 3].into_iter().all(|task| sent.remove(task)) && sent.is_empty());
        assert_eq!(sent.first(), None);
    }

    #[test]
    fn a_task_that_takes_long_does_not_keep_what_has_returned_behind_it() {
        let mut sent = Sent::default();
        sent.push(0);
        for task in 1..10_000 {
            sent.push(task);
            assert!(sent.remove(task));
        }
        assert_eq!((sent.first(), sent.iter().count()), (Some(0), 1));
        assert!(sent.order.len() < 100, "{}", sent.order.len());
    }
}
