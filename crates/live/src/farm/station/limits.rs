//! Limits of a task that its executor cannot keep: a function over its time ends only with its process, and a command's
//! memory is limited only where a control group can be made.

use super::{Processor, Station};
use crate::farm::executor::Trying;
use crate::farm::task_processes::memory::Groups;
use crosswind_agent::settings::Work;

impl Station {
    /// The try that is over its time by now and that only the end of this process ends; else when the one that is made will be.
    pub fn over_time(&self, now_ns: u64) -> (Option<Trying>, Option<u64>) {
        let (Some(timeout_s), Processor::Thread(thread)) = (self.run.task_limits.timeout_s, &self.processor) else {
            return (None, None);
        };
        let Some(trying) = thread.trying() else { return (None, None) };
        let due = trying.began_ns.saturating_add((timeout_s * 1e9) as u64);
        if due <= now_ns { (Some(trying), None) } else { (None, Some(due)) }
    }

    /// A child is about to end, since a task there is over its time: that costs the task its tries, and no other task
    /// anything.
    pub fn ends_over_time(&mut self, child: u32, task: u64, tried: u32, now_ns: u64) {
        let slot = &self.slots[child as usize];
        if slot.left || !slot.sent.contains(&task) {
            self.lose(child, "it said what no child says", now_ns);
            return;
        }
        let name = slot.name.clone();
        let tries = self.over_time.entry(task).or_default();
        *tries = tries.saturating_add(tried.max(1));
        let out = self.out_under(child);
        self.forget(child, now_ns);
        let message = format!(
            "task {task} was {} on {name}, which ended with it; {out} tasks that were out under it wait again",
            self.its_time()
        );
        self.happen_to(name, "task-over-time", 1, message, now_ns);
    }

    /// Why a task that was over its time is not tried again, if so.
    pub(super) fn tried_in_vain(&self, task: u64) -> Option<String> {
        let tries = self.over_time.get(&task).filter(|tries| **tries > self.run.retries)?;
        Some(format!("task {task} was {}, and is given up; tries: {tries}", self.its_time()))
    }

    fn its_time(&self) -> String {
        format!("over its time of {} s (--task-timeout)", self.run.task_limits.timeout_s.unwrap_or_default())
    }

    /// Says so where the memory of the commands that run here is not limited though it was to be.
    pub fn tell_of_memory(&mut self) {
        use crosswind_schema::units::Quantity as _;
        let (Work::Command { .. }, Some(bytes)) = (&self.run.work, self.run.task_limits.memory_bytes()) else { return };
        if self.own().compute_per_s.get() <= 0.0 {
            return;
        }
        if let Err(why) = Groups::find(bytes) {
            let name = &self.totals.name;
            let message = format!("the memory of tasks on {name} is not limited (--task-memory): {why}");
            self.happen("task-memory-unlimited", None, message);
        }
    }
}
