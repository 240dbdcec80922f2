//! Tasks that the user withdraws, which tasks are being computed, and what is known of batches before they end.
//!
//! A withdrawn task stays where it waits. When the policy would have it computed or sent, it is answered at once instead.
//! So the policy sees a task that takes no time, and its ledgers stay what they are. A task that a node computes already
//! is not withdrawn.

use crate::action::{Action, Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::settings::Work;
use crate::task_store::Finished;

/// Time after which a node reports to its parent which task it computes, ns. Short tasks have ended by then.
const REPORT_AFTER_NS: u64 = 50_000_000;
/// The result of a withdrawn task, as an error text.
pub const WITHDRAWN: &str = "withdrawn before it began";

/// The last attempt of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub task: u64,
    /// Start, on the root's clock, ns.
    pub began_ns: u64,
    pub took_ns: u64,
}

/// What the root learned of its user's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Tasks that a node has begun.
    pub begun: Vec<u64>,
    /// Tasks that are withdrawn: they have no result.
    pub withdrawn: Vec<u64>,
    /// Batches, with the outcomes of their first calls. The calls after the one in progress are not computed there.
    pub partial: Vec<(u64, Vec<u8>)>,
    /// Commands that have ended. Their results follow.
    pub ran: Vec<Ran>,
}

/// The task that this node computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computing {
    pub task: u64,
    pub began_ns: u64,
    pub reported: bool,
}

impl<P: TaskBytes> Agent<P> {
    /// Withdraws a task unless a node computes it or has done so. At the root the answer is in [`Self::take_news`], or is
    /// the task's result. Returns false if there will be none, because this node does not have the task.
    pub fn recall(&mut self, task: u64, now_ns: u64) -> bool {
        self.now_ns = now_ns;
        if self.task_store.get(task).is_none() {
            return false;
        }
        if self.task_store.is_withdrawn(task) {
            self.report_withdrawn(task);
        } else if self.computing.is_some_and(|computing| computing.task == task) {
            self.report_begun(task);
        } else if !self.task_store.has_finished(task) {
            self.recall_waiting(task);
        }
        true
    }

    fn recall_waiting(&mut self, task: u64) {
        let holder = self.children.iter().position(|child| !child.left && child.out.sent.contains(task));
        let Some(child) = holder else {
            self.withdraw(task);
            return;
        };
        self.task_store.recall(task);
        // A child knows only tasks that have arrived whole.
        if self.children[child].out.sending.is_none_or(|sending| sending.task != task) {
            self.send_frame(Peer::Child(child as u32), Frame::Recall { task });
        }
    }

    /// At the root: returns what happened to the user's tasks since the last call.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Number of tasks here that are not withdrawn and whose result has not been passed on.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.task_store.wanted()
    }

    /// Marks a task of this node as withdrawn.
    pub(crate) fn withdraw(&mut self, task: u64) {
        if let Some(input) = self.task_store.withdraw(task) {
            self.act(Action::Free(input));
        }
        self.report_withdrawn(task);
    }

    /// Answers a task as one that is withdrawn, if it is.
    pub(crate) fn answer_withdrawn(&mut self, task: u64) -> bool {
        if !self.task_store.is_withdrawn(task) {
            return false;
        }
        let payload = P::of_text(WITHDRAWN.into());
        self.task_store.finish(Finished { task, node: self.number, ok: false, payload });
        true
    }

    /// Withdraws the tasks that a child, which is gone, was asked to give back.
    pub(crate) fn withdraw_recalled(&mut self, child: usize) {
        let held: Vec<u64> = self.children[child].out.sent.iter().collect();
        for task in held {
            if self.task_store.is_recalling(task) {
                self.withdraw(task);
            }
        }
    }

    /// Handles a child's answer that a task was withdrawn in its subtree. Others than those it holds are ignored.
    pub(crate) fn on_recalled(&mut self, child: usize, task: u64) {
        if self.children[child].out.sent.contains(task) && !self.task_store.is_withdrawn(task) {
            self.withdraw(task);
        }
    }

    /// Handles a child's word that a node of its subtree computes a task.
    pub(crate) fn on_begun(&mut self, child: usize, task: u64) {
        if self.children[child].out.sent.contains(task) {
            self.task_store.goes_on(task);
            self.report_begun(task);
        }
    }

    /// Passes on the outcomes of a batch's first calls, once.
    pub fn pass_partial(&mut self, task: u64, outcomes: Vec<u8>) {
        if !self.task_store.passes_partial(task) {
            return;
        }
        if self.root {
            self.news.partial.push((task, outcomes));
        } else {
            self.send_frame(Peer::Parent, Frame::Partial { task, outcomes });
        }
    }

    /// Handles a child's outcomes of a batch's first calls. Others than those of tasks that it holds are ignored.
    pub(crate) fn on_partial(&mut self, child: usize, task: u64, outcomes: Vec<u8>) {
        if self.children[child].out.sent.contains(task) {
            self.pass_partial(task, outcomes);
        }
    }

    /// Passes on when this node ran a command, in its own time, ns.
    pub fn pass_ran(&mut self, task: u64, (began_ns, ended_ns): (u64, u64)) {
        let began_ns_at_root = self.clock.root_ns(began_ns);
        self.pass_on_ran(Ran { task, began_ns: began_ns_at_root, took_ns: ended_ns.saturating_sub(began_ns) });
    }

    fn pass_on_ran(&mut self, ran: Ran) {
        if self.root {
            self.news.ran.push(ran);
        } else {
            let Ran { task, began_ns, took_ns } = ran;
            self.send_frame(Peer::Parent, Frame::Ran { task, began_ns, took_ns });
        }
    }

    /// Handles a child's word on a command. Others than those it holds are ignored.
    pub(crate) fn on_ran(&mut self, child: usize, ran: Ran) {
        if self.children[child].out.sent.contains(ran.task) {
            self.pass_on_ran(ran);
        }
    }

    /// Reports to the parent which task this node computes, [`REPORT_AFTER_NS`] after its start. Returns when that is due.
    pub(crate) fn report_computing(&mut self, now_ns: u64) -> Option<u64> {
        if !matches!(self.run.work, Work::Callable) {
            return None;
        }
        let computing = self.computing.as_mut().filter(|computing| !computing.reported)?;
        let due = computing.began_ns + REPORT_AFTER_NS;
        if due > now_ns {
            return Some(due);
        }
        computing.reported = true;
        let task = computing.task;
        self.report_begun(task);
        None
    }

    fn report_begun(&mut self, task: u64) {
        if self.root {
            self.news.begun.push(task);
        } else {
            self.send_frame(Peer::Parent, Frame::Begun { task });
        }
    }

    fn report_withdrawn(&mut self, task: u64) {
        if self.root {
            self.news.withdrawn.push(task);
        } else {
            self.send_frame(Peer::Parent, Frame::Recalled { task });
        }
    }
}
