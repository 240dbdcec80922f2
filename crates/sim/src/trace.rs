//! Optional trace of what each node did and when, one row per activity.

use crate::time::{Nanos, seconds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Compute,
    /// A task was sent to a child. A task that was held has one row per part.
    Send,
    /// A result was sent to the parent. The row's node is the parent, its child the sender.
    Result,
}

/// Table of activities by column, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub kind: Vec<Activity>,
    /// Node, as its index in the platform's file.
    pub node: Vec<u32>,
    /// Child whose task or result was sent, as its index in the platform's file. `None` for computing.
    pub child: Vec<Option<u32>>,
    pub task: Vec<u64>,
    pub start_s: Vec<f64>,
    pub end_s: Vec<f64>,
    pub mb: Vec<f64>,
    pub work: Vec<f64>,
    /// Whether it was cut short because one of its nodes left.
    pub cut: Vec<bool>,
}

impl Trace {
    #[must_use]
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    pub(crate) fn compute(&mut self, node: u32, task: u64, span: (Nanos, Nanos), work: f64) {
        self.row(Activity::Compute, node, None, task, span, 0.0, work);
    }

    pub(crate) fn transfer(&mut self, kind: Activity, node: u32, child: u32, task: u64, span: (Nanos, Nanos), mb: f64) {
        self.row(kind, node, Some(child), task, span, mb, 0.0);
    }

    /// Marks the last activity as cut short.
    pub(crate) fn mark_cut(&mut self) {
        if let Some(cut) = self.cut.last_mut() {
            *cut = true;
        }
    }

    #[allow(clippy::too_many_arguments)] // a row's columns
    fn row(
        &mut self,
        kind: Activity,
        node: u32,
        child: Option<u32>,
        task: u64,
        span: (Nanos, Nanos),
        mb: f64,
        work: f64,
    ) {
        self.kind.push(kind);
        self.node.push(node);
        self.child.push(child);
        self.task.push(task);
        self.start_s.push(seconds(span.0));
        self.end_s.push(seconds(span.1));
        self.mb.push(mb);
        self.work.push(work);
        self.cut.push(false);
    }
}
