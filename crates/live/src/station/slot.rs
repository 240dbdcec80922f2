//! The children of a node: what is known of each, one that is lost, one that joins.

use std::collections::VecDeque;

use crosswind_policy::farm::{ChildSettings, Event};
use crosswind_schema::units::Quantity;

use super::{Processor, Station};
use crate::link::Link;
use crate::record::Happening;
use crate::settings::{RunSettings, Work};

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
}

impl Slot {
    /// The task that it is computing, which may have ended it if it is lost; those that waited, or were below, are innocent.
    fn suspect(&self) -> Option<u64> {
        self.computing.filter(|task| self.sent.contains(task)).or_else(|| self.sent.front().copied())
    }
}

impl Station {
    /// A child is gone.
    pub fn lose(&mut self, child: u32, why: &str, now_ns: u64) {
        let Some(slot) = self.slots.get_mut(child as usize) else { return };
        if slot.left {
            return;
        }
        (slot.link, slot.left, slot.sends) = (None, true, 0.0);
        let suspect = slot.suspect();
        let name = slot.name.clone();
        let lost = self.policy.ledger().map_or_else(Vec::new, |ledger| ledger.clone().recall(child));
        let out = lost.len();
        if let Some(task) = suspect {
            *self.lost_with.entry(task).or_default() += 1;
        }
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.result_from(child as usize, 0.0, now_ns);
            self.share(now_ns);
        }
        self.tell(Event::Left { child }, now_ns);
        self.happened.push(Happening {
            root_ns: self.clock.root_ns(now_ns),
            code: "agent-lost".into(),
            node: Some(name.clone()),
            number: None,
            tasks: Some(out as u64),
            message: format!("{name} was lost: {why}; {out} tasks that were out under it wait again"),
        });
    }

    /// A child that was not there before, or comes again. Its number in the policy.
    pub fn join(&mut self, place: u32, number: u32, settings: ChildSettings, link: Link, now_ns: u64) -> u32 {
        let mut fresh = slot(&self.run, place, number);
        fresh.link = Some(link);
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.child(self.run.platform.nodes[place as usize].ir_send_s_per_mb.get());
        }
        self.slots.push(fresh);
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
        receive_limit: node.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        receive_limit_drop: node.receive_limit_drop.get(),
        latency_ns: latency(run, place),
        sends: 0.0,
        limit: None,
        sent: VecDeque::new(),
        computing: None,
    }
}
