//! One send at a time, which nothing interrupts.

use super::event::{Child, Command, TaskId};
use super::node::Node;

/// What the port is busy with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SinglePort {
    busy: Option<(Child, TaskId)>,
}

impl SinglePort {
    #[inline]
    pub fn is_free(self) -> bool {
        self.busy.is_none()
    }

    pub fn is_sending_to(self, child: Child) -> bool {
        self.busy.is_some_and(|(to, _)| to == child)
    }

    #[inline]
    pub fn begin(&mut self, child: Child, task: TaskId) {
        self.busy = Some((child, task));
    }

    #[inline]
    pub fn sent(&mut self, child: Child, task: TaskId) -> bool {
        let was = self.busy == Some((child, task));
        if was {
            self.busy = None;
        }
        was
    }

    /// The task that was on its way to a child that left.
    pub fn abandon(&mut self, child: Child) -> Option<TaskId> {
        self.busy.take_if(|&mut (to, _)| to == child).map(|(_, task)| task)
    }
}

impl Node {
    /// Begins the next send.
    #[inline]
    pub(crate) fn serve_single(&mut self, commands: &mut Vec<Command>) {
        if !self.single.is_free() || self.ready.is_empty() {
            return;
        }
        let Some((_, child)) = self.next_child() else { return };
        self.waiting.take(&mut self.children, child);
        self.foretell(child, commands);
        let Some(task) = self.ready.pop() else { return };
        self.lend(task, child);
        self.single.begin(child, task);
        self.sending += 1;
        commands.push(Command::Send { child, task, limit_mb_per_s: None });
    }
}
