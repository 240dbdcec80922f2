//! Results on their way to the root: each node sends them to its parent over a link of its own, one at a time.
//!
//! The link is as fast as the node receives, in the opposite direction and at the same time, and uses none of the
//! parent's port. Its interference is that of the downward link: `ir_receive` at the node, `ir_send` at the parent.
//! Platforms give no separate rates for results.

use std::collections::VecDeque;

use crosswind_policy::farm::TaskId;
use crosswind_schema::platform::Loss;

use crate::inbox::News;
use crate::time::{Nanos, after, span};
use crate::trace::Activity;
use crate::world::World;

#[derive(Clone, Copy, Debug)]
struct Sending {
    task: TaskId,
    began: Nanos,
    /// Rate of the transfer, MB/ns.
    rate: f64,
}

/// A node's link to its parent, for results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uplink {
    sending: Option<Sending>,
    waiting: VecDeque<TaskId>,
}

impl Uplink {
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }
}

impl World<'_> {
    fn result_slot(&self, node: u32) -> u32 {
        (self.sites.len() + self.network.ports.len()) as u32 + node
    }

    pub fn begin_result(&mut self, node: u32, task: TaskId) {
        if node == self.tree.root {
            self.count_done(task);
            return;
        }
        if self.farm.result_size_mb <= 0.0 {
            self.result_arrives(node, task);
            return;
        }
        let uplink = &mut self.network.uplinks[node as usize];
        uplink.waiting.push_back(task);
        if uplink.sending.is_none() {
            self.next_result(node);
        }
    }

    fn next_result(&mut self, node: u32) {
        let Some(task) = self.network.uplinks[node as usize].waiting.pop_front() else { return };
        let (began, rate) = (self.now, self.sites[node as usize].link.receive_limit);
        self.network.uplinks[node as usize].sending = Some(Sending { task, began, rate });
        self.result_rate(node, rate);
        let ends = after(self.now, self.farm.result_size_mb / rate);
        self.agenda.at(ends, self.result_slot(node));
    }

    /// Applies the interference of a result link at both ends. A negative rate removes it.
    fn result_rate(&mut self, node: u32, rate: f64) {
        let link = &self.sites[node as usize].link;
        let (parent, mut at_parent) = (link.parent, link.ir_send * rate);
        let mut at_node = self.sites[node as usize].processor.ir_receive() * rate;
        if self.network.bends {
            let node = &self.farm.platform.nodes[node as usize];
            let bent = |losses: &[Loss]| rate.signum() * Loss::at(losses, rate.abs() * 1e9);
            if !node.send_losses.is_empty() {
                at_parent = bent(&node.send_losses);
            }
            if !node.receive_losses.is_empty() {
                at_node = bent(&node.receive_losses);
            }
        }
        for (at, loss) in [(node, at_node), (parent, at_parent)] {
            self.touch(at);
            let loss = self.sites[at as usize].processor.add_result_loss(loss);
            self.estimate(at, |estimator, now_s, _| estimator.results(loss, now_s));
        }
    }

    pub fn end_result(&mut self, node: u32) {
        let Some(Sending { task, began, .. }) = self.stop_result(node) else { return };
        if let Some(trace) = &mut self.recorded.trace {
            let parent = self.sites[node as usize].link.parent;
            trace.transfer(Activity::Result, parent, node, task, (began, self.now), self.farm.result_size_mb);
        }
        self.result_arrives(node, task);
        self.next_result(node);
    }

    fn stop_result(&mut self, node: u32) -> Option<Sending> {
        let sent = self.network.uplinks[node as usize].sending.take()?;
        self.result_rate(node, -sent.rate);
        Some(sent)
    }

    /// Drops all results of a node that is gone.
    pub fn drop_results(&mut self, node: u32) {
        if let Some(Sending { task, began, rate }) = self.stop_result(node)
            && let Some(trace) = self.recorded.trace.as_mut().filter(|_| self.now > began)
        {
            let (parent, mb) = (self.sites[node as usize].link.parent, rate * span(began, self.now));
            trace.transfer(Activity::Result, parent, node, task, (began, self.now), mb);
            trace.mark_cut();
        }
        self.network.uplinks[node as usize].waiting.clear();
        self.agenda.cancel(self.result_slot(node));
    }

    fn result_arrives(&mut self, node: u32, task: TaskId) {
        let link = &self.sites[node as usize].link;
        self.tell_later(link.latency, link.parent, News::Returned { child: link.child, task });
    }
}
