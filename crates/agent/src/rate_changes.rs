//! Rate changes of an emulated platform in mid-run. Each node has the list of all changes from the start, and applies
//! those of its own processor and of its children's links when they are due.

use crosswind_schema::experiment::ChangeKind;

use crate::action::TaskBytes;
use crate::agent::{Agent, Processor};

impl<P: TaskBytes> Agent<P> {
    /// Applies the changes due by now. Returns when the next one is due; `None` before time 0 or after the last change.
    pub(crate) fn take_up_changes(&mut self, now_ns: u64) -> Option<u64> {
        if self.zero_ns == 0 {
            return None;
        }
        while let Some(&change) = self.changes.front() {
            let due = self.zero_ns + (change.at_s / self.scale() * 1e9) as u64;
            if due > now_ns {
                return Some(due);
            }
            self.changes.pop_front();
            let ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } = change.kind else { continue };
            let node = &self.run.platform.nodes[change.node as usize];
            let (name, limit) = (node.name.clone(), receive_limit_mb_per_s.map(|limit| node.reached(limit)));
            let mine = name == self.name;
            if let (true, Some(compute), Processor::Emulated(processor)) = (mine, compute_per_s, &mut self.processor) {
                processor.compute_at(compute, due);
            }
            if let Some(limit) = limit {
                if mine {
                    self.result_limit = limit;
                }
                self.children
                    .iter_mut()
                    .filter(|child| child.name == name)
                    .for_each(|child| child.link.receive_limit = limit);
                self.share(due);
            }
            if mine {
                self.record_event("rates-changed", None, format!("{name} {}", change.kind));
            }
        }
        None
    }
}
