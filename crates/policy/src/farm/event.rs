//! Events and commands of a farm's node.

use super::settings::ChildSettings;

/// Number of a task: its index in the workload.
pub type TaskId = u64;

/// Number of a child: its index among its siblings in the platform's file. A child that joins gets the next number, and
/// numbers are not reused.
pub type Child = u32;

/// An event at a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run begins. Below the root, the node requests its first tasks.
    Started,
    /// A user gives the root `tasks` tasks, numbered from `first`.
    Given {
        first: TaskId,
        tasks: u64,
    },
    /// A complete task has arrived: its last byte came from the parent, or a user gave it to the root.
    Arrived {
        task: TaskId,
    },
    /// A child requests `tasks` more tasks.
    Requested {
        child: Child,
        tasks: u64,
    },
    /// The last byte of a task has left for a child, and the port is free.
    Sent {
        child: Child,
        task: TaskId,
    },
    /// A send has stopped at the end of a chunk, after [`Command::Hold`].
    Held {
        child: Child,
    },
    Computed {
        task: TaskId,
    },
    /// A task's result has arrived from a child.
    Returned {
        child: Child,
        task: TaskId,
    },
    /// More accurate settings of a child are known.
    Known {
        child: Child,
        settings: ChildSettings,
    },
    /// The parent sets how many tasks may be requested or waiting here from now on.
    Places {
        tasks: u64,
    },
    /// The parent, or the user at the root, announces approximately how many more tasks will arrive.
    RemainingHint {
        tasks: u64,
    },
    /// A child has joined. It gets the next number.
    Joined {
        child: ChildSettings,
    },
    /// A child is gone, and nothing more will come from it. A send to it is abandoned.
    Left {
        child: Child,
    },
    /// A child drains. Only a send in progress is completed.
    Draining {
        child: Child,
    },
    /// A child handed back a task that it had not begun, because it drains or nothing below it computes any more. It is
    /// sent no tasks until it requests some again.
    HandedBack {
        child: Child,
        task: TaskId,
    },
    /// This node must drain: it takes no more tasks, hands back those that wait, and finishes what it computes and what
    /// its children hold. The root cannot drain.
    Drain,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Send a child the approximate number of tasks that it will still get ([`Event::RemainingHint`]). It precedes the
    /// task that follows, which is included.
    HintRemaining { child: Child, tasks: u64 },
    /// Begin to send a task to a child, or resume a send that was held.
    Send {
        child: Child,
        task: TaskId,
        /// `None`: as fast as the links allow.
        limit_mb_per_s: Option<f64>,
    },
    /// Stop the send to a child at the end of its chunk and report [`Event::Held`], or [`Event::Sent`] if the chunk was
    /// the last.
    Hold { child: Child },
    /// Change the limit of the send to a child. `None`: as fast as the links allow.
    Limit {
        child: Child,
        /// Receive limit of the link, MB/s.
        limit_mb_per_s: Option<f64>,
    },
    /// Compute a task and report [`Event::Computed`].
    Compute { task: TaskId },
    /// Request `tasks` more tasks from the parent.
    Ask { tasks: u64 },
    /// Hand an unprocessed task back to the parent.
    HandBack { task: TaskId },
    /// Send a task's result to the parent; at the root, to the user.
    Return { task: TaskId },
}

/// Receives a node's commands, to store them or to execute them at once.
pub trait Commands {
    fn push(&mut self, command: Command);
}

impl Commands for Vec<Command> {
    #[inline]
    fn push(&mut self, command: Command) {
        Self::push(self, command);
    }
}
