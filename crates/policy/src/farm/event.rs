//! What happens to a node of a farm, and what it says then.

use super::settings::ChildSettings;

/// Number of a task: its place in the workload, from 0.
pub type TaskId = u64;

/// Number of a child: its place among its siblings in the platform's file. One that joins gets the next number, and no
/// number is used again.
pub type Child = u32;

/// What happens to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run begins: below the root, a node asks for its first tasks.
    Started,
    /// A user gives so many tasks to the root, numbered from `first`.
    Given {
        /// Number of the first.
        first: TaskId,
        tasks: u64,
    },
    /// A whole task is here: the last byte came from the parent, or a user gave it to the root.
    Arrived {
        task: TaskId,
    },
    /// A child has room for so many more tasks.
    Asked {
        child: Child,
        tasks: u64,
    },
    /// The last byte of a task has left for a child, and the port is free.
    Sent {
        child: Child,
        task: TaskId,
    },
    /// A send has stopped at the end of a chunk, as [`Command::Hold`] said.
    Held {
        child: Child,
    },
    Computed {
        task: TaskId,
    },
    /// A task's result came up from a child.
    Returned {
        child: Child,
        task: TaskId,
    },
    /// More is known of a child than before.
    Known {
        child: Child,
        settings: ChildSettings,
    },
    /// The parent says how many tasks may be asked for or waiting here from now on.
    Places {
        tasks: u64,
    },
    /// The parent, or the user at the root, says how many tasks are still to come here, about.
    RemainingHint {
        tasks: u64,
    },
    /// A child joined: it gets the next number.
    Joined {
        /// What is known of it.
        child: ChildSettings,
    },
    /// A child is gone, and nothing more will come from it. A send to it is abandoned.
    Left {
        child: Child,
    },
    /// A child drains: nothing more is to be sent to it, but for the end of what is on its way.
    Draining {
        child: Child,
    },
    /// A child gave a task back which it had not begun: it drains, or nothing below it computes any more. It takes no more until it
    /// asks again.
    HandedBack {
        child: Child,
        task: TaskId,
    },
    /// This node is to drain: it takes no more tasks, hands back those that wait, and finishes what it computes and what is
    /// out under its children. The root cannot.
    Drain,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Tell a child how many tasks are still to come to it, about: [`Event::RemainingHint`]. Before the task that follows, which is
    /// counted.
    HintRemaining {
        /// The child that is told.
        child: Child,
        tasks: u64,
    },
    /// Begin to send a task to a child, or go on with it where it was held.
    Send {
        child: Child,
        task: TaskId,
        /// No faster than this; none: as fast as the links allow.
        limit_mb_per_s: Option<f64>,
    },
    /// Stop the send to a child at the end of its chunk, and say [`Event::Held`]. If the chunk was the last: [`Event::Sent`].
    Hold { child: Child },
    /// Go on with the send to a child no faster than this; none: as fast as the links allow.
    Limit {
        child: Child,
        /// MB/s.
        limit_mb_per_s: Option<f64>,
    },
    /// Compute a task, and say [`Event::Computed`].
    Compute { task: TaskId },
    /// Ask the parent for so many more tasks.
    Ask { tasks: u64 },
    /// Give a task back to the parent, as it came.
    HandBack { task: TaskId },
    /// A task's result goes to the parent; at the root, to the user.
    Return { task: TaskId },
}

/// Where a node's commands go: kept in their order, or carried out as they come.
pub trait Commands {
    fn push(&mut self, command: Command);
}

impl Commands for Vec<Command> {
    #[inline]
    fn push(&mut self, command: Command) {
        Self::push(self, command);
    }
}
