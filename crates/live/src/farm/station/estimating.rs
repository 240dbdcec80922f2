//! What a node finds out while it runs: the policy's estimator is told what happens and when, and what follows goes to
//! whom it concerns: the own policy, a child, the parent.

use crosswind_policy::farm::Event;
use crosswind_policy::farm::estimate::{Estimator, Revision};
use crosswind_schema::run::SeenNode;
use crosswind_schema::units::Quantity;

use super::{Station, Up};
use crosswind_agent::frame::Frame;
use crosswind_agent::record::SeenLink;
use crosswind_agent::settings::Work;

/// A real link takes so many bytes at once, whatever its speed: smaller tasks do not measure it.
const LEAST_MEASURED: u64 = 1 << 20;

impl Station {
    /// Tells the estimator something, at a time of the own clock.
    pub(super) fn estimate(&mut self, at_ns: u64, told: impl FnOnce(&mut Estimator, f64, &mut Vec<Revision>)) {
        let now_s = (at_ns as f64 - self.zero_ns as f64) * 1e-9 * self.scale();
        let mut revisions = Vec::new();
        told(&mut self.estimator, now_s, &mut revisions);
        for revision in revisions {
            match revision {
                Revision::Child { child, settings } => self.events.push_back((Event::Known { child, settings }, at_ns)),
                Revision::Places { child, tasks } => {
                    if let Some(link) = self.link(child) {
                        link.say(&Frame::Places { tasks });
                    }
                }
                Revision::Subtree(subtree) => {
                    if let Up::Parent(link) = &mut self.up {
                        link.say(&Frame::Subtree(subtree));
                    }
                }
            }
        }
    }

    /// A task has left for a child, whole.
    pub(super) fn estimate_sent(&mut self, child: u32, task: u64, at_ns: u64) {
        let bytes = self.tasks.get(&task).map_or(0, |stored| stored.payload.len());
        let measured = if self.is_emulated() || bytes >= LEAST_MEASURED { bytes } else { 0 };
        self.estimate(at_ns, |estimator, now_s, revisions| {
            estimator.sent(child, measured as f64 * 1e-6, now_s, revisions);
        });
    }

    /// A task was computed, in one try, by what knows how much work it is.
    pub(super) fn estimate_computed(&mut self, task: u64, began_ns: u64, ended_ns: u64) {
        let counts = matches!(self.run.work, Work::Emulated { .. } | Work::Kernel { .. });
        let work = self.tasks.get(&task).map_or(0.0, |stored| stored.work);
        if !counts || work <= 0.0 {
            return;
        }
        if !self.is_emulated() {
            self.estimate(began_ns, |estimator, now_s, _| estimator.computes(now_s));
        }
        self.estimate(ended_ns, |estimator, now_s, revisions| estimator.computed(work, now_s, revisions));
    }

    /// What was seen, for the report.
    pub fn note_what_was_seen(&mut self) {
        let own = self.own();
        let (compute, ir) = (own.compute_per_s.get(), own.ir_receive_s_per_mb.get());
        let seen = self.estimator.seen();
        self.totals.seen = SeenNode {
            compute_per_s: seen.compute_per_s.beside(Some(compute)),
            ir_receive_s_per_mb: seen.ir_receive_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
            ..SeenNode::default()
        };
        let links = self.slots.iter().zip(&seen.children).filter_map(|(slot, child)| {
            let place = self.run.place(&slot.name)?;
            let node = &self.run.platform.nodes[place as usize];
            let ir = node.ir_send_s_per_mb.get();
            let seen = SeenNode {
                receive_limit_mb_per_s: child
                    .receive_limit_mb_per_s
                    .beside(node.receive_limit_mb_per_s.map(Quantity::get)),
                ir_send_s_per_mb: child.ir_send_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
                ..SeenNode::default()
            };
            Some(SeenLink { number: slot.number, seen })
        });
        self.totals.links = links.collect();
    }
}
