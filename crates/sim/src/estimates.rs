//! Estimates that nodes form during a run, and the revisions that follow from them, where the policy adapts.
//!
//! A child's report on its subtree reaches the parent at once, whatever the latency. Changes of buffer sizes are sent
//! as messages like everything else.

use crosswind_policy::farm::estimate::{Estimator, Observed, Revision};
use crosswind_policy::farm::{Basis, Child, Event};

use crate::inbox::News;
use crate::outcome::NodeObserved;
use crate::time::seconds;
use crate::world::World;

impl World<'_> {
    /// Updates a node's estimator and applies the revisions that result.
    #[inline]
    pub fn estimate(&mut self, node: u32, update: impl FnOnce(&mut Estimator, f64, &mut Vec<Revision>)) {
        if let Some(estimator) = self.adaptation.estimators.get_mut(node as usize) {
            update(estimator, seconds(self.now), &mut self.adaptation.revisions);
            if !self.adaptation.revisions.is_empty() {
                self.take_up_revisions(node);
            }
        }
    }

    fn take_up_revisions(&mut self, mut node: u32) {
        loop {
            let mut up = None;
            for revision in std::mem::take(&mut self.adaptation.revisions) {
                match revision {
                    Revision::Child { child, settings } => {
                        self.inbox.push(node, News::of(Event::Known { child, settings }));
                    }
                    Revision::Places { child, tasks } => {
                        self.message_to_child(node, child, Event::Places { tasks });
                    }
                    Revision::Subtree(subtree) => up = Some(subtree),
                }
            }
            let Some(subtree) = up else { return };
            let link = &self.sites[node as usize].link;
            let child = link.child;
            node = link.parent;
            self.adaptation.estimators[node as usize].on_subtree(child, subtree, &mut self.adaptation.revisions);
        }
    }

    /// Handles the departure of a node: its parent's estimator drops it.
    pub fn estimates_leave(&mut self, node: u32, parent: u32, child: Child) {
        if self.adaptation.estimators.is_empty() {
            return;
        }
        for n in self.tree.below(node) {
            self.adaptation.estimators[n as usize].receives_nothing();
        }
        self.estimate(parent, |estimator, _, revisions| estimator.left(child, revisions));
    }

    /// Handles a node that joins with its subtree: their estimators, and the parent's entry for the node, restart from
    /// the platform's file.
    pub fn estimates_join(&mut self, node: u32, parent: u32) {
        if self.adaptation.estimators.is_empty() {
            return;
        }
        let (platform, farm_options) = (self.farm.platform, &self.farm.farm_options);
        let basis = Basis::of(platform, self.tree, farm_options);
        for n in self.tree.below(node) {
            self.adaptation.estimators[n as usize] = Estimator::of_node(platform, self.tree, farm_options, &basis, n);
        }
        self.adaptation.estimators[parent as usize].joined(platform, self.tree, farm_options, &basis, node);
    }

    /// Returns what was observed of each node, by itself and by its parent.
    pub fn seen(&self) -> Vec<NodeObserved> {
        let seen: Vec<Observed> = self.adaptation.estimators.iter().map(Estimator::seen).collect();
        let of_node = |(n, own): (usize, &Observed)| {
            let link = &self.sites[n].link;
            let above = (link.parent as usize != n).then(|| &seen[link.parent as usize].children[link.child as usize]);
            NodeObserved {
                compute_per_s: own.compute_per_s,
                ir_receive_s_per_mb: own.ir_receive_s_per_mb,
                receive_limit_mb_per_s: above.map(|link| link.receive_limit_mb_per_s),
                ir_send_s_per_mb: above.and_then(|link| link.ir_send_s_per_mb),
            }
        };
        seen.iter().enumerate().map(of_node).collect()
    }
}
