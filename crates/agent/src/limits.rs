//! Time limits of tasks, and tasks that are given up. A callable that exceeds its limit ends only with its process.

use crate::action::{Peer, TaskBytes, Trying};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::settings::Work;
use crate::task_store::Finished;

/// The result of a batch of calls that is given up, as an error text. Its user submits the calls one by one.
pub const SPLIT: &str = "the agent that computed a batch of calls was lost";

impl<P: TaskBytes> Agent<P> {
    /// Returns when an attempt exceeds its time limit, on the agent's own clock, ns. `None` without a limit.
    #[must_use]
    pub fn over_time_at(&self, trying: Trying) -> Option<u64> {
        let timeout_s = self.run.task_limits.timeout_s?;
        Some(trying.began_ns.saturating_add((timeout_s * 1e9) as u64))
    }

    /// Notifies the parent that this agent exits because an attempt exceeded its time limit, so that it is not taken
    /// for lost.
    pub fn end_over_time(&mut self, Trying { task, tried, .. }: Trying) {
        self.send_frame(Peer::Parent, Frame::OverTime { task, tried });
    }

    /// Removes a child that exits because a task exceeded its time limit. Its attempts count against that task only;
    /// the other tasks wait again.
    pub(crate) fn ends_over_time(&mut self, child: u32, task: u64, tried: u32, now_ns: u64) {
        let state = &self.children[child as usize];
        if state.left || !state.out.sent.contains(task) {
            self.lose(child, "it sent a frame that no child sends then", now_ns);
            return;
        }
        let name = state.name.clone();
        self.task_store.was_over_time(task, tried);
        let out = self.out_under(child);
        self.forget(child, false, now_ns);
        let message = format!(
            "task {task} was {} on {name}, which ended with it; {out} tasks that were out under it wait again",
            self.its_time()
        );
        self.record_event_of(name, "task-over-time", 1, message, now_ns);
    }

    fn its_time(&self) -> String {
        let option = if matches!(self.run.work, Work::Callable) { "task_timeout_s" } else { "--task-timeout" };
        format!("over its time of {} s ({option})", self.run.task_limits.timeout_s.unwrap_or_default())
    }

    /// Returns why a task is given up, as event code and message; `None` if it is not. Either several agents were lost
    /// while they computed it, or it exceeded its time limit too often, or its input can no longer be read, which is
    /// not the fault of the child that would get it.
    fn unfit(&self, task: u64) -> Option<(&'static str, String)> {
        if self.task_store.ends_children(task) {
            let most = crosswind_policy::farm::giving_up::MOST_LOST;
            let why = format!("task {task} was being computed {most} times when an agent was lost, and is given up");
            return Some(("task-given-up", why));
        }
        if let Some(tries) = self.task_store.tried_in_vain(task, self.run.task_limits.retries) {
            let why = format!("task {task} was {}, and is given up; tries: {tries}", self.its_time());
            return Some(("task-given-up", why));
        }
        let error = self.task_store.get(task)?.payload.missing()?;
        Some(("input-lost", format!("the input of task {task} cannot be read any more: {error}")))
    }

    /// Answers a task that is not computed any more, because it is given up or withdrawn. Returns whether that is so.
    pub(crate) fn is_answered_here(&mut self, task: u64) -> bool {
        if self.answer_withdrawn(task) {
            return true;
        }
        if self.task_store.is_batch(task) && self.task_store.ends_children(task) {
            let payload = P::of_text(SPLIT.into());
            self.task_store.finish(Finished { task, node: self.number, ok: false, payload });
            return true;
        }
        let Some((code, why)) = self.unfit(task) else { return false };
        self.give_up(task, code, why);
        true
    }

    fn give_up(&mut self, task: u64, code: &str, why: String) {
        self.record_event(code, Some(1), why.clone());
        self.task_store.finish(Finished { task, node: self.number, ok: false, payload: P::of_text(why) });
    }
}
