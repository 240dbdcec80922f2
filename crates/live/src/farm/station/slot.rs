//! The children of a node: what is known of each, one that is lost, one that joins.

use std::collections::VecDeque;

use crosswind_policy::farm::{ChildSettings, Event};
use crosswind_schema::units::Quantity;

use super::allowance::Allowance;
use super::{Processor, Station};
use crate::farm::link::Link;
use crosswind_agent::frame::Frame;
use crosswind_agent::record::Happening;
use crosswind_agent::settings::{RunSettings, Work};

/// A child, by its number in the policy. One that left keeps its number; if it comes again, it gets another.
pub(crate) struct Slot {
    pub name: String,
    pub number: u32,
    pub link: Option<Link>,
    /// Whether the policy knows that it is gone.
    pub left: bool,
    /// Agents in its subtree, once it has said that it is ready; and what it asked for then.
    pub ready: Option<(u32, u64)>,
    pub reported: bool,
    /// Whether it is to leave, and how far that is.
    pub draining: Option<Draining>,
    pub(super) receive_limit: f64,
    pub(super) receive_limit_drop: f64,
    pub(super) latency_ns: u64,
    /// What it sends to its own children, MB/s of the platform (emulated).
    pub(super) sends: f64,
    /// What the policy allows, MB/s.
    pub(super) limit: Option<f64>,
    /// Tasks sent to it and not returned, in the order of sending, which is the order in which it computes them.
    pub(super) sent: VecDeque<u64>,
    /// What it computes itself, where it has children and says so.
    pub(super) computing: Option<u64>,
    /// It said that it ends because of an error of its own, such as a full disk: no task of its is to blame.
    pub failed: bool,
    pub allowance: Allowance,
}

impl Slot {
    /// Whether a task was out under it, which is so no more.
    pub(super) fn had(&mut self, task: u64) -> bool {
        self.sent.iter().position(|sent| *sent == task).map(|at| self.sent.remove(at)).is_some()
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
        self.computing.filter(|task| self.sent.contains(task)).or_else(|| self.sent.front().copied())
    }
}

/// A child that is to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draining {
    /// Tasks that it gave back.
    pub handed_back: u64,
    /// Whether all that was out under it is back, and it was told to finish.
    pub told: bool,
}

impl Station {
    /// A child is gone.
    pub fn lose(&mut self, child: u32, why: &str, now_ns: u64) {
        let Some(slot) = self.slots.get_mut(child as usize) else { return };
        if slot.left {
            return;
        }
        let suspect = slot.suspect();
        let name = slot.name.clone();
        let out = self.out_under(child);
        if let Some(task) = suspect {
            *self.lost_with.entry(task).or_default() += 1;
        }
        self.forget(child, now_ns);
        let message = format!("{name} was lost: {why}; {out} tasks that were out under it wait again");
        self.happen_to(name, "agent-lost", out, message, now_ns);
    }

    /// How many tasks are out under a child.
    pub(super) fn out_under(&self, child: u32) -> u64 {
        self.policy.ledger().map_or(0, |ledger| ledger.lent_to(child) as u64)
    }

    pub(super) fn forget(&mut self, child: u32, now_ns: u64) {
        let slot = &mut self.slots[child as usize];
        (slot.link, slot.left, slot.sends) = (None, true, 0.0);
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.result_from(child as usize, 0.0, now_ns);
            self.share(now_ns);
        }
        self.estimate(now_ns, |estimator, _, revisions| estimator.left(child, revisions));
        self.tell(Event::Left { child }, now_ns);
    }

    pub(super) fn happen_to(&mut self, name: String, code: &str, tasks: u64, message: String, now_ns: u64) {
        let root_ns = self.clock.root_ns(now_ns);
        let (code, node) = (code.into(), Some(name));
        self.happened.push(Happening { root_ns, code, node, number: None, tasks: Some(tasks), message });
    }

    /// A child is to leave, when it has nothing of ours any more.
    pub fn drain(&mut self, child: u32, now_ns: u64) {
        let slot = &mut self.slots[child as usize];
        if !slot.left && slot.draining.is_none() {
            slot.draining = Some(Draining::default());
            self.tell(Event::Draining { child }, now_ns);
        }
    }

    /// Tells those who drain and have nothing of ours any more to finish.
    pub fn finish_the_drained(&mut self) {
        for child in 0..self.slots.len() as u32 {
            let waits = self.slots[child as usize].draining.is_some_and(|draining| !draining.told);
            if !waits || self.out_under(child) > 0 {
                continue;
            }
            let slot = &mut self.slots[child as usize];
            if let (Some(link), Some(draining)) = (&mut slot.link, &mut slot.draining) {
                link.say(&Frame::Finish);
                draining.told = true;
            }
        }
    }

    /// A drained child has told what it did, and goes.
    pub fn release(&mut self, child: u32, now_ns: u64) {
        let slot = &mut self.slots[child as usize];
        let (name, back) = (slot.name.clone(), slot.draining.map_or(0, |draining| draining.handed_back));
        if let Some(link) = &mut slot.link {
            link.say_bye(now_ns);
        }
        self.forget(child, now_ns);
        let message = format!("{name} left when it was asked to; it gave {back} tasks back");
        self.happen_to(name, "agent-left", back, message, now_ns);
    }

    /// A child that was not there before, or comes again. Its number in the policy.
    pub fn join(&mut self, place: u32, number: u32, settings: ChildSettings, link: Link, now_ns: u64) -> u32 {
        let mut fresh = slot(&self.run, place, number);
        fresh.link = Some(link);
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.child(self.run.platform.nodes[place as usize].ir_send_s_per_mb.get());
        }
        self.slots.push(fresh);
        if let Ok(tree) = self.run.tree() {
            self.estimator.joined(&self.run.platform, &tree, &self.run.wishes(), place);
        }
        self.tell(Event::Joined { child: settings }, now_ns);
        (self.slots.len() - 1) as u32
    }
}

/// What a message to a node takes at least, ns.
pub(super) fn latency(run: &RunSettings, place: u32) -> u64 {
    let scale = if let Work::Emulated { time_scale, .. } = run.work { time_scale } else { 1.0 };
    (run.platform.nodes[place as usize].latency_s.get() / scale * 1e9) as u64
}

pub(super) fn slot(run: &RunSettings, place: u32, number: u32) -> Slot {
    let node = &run.platform.nodes[place as usize];
    Slot {
        name: node.name.clone(),
        number,
        link: None,
        left: false,
        ready: None,
        reported: false,
        draining: None,
        receive_limit: node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        receive_limit_drop: node.receive_limit_drop.get(),
        latency_ns: latency(run, place),
        sends: 0.0,
        limit: None,
        sent: VecDeque::new(),
        computing: None,
        failed: false,
        allowance: Allowance::default(),
    }
}
