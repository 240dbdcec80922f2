//! The interface between an agent's logic and its driver. Inputs are frames received and the outcomes of transfers and
//! of work; outputs are [`Action`]s.

use std::fmt::Debug;
use std::sync::Arc;

use crate::frame::Frame;

/// The bytes of a task or a result, wherever they are stored. The agent counts and forwards them and never inspects
/// them.
pub trait TaskBytes: Clone + Debug {
    /// Wraps the error text that answers a task given up.
    fn of_text(text: String) -> Self;

    /// Returns a payload of `bytes` bytes without content.
    fn blank(bytes: u64) -> Self;

    fn bytes(&self) -> u64;

    /// Number of the bytes that are in this process's memory.
    fn in_memory(&self) -> u64;

    /// Returns why the bytes can no longer be read. `None` while they can.
    fn missing(&self) -> Option<String>;
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Parent,
    /// A child, by its number in the policy.
    Child(u32),
}

/// Direction of a transfer, with the data specific to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Task {
        /// Work units; 0 if unknown.
        work: f64,
    },
    Result {
        /// The node that computed it.
        node: u32,
        /// `true` for a result, `false` for an error text.
        ok: bool,
    },
}

/// Input from a link. A task or a result arrives as one item, with its whole body.
#[derive(Clone, Debug)]
pub enum Inbound<P> {
    /// A frame without a body.
    Frame(Frame),
    /// The first bytes of a task or a result have arrived.
    Begun {
        /// Rate at which the link is paced, MB/s of the platform. 0 if the link is not emulated.
        rate: f64,
    },
    Task {
        task: u64,
        /// Work units; 0 if unknown.
        work: f64,
        payload: P,
    },
    Result {
        task: u64,
        /// The node that computed it.
        node: u32,
        /// `true` for a result, `false` for an error text.
        ok: bool,
        payload: P,
    },
}

/// The outcome of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The last byte has left and the link is free.
    Sent,
    /// The transfer stopped at the end of a chunk.
    Held,
}

/// The end of a transfer, or the point at which it was held.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub task: u64,
    pub kind: Kind,
    pub outcome: Outcome,
    /// Time of the outcome, ns. A paced transfer ends at the time set by its pace, not when the driver notices.
    pub at_ns: u64,
    pub began_ns: u64,
    pub bytes: u64,
    /// Whether bytes that were due had to wait until the connection took them.
    pub waited: bool,
}

/// The outcome of computing a task, after all attempts.
#[derive(Debug)]
pub struct Worked<P> {
    pub task: u64,
    /// `true` for a result, `false` for an error text.
    pub ok: bool,
    /// The result, or the error text in UTF-8.
    pub output: P,
    /// Start of the first attempt, ns.
    pub began_ns: u64,
    /// End of the last attempt, ns.
    pub ended_ns: u64,
    /// Number of attempts, at least 1.
    pub tried: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trying {
    pub task: u64,
    /// Attempt number on this agent, from 1.
    pub tried: u32,
    pub began_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub bytes_per_ns: f64,
    /// Rate written in frames, MB/s of the platform. 0 if the link is not emulated.
    pub reported: f64,
}

/// An instruction to the driver. Actions are executed in the order in which they were issued.
#[derive(Clone, Debug)]
pub enum Action<P> {
    SendFrame {
        to: Peer,
        frame: Frame,
    },
    /// Queue a task or a result for sending, behind earlier ones on the same link. Its end is reported as a [`Done`].
    Send {
        to: Peer,
        task: u64,
        kind: Kind,
        payload: P,
        /// `None`: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
    },
    GoOn {
        child: u32,
        /// `None`: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
    },
    /// Hold the transfer at the end of its current chunk.
    Hold {
        child: u32,
        at_ns: u64,
    },
    /// Change the rate of the transfer.
    Pace {
        child: u32,
        /// `None`: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
        /// Whether to send the child the new rate, once the transfer has been announced to it.
        tell: bool,
    },
    /// Close a child's link. Frames that it still sends are ignored.
    Close {
        child: u32,
        bye: bool,
    },
    /// Queue a task for computing, behind earlier ones. Its end is reported as a [`Worked`]. What is queued for the parent
    /// by then must be sent before the work starts, because the work may end this process.
    Compute {
        task: u64,
        /// Work units; 0 if unknown.
        work: f64,
        input: P,
        /// The names of its input and of its result, separated by a 0 byte, if it has any.
        name: Option<Arc<[u8]>>,
        /// Whether it is a batch of calls, whose first outcomes may be passed on early.
        is_batch: bool,
    },
    /// Release bytes that are no longer needed.
    Free(P),
    /// Write a line to the log.
    Note(String),
    /// Write a line to the log unless it was written before.
    NoteOnce(String),
    /// The run has started (time 0).
    Begun,
}

/// How an agent's run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Bye,
    /// The link to the parent was lost, with the reason. The agent and its subtree start over.
    ParentLost(String),
    /// At the root: no agent is left that computes, and tasks are unfinished.
    AllLost(String),
}
