//! A node's children: their state, and what happens when a child joins, drains or is lost.

use std::collections::VecDeque;

use crosswind_policy::farm::{ChildSettings, Event};
use crosswind_schema::units::Quantity;

use crate::action::{Action, Peer, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::allowance::Allowance;
use crate::frame::Frame;
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
    pub heard_ns: u64,
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
    pub allowance: Allowance,
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
    /// Tasks sent to the child and not returned, in the order of sending, which is the order in which it computes them.
    pub sent: VecDeque<u64>,
    /// The task that the child computes itself, if it has children and reports this.
    pub computing: Option<u64>,
}

/// A task being sent to a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sending {
    pub task: u64,
    pub paused: bool,
    /// Rate last written in a frame, MB/s of the platform. `None`: the transfer is not paced.
    pub told: Option<f64>,
}

/// State of a child that is to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draining {
    /// Number of tasks that it handed back.
    pub handed_back: u64,
    /// Whether it was sent `Finish`, after everything under it had returned.
    pub told: bool,
}

impl Child {
    pub fn new(run: &RunSettings, place: u32, number: u32, now_ns: u64) -> Self {
        let node = &run.platform.nodes[place as usize];
        Self {
            name: node.name.clone(),
            number,
            connected: false,
            heard_ns: now_ns,
            left: false,
            ready: None,
            reported: false,
            draining: None,
            link: Link {
                receive_limit: node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
                receive_limit_drop: node.receive_limit_drop.get(),
                latency_ns: latency(run, place),
                sends: 0.0,
                limit: None,
            },
            out: Out::default(),
            failed: false,
            allowance: Allowance::default(),
        }
    }

    /// Removes a task from those held by the child. Returns whether the child held it.
    pub fn had(&mut self, task: u64) -> bool {
        self.out.sent.iter().position(|sent| *sent == task).map(|at| self.out.sent.remove(at)).is_some()
    }

    /// Whether anything in the child's subtree may compute tasks of this node. A child that is not ready yet may. A
    /// ready one does if it holds tasks, or if it is served and requests some. An inner node left without children does
    /// neither.
    pub fn may_compute(&self, served: bool) -> bool {
        let asks = served && self.allowance.wants();
        self.connected && (self.ready.is_none() || asks || !self.out.sent.is_empty())
    }

    /// Whether it was sent `Finish` because it is to leave.
    pub fn is_drained(&self) -> bool {
        self.draining.is_some_and(|draining| draining.told)
    }

    /// Returns the task that the child is computing, which may have ended it if it is lost. Tasks that wait, or are
    /// further down, are not suspected.
    fn suspect(&self) -> Option<u64> {
        if self.failed {
            return None;
        }
        self.out.computing.filter(|task| self.out.sent.contains(task)).or_else(|| self.out.sent.front().copied())
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
            self.stock.lost_with(task);
        }
        self.forget(child, false, now_ns);
        let message = format!("{name} was lost: {why}; {out} tasks that were out under it wait again");
        self.happen_to(name, "agent-lost", out, message, now_ns);
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
        self.tell(Event::Left { child }, now_ns);
    }

    pub(crate) fn happen_to(&mut self, name: String, code: &str, tasks: u64, message: String, now_ns: u64) {
        let root_ns = self.clock.root_ns(now_ns);
        let (code, node) = (code.into(), Some(name));
        self.account.happened.push(AgentEvent { root_ns, code, node, number: None, tasks: Some(tasks), message });
    }

    /// Records an event at this node.
    pub fn happen(&mut self, code: &str, tasks: Option<u64>, message: String) {
        let node = Some(self.name.clone());
        let root_ns = self.clock.root_ns(self.now_ns);
        self.account.happened.push(AgentEvent { root_ns, code: code.into(), node, number: None, tasks, message });
    }

    /// Starts draining a child: it is released once no task of this node is left under it.
    pub(crate) fn drain(&mut self, child: u32, now_ns: u64) {
        let state = &mut self.children[child as usize];
        if !state.left && state.draining.is_none() {
            state.draining = Some(Draining::default());
            let note = format!("{} is to leave", state.name);
            self.act(Action::Note(note));
            self.tell(Event::Draining { child }, now_ns);
        }
    }

    /// Sends `Finish` to the draining children that hold no more tasks.
    pub(crate) fn finish_the_drained(&mut self) {
        for child in 0..self.children.len() as u32 {
            let waits = self.children[child as usize].draining.is_some_and(|draining| !draining.told);
            if !waits || self.out_under(child) > 0 {
                continue;
            }
            let state = &mut self.children[child as usize];
            if let (true, Some(draining)) = (state.connected, &mut state.draining) {
                draining.told = true;
                self.say(Peer::Child(child), Frame::Finish);
            }
        }
    }

    /// Removes a drained child whose report is complete.
    pub(crate) fn release(&mut self, child: u32, now_ns: u64) {
        let state = &self.children[child as usize];
        let (name, back) = (state.name.clone(), state.draining.map_or(0, |draining| draining.handed_back));
        self.forget(child, true, now_ns);
        let message = format!("{name} left when it was asked to; it gave {back} tasks back");
        self.happen_to(name, "agent-left", back, message, now_ns);
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
        self.tell(Event::Joined { child: settings }, now_ns);
        (self.children.len() - 1) as u32
    }
}

/// Minimum time of a message to a node, ns of the clock.
pub(crate) fn latency(run: &RunSettings, place: u32) -> u64 {
    let scale = if let Work::Emulated { time_scale, .. } = run.work { time_scale } else { 1.0 };
    (run.platform.nodes[place as usize].latency_s.get() / scale * 1e9) as u64
}
