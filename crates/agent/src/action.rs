//! What passes between an agent's logic and what drives it: what came over links, what became of transfers and of work; and
//! what is to be done.

use std::fmt::Debug;

use crate::frame::Frame;

/// A task's or a result's bytes, wherever they lie: the agent counts them and hands them on, and never looks inside.
pub trait TaskBytes: Clone + Debug {
    /// A text, as the answer of a task that is given up.
    fn of_text(text: String) -> Self;

    /// So many bytes of no meaning.
    fn blank(bytes: u64) -> Self;

    fn bytes(&self) -> u64;

    /// How many of them are in this process's memory.
    fn in_memory(&self) -> u64;

    /// Why they cannot be read any more, where that is so.
    fn missing(&self) -> Option<String>;
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Parent,
    /// A child, by its number in the policy.
    Child(u32),
}

/// Which way a transfer goes, and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Task {
        /// Work units; 0 where not known.
        work: f64,
    },
    Result {
        /// The node that computed it.
        node: u32,
        /// Whether it is a result, not an error's text.
        ok: bool,
    },
}

/// What came over a link, a body whole.
#[derive(Clone, Debug)]
pub enum Heard<P> {
    /// A frame without a body.
    Said(Frame),
    /// A task or a result has begun to come.
    Begun {
        /// MB/s of the platform, where the link is emulated; else 0.
        rate: f64,
    },
    Task {
        task: u64,
        /// Work units; 0 where not known.
        work: f64,
        payload: P,
    },
    Result {
        task: u64,
        /// The node that computed it.
        node: u32,
        /// Whether it is a result, not an error's text.
        ok: bool,
        payload: P,
    },
}

/// What became of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The last byte has left and the link is free.
    Sent,
    /// It stands at the end of a chunk.
    Held,
}

/// A transfer's end, or its stop.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub task: u64,
    pub kind: Kind,
    /// What became of it.
    pub outcome: Outcome,
    /// When, by the pace where there is one.
    pub at_ns: u64,
    pub began_ns: u64,
    /// Bytes moved since then.
    pub bytes: u64,
}

/// A task that was worked on.
#[derive(Debug)]
pub struct Worked<P> {
    pub task: u64,
    /// Whether the answer is a result, not an error's text.
    pub ok: bool,
    /// The result, or the text in UTF-8.
    pub output: P,
    /// When the first try began.
    pub began_ns: u64,
    /// When the last one ended.
    pub ended_ns: u64,
    /// How often it was tried.
    pub tried: u32,
}

/// A try that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trying {
    pub task: u64,
    /// The how manieth it is here.
    pub tried: u32,
    pub began_ns: u64,
}

/// How fast a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub bytes_per_ns: f64,
    /// MB/s of the platform: what frames say; 0: the link is not emulated.
    pub told: f64,
}

/// What an agent wants done, in this order.
#[derive(Clone, Debug)]
pub enum Action<P> {
    Say {
        to: Peer,
        frame: Frame,
    },
    /// Begin to send a task or a result, behind those on the same link; its end is a [`Done`].
    Send {
        to: Peer,
        task: u64,
        kind: Kind,
        /// Its bytes.
        payload: P,
        /// How fast; none: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
    },
    /// Go on with the transfer that is held.
    GoOn {
        child: u32,
        /// How fast; none: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
    },
    /// Hold the transfer at the end of its chunk.
    Hold {
        child: u32,
        at_ns: u64,
    },
    /// Change the rate of the transfer.
    Pace {
        child: u32,
        /// How fast; none: as fast as the link allows.
        rate: Option<Rate>,
        at_ns: u64,
        /// Whether the child is told, once it knows of the transfer.
        tell: bool,
    },
    /// Close a child's link; what it still sends is not heard.
    Close {
        child: u32,
        bye: bool,
    },
    /// Work on a task, behind those given before; its end is a [`Worked`].
    Compute {
        task: u64,
        /// Work units; 0 where not known.
        work: f64,
        input: P,
        /// Whether what was said to the parent must be on its way first: the work may end this process.
        told: bool,
    },
    /// Bytes that are not needed any more.
    Free(P),
    /// A line for the log.
    Note(String),
    /// A line for the log, if it does not stand there.
    NoteOnce(String),
    /// Time 0 has come.
    Begun,
}

/// How an agent's run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Bye,
    /// The parent is gone, and why; below it begins again.
    ParentLost(String),
    /// The root: no agent is left, and tasks are.
    AllLost(String),
}
