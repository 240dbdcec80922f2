//! What nodes are to be told at the present instant, in the order in which it came about.

use crosswind_policy::farm::{Child, Event, TaskId};

/// What one node is to be told: the frequent events in few bytes.
#[derive(Debug)]
pub(crate) enum News {
    /// [`Event::Asked`].
    Asked {
        child: Child,
        tasks: u64,
    },
    /// [`Event::Arrived`].
    Arrived {
        task: TaskId,
    },
    /// [`Event::Returned`].
    Returned {
        child: Child,
        task: TaskId,
    },
    Other(Box<Event>),
}

impl News {
    #[inline]
    pub fn of(event: Event) -> Self {
        match event {
            Event::Asked { child, tasks } => Self::Asked { child, tasks },
            Event::Arrived { task } => Self::Arrived { task },
            Event::Returned { child, task } => Self::Returned { child, task },
            other => Self::Other(Box::new(other)),
        }
    }
}

/// A queue that is emptied before time goes on, so a list and how far it was read.
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
