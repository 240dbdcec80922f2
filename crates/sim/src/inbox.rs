//! Events to deliver to nodes at the current instant, in the order in which they arose.

use crosswind_policy::farm::{Child, Event, TaskId};

/// An event for one node. The frequent events are stored unboxed, to keep it small.
#[derive(Debug)]
pub(crate) enum News {
    Requested { child: Child, tasks: u64 },
    Arrived { task: TaskId },
    Returned { child: Child, task: TaskId },
    Other(Box<Event>),
}

impl News {
    #[inline]
    pub fn of(event: Event) -> Self {
        match event {
            Event::Requested { child, tasks } => Self::Requested { child, tasks },
            Event::Arrived { task } => Self::Arrived { task },
            Event::Returned { child, task } => Self::Returned { child, task },
            other => Self::Other(Box::new(other)),
        }
    }
}

/// Queue that is always emptied before time advances. A vector and a read position therefore suffice.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    news: Vec<(u32, News)>,
    read: usize,
}

impl Inbox {
    #[inline]
    pub fn push(&mut self, node: u32, news: News) {
        self.news.push((node, news));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.news.is_empty()
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u32, News)> {
        let Some((node, news)) = self.news.get_mut(self.read) else {
            self.news.clear();
            self.read = 0;
            return None;
        };
        self.read += 1;
        Some((*node, std::mem::replace(news, News::Arrived { task: 0 })))
    }
}
