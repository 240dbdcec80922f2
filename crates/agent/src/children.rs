//! The children of a node: what is known of each, one that is lost, one that drains, one that joins.

use std::collections::VecDeque;

use crosswind_policy::farm::{ChildSettings, Event};
use crosswind_schema::units::Quantity;

use crate::action::{Action, Peer, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::allowance::Allowance;
use crate::frame::Frame;
use crate::record::AgentEvent;
use crate::settings::{RunSettings, Work};

/// A child, by its number in the policy. One that left keeps its number; if it comes again, it gets another.
#[derive(Debug)]
pub(crate) struct Child {
    pub name: String,
    pub number: u32,
    /// Whether there is a link to it.
    pub connected: bool,
    /// When something last came over that.
    pub heard_ns: u64,
    /// Whether the policy knows that it is gone.
    pub left: bool,
    /// Agents in its subtree, once it has said that it is ready; and what it asked for then.
    pub ready: Option<(u32, u64)>,
    pub reported: bool,
    /// Whether it is to leave, and how far that is.
    pub draining: Option<Draining>,
    pub link: Link,
    pub out: Out,
    /// It said that it ends because of an error of its own, such as a full disk: no task of its is to blame.
    pub failed: bool,
    pub allowance: Allowance,
}

/// What can be sent to a child, and when it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// What the platform's link takes while the child sends nothing, MB/s; and what of that each MB/s sent takes away.
    pub receive_limit: f64,
    pub receive_limit_drop: f64,
    pub latency_ns: u64,
    /// What the child sends to its own children, MB/s of the platform (emulated).
    pub sends: f64,
    /// What the policy allows, MB/s.
    pub limit: Option<f64>,
}

/// What is out under a child.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    /// The transfer to it that has not ended.
    pub sending: Option<Sending>,
    /// Tasks sent to it and not returned, in the order of sending, which is the order in which it computes them.
    pub sent: VecDeque<u64>,
    /// What it computes itself, where it has children and says so.
    pub computing: Option<u64>,
}

/// A task on its way to a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sending {
    pub task: u64,
    pub paused: bool,
    /// Its rate as frames say it, MB/s of the platform; none: it is not paced.
    pub told: Option<f64>,
}

/// A child that is to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draining {
    /// Tasks that it gave back.
    pub handed_back: u64,
    /// Whether all that was out under it is back, and it was told to finish.
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

    /// Whether a task was out under it, which is so no more.
    pub fn had(&mut self, task: u64) -> bool {
        self.out.sent.iter().position(|sent| *sent == task).map(|at| self.out.sent.remove(at)).is_some()
    }

    /// Whether anything in its subtree may compute tasks of this node: such a child has some or asks for some, once it is
    /// ready, and is served. An inner node that is left without children neither has nor asks.
    pub fn may_compute(&self, served: bool) -> bool {
        let asks = served && self.allowance.wants();
        self.connected && (self.ready.is_none() || asks || !self.out.sent.is_empty())
    }

    /// Whether it was told to finish because it is to leave.
    pub fn is_drained(&self) -> bool {
        self.draining.is_some_and(|draining| draining.told)
    }

    /// The task that it is computing, which may have ended it if it is lost; those that waited, or were below, are innocent.
    fn suspect(&self) -> Option<u64> {
        if self.failed {
            return None;
        }
        self.out.computing.filter(|task| self.out.sent.contains(task)).or_else(|| self.out.sent.front().copied())
    }
}

impl<P: TaskBytes> Agent<P> {
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

    /// Notes something that happened here.
    pub fn happen(&mut self, code: &str, tasks: Option<u64>, message: String) {
        let node = Some(self.name.clone());
        let root_ns = self.clock.root_ns(self.now_ns);
        self.account.happened.push(AgentEvent { root_ns, code: code.into(), node, number: None, tasks, message });
    }

    /// A child is to leave, when nothing of this node is out under it any more.
    pub(crate) fn drain(&mut self, child: u32, now_ns: u64) {
        let state = &mut self.children[child as usize];
        if !state.left && state.draining.is_none() {
            state.draining = Some(Draining::default());
            let note = format!("{} is to leave", state.name);
            self.act(Action::Note(note));
            self.tell(Event::Draining { child }, now_ns);
        }
    }

    /// Tells those that drain, and under which nothing is out any more, to finish.
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

    /// A drained child has told what it did, and goes.
    pub(crate) fn release(&mut self, child: u32, now_ns: u64) {
        let state = &self.children[child as usize];
        let (name, back) = (state.name.clone(), state.draining.map_or(0, |draining| draining.handed_back));
        self.forget(child, true, now_ns);
        let message = format!("{name} left when it was asked to; it gave {back} tasks back");
        self.happen_to(name, "agent-left", back, message, now_ns);
    }

    /// A child that was not there before, or comes again. Its number in the policy.
    pub(crate) fn join(&mut self, place: u32, number: u32, settings: ChildSettings, now_ns: u64) -> u32 {
        let mut fresh = Child::new(&self.run, place, number, now_ns);
        fresh.connected = true;
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.child(self.run.platform.nodes[place as usize].ir_send_s_per_mb.get());
        }
        self.children.push(fresh);
        if let Ok(tree) = self.run.tree() {
            self.estimator.joined(&self.run.platform, &tree, &self.run.wishes(), place);
        }
        self.tell(Event::Joined { child: settings }, now_ns);
        (self.children.len() - 1) as u32
    }
}

/// What a message to a node takes at least, ns.
pub(crate) fn latency(run: &RunSettings, place: u32) -> u64 {
    let scale = if let Work::Emulated { time_scale, .. } = run.work { time_scale } else { 1.0 };
    (run.platform.nodes[place as usize].latency_s.get() / scale * 1e9) as u64
}
