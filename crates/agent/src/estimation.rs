//! Online estimation of rates and interference. Passes the policy's estimator what happens and when, and forwards its
//! revisions to the node concerned: this node's policy, a child or the parent.

use crosswind_policy::farm::Event;
use crosswind_policy::farm::estimate::{Estimator, Revision, observing};
use crosswind_schema::run::ObservedNode;
use crosswind_schema::units::Quantity;

use crate::action::{Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::record::ObservedLink;
use crate::settings::Work;

impl<P: TaskBytes> Agent<P> {
    /// Calls `told` with the estimator, the time since time 0 in platform seconds, and a list for revisions; then
    /// forwards the revisions. `at_ns` is on the agent's own clock.
    pub(crate) fn estimate(&mut self, at_ns: u64, told: impl FnOnce(&mut Estimator, f64, &mut Vec<Revision>)) {
        let now_s = (at_ns as f64 - self.zero_ns as f64) * 1e-9 * self.scale();
        let mut revisions = Vec::new();
        told(&mut self.estimator, now_s, &mut revisions);
        for revision in revisions {
            match revision {
                Revision::Child { child, settings } => self.events.push_back((Event::Known { child, settings }, at_ns)),
                Revision::Places { child, tasks } => {
                    self.say(Peer::Child(child), Frame::Places { tasks });
                }
                Revision::Subtree(subtree) => {
                    self.say(Peer::Parent, Frame::Subtree(subtree));
                }
            }
        }
    }

    /// Records that the last byte of a task has left for a child.
    pub(crate) fn estimate_sent(&mut self, child: u32, task: u64, at_ns: u64) {
        let bytes = self.stock.get(task).map_or(0, |stored| stored.payload.bytes());
        let measured = if self.is_emulated() { bytes } else { observing::measured_bytes(bytes) };
        self.estimate(at_ns, |estimator, now_s, revisions| {
            estimator.sent(child, measured as f64 * 1e-6, now_s, revisions);
        });
    }

    /// Records a task that was computed in one attempt, if its amount of work is meaningful.
    pub(crate) fn estimate_computed(&mut self, task: u64, began_ns: u64, ended_ns: u64) {
        let known = matches!(self.run.work, Work::Emulated { .. } | Work::Kernel { .. });
        let work = self.stock.work(task);
        if !observing::measures_processor(known, work) {
            return;
        }
        if !self.is_emulated() {
            self.estimate(began_ns, |estimator, now_s, _| estimator.computes(now_s));
        }
        self.estimate(ended_ns, |estimator, now_s, revisions| estimator.computed(work, now_s, revisions));
    }

    /// Copies the estimates into the totals of the report.
    pub(crate) fn note_what_was_seen(&mut self) {
        let own = self.own();
        let (compute, ir) = (own.compute_per_s.get(), own.ir_receive_s_per_mb.get());
        let seen = self.estimator.seen();
        self.account.totals.seen = ObservedNode {
            compute_per_s: seen.compute_per_s.beside(Some(compute)),
            ir_receive_s_per_mb: seen.ir_receive_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
            ..ObservedNode::default()
        };
        let links = self.children.iter().zip(&seen.children).filter_map(|(slot, seen)| {
            let place = self.layout.place(&slot.name)?;
            let node = &self.run.platform.nodes[place as usize];
            let ir = node.ir_send_s_per_mb.get();
            let seen = ObservedNode {
                receive_limit_mb_per_s: seen
                    .receive_limit_mb_per_s
                    .beside(node.receive_limit_mb_per_s.map(Quantity::get)),
                ir_send_s_per_mb: seen.ir_send_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
                ..ObservedNode::default()
            };
            Some(ObservedLink { number: slot.number, seen })
        });
        self.account.totals.links = links.collect();
    }
}
