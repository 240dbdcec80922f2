//! Tasks that are tried no more, and limits that a task's executor cannot keep: a function over its time ends only with its
//! process.

use crate::action::{Peer, TaskBytes, Trying};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::stock::Finished;

impl<P: TaskBytes> Agent<P> {
    /// When a try will be over its time, own clock; none: never.
    #[must_use]
    pub fn over_time_at(&self, trying: Trying) -> Option<u64> {
        let timeout_s = self.run.task_limits.timeout_s?;
        Some(trying.began_ns.saturating_add((timeout_s * 1e9) as u64))
    }

    /// This agent ends with a try that is over its time: the parent knows then that it was not lost.
    pub fn end_over_time(&mut self, Trying { task, tried, .. }: Trying) {
        self.say(Peer::Parent, Frame::OverTime { task, tried });
    }

    /// A child is about to end, since a task there is over its time: that costs the task its tries, and no other task
    /// anything.
    pub(crate) fn ends_over_time(&mut self, child: u32, task: u64, tried: u32, now_ns: u64) {
        let state = &self.children[child as usize];
        if state.left || !state.out.sent.contains(&task) {
            self.lose(child, "it said what no child says", now_ns);
            return;
        }
        let name = state.name.clone();
        self.stock.was_over_time(task, tried);
        let out = self.out_under(child);
        self.forget(child, false, now_ns);
        let message = format!(
            "task {task} was {} on {name}, which ended with it; {out} tasks that were out under it wait again",
            self.its_time()
        );
        self.happen_to(name, "task-over-time", 1, message, now_ns);
    }

    fn its_time(&self) -> String {
        format!("over its time of {} s (--task-timeout)", self.run.task_limits.timeout_s.unwrap_or_default())
    }

    /// Why a task is tried no more: it has perhaps ended several agents, each of which computed it when it was lost; or
    /// its input is gone, which is no fault of the child that would get it.
    pub(crate) fn unfit(&self, task: u64) -> Option<(&'static str, String)> {
        if self.stock.ends_children(task) {
            let most = crosswind_policy::farm::giving_up::MOST_LOST;
            let why = format!("task {task} was being computed {most} times when an agent was lost, and is given up");
            return Some(("task-given-up", why));
        }
        if let Some(tries) = self.stock.tried_in_vain(task, self.run.task_limits.retries) {
            let why = format!("task {task} was {}, and is given up; tries: {tries}", self.its_time());
            return Some(("task-given-up", why));
        }
        let error = self.stock.get(task)?.payload.missing()?;
        Some(("input-lost", format!("the input of task {task} cannot be read any more: {error}")))
    }

    pub(crate) fn give_up(&mut self, task: u64, code: &str, why: String) {
        self.happen(code, Some(1), why.clone());
        self.stock.finish(Finished { task, node: self.number, ok: false, payload: P::of_text(why) });
    }
}
