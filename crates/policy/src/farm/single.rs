//! A port that makes one send at a time, without preemption.

use super::event::{Child, TaskId};

/// The current send of the port.
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

    /// Drops the send to a child that left. Returns its task.
    pub fn abandon(&mut self, child: Child) -> Option<TaskId> {
        self.busy.take_if(|&mut (to, _)| to == child).map(|(_, task)| task)
    }
}
