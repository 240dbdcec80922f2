//! One send at a time, which nothing interrupts.

use super::event::{Child, TaskId};

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
