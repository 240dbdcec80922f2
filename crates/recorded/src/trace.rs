//! What one rank did, on its own clock: the common form of all readers.

use std::sync::Arc;

/// Identity of an operation in which several ranks take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The `number`-th collective operation of a communicator.
    Collective { comm: Arc<str>, number: u32 },
    /// The `number`-th message between two ranks with this tag.
    Message { comm: Arc<str>, from: u32, to: u32, tag: i64, number: u32 },
}

/// The part that a rank takes in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Needs all other ranks, and all need it: allreduce, barrier.
    All,
    /// Others need it, and it needs none: the root of a broadcast, the other ranks of a reduction, a sender.
    Gives,
    /// It needs those that give: the other ranks of a broadcast, the root of a reduction, a receiver.
    Takes,
    /// It needs those at lower places of the communicator, and those at higher ones need it: a scan. Its place.
    Prefix(u32),
}

impl Part {
    /// Whether a rank with this part needs another in the same operation.
    #[must_use]
    pub fn needs(self, other: Self) -> bool {
        match (self, other) {
            (Self::Gives, _) | (_, Self::Takes) => false,
            (Self::Prefix(own), Self::Prefix(place)) => place < own,
            _ => true,
        }
    }

    /// Returns a number that is equal where ranks do the same, whatever their places.
    #[must_use]
    pub fn code(self) -> u64 {
        match self {
            Self::All => 0,
            Self::Gives => 1,
            Self::Takes => 2,
            Self::Prefix(_) => 3,
        }
    }
}

/// A rank's part in an operation, with the times at which it began and ended there.
#[derive(Clone, Debug)]
pub struct Event {
    pub key: Key,
    pub part: Part,
    /// Name of the operation, such as `all_reduce`.
    pub name: Arc<str>,
    /// Distinguishes sizes and shapes. Equal on all ranks of a collective operation. Bytes, if [`Trace::sized`].
    pub size: u64,
    /// Arrival: the call, or for a nonblocking operation its start.
    pub start: i64,
    /// From when on the rank did nothing but wait for it.
    pub since: i64,
    pub end: i64,
    /// Operations of a rank with the same number here end in one call, so only the last of them says how long it took.
    pub together: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The rank arrives at an operation and continues.
    Post,
    /// The rank, which began an operation before, is in a call again: if it is late ([`Trace::late`]), it arrives only now.
    Enter,
    /// The rank waits until the operation is over for it.
    Wait,
    /// The sender waits until its message has been received.
    WaitSent,
    Step,
}

/// One action of a rank. The time since the action before is computing.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    pub kind: Kind,
    /// Index in [`Trace::events`]; unused for a step.
    pub event: u32,
    pub start: i64,
    pub end: i64,
    /// Of the computing before it, ns in which operators ran, or for which the thread had a CPU. Negative: unknown.
    pub ran: i64,
}

/// The recording of one rank: its operations, and its actions in order of time.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the file, for messages.
    pub source: String,
    pub rank: Option<u32>,
    /// Number of ranks of the program.
    pub world: Option<u32>,
    pub acts: Vec<Act>,
    pub events: Vec<Event>,
    pub began: i64,
    pub ended: i64,
    /// For each operation, whether the rank arrived only where it next waited; empty if it never did.
    pub(crate) late: Vec<bool>,
    /// The sizes of its events are bytes.
    pub(crate) sized: bool,
    /// Operations run beside the computing, so lateness after one is computing, not part of the operation.
    pub beside: bool,
    pub notes: Vec<String>,
    /// Why no verdict can rest on it.
    pub refusals: Vec<String>,
    /// Ranks with the same host have the same clock.
    pub host: Option<Arc<str>>,
    /// Intervals in which the rank was kept from running, and by what, in order of time.
    pub away: Vec<Away>,
    /// The kernel's trace was read: when the rank was off its processor otherwise, it slept.
    pub(crate) watched: bool,
    /// It was never recorded: a schedule says what the rank does.
    pub(crate) scheduled: bool,
}

/// An interval in which a rank was kept from running.
#[derive(Clone, Debug)]
pub struct Away {
    pub start: i64,
    pub end: i64,
    /// A phrase: `preempted by sshd (812)`.
    pub cause: Arc<str>,
    pub by: By,
}

/// What had the processor of a rank that was kept from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A process that is no part of the program, or none.
    Other,
    /// Another rank.
    Rank,
    /// Crosswind, which recorded the program: no rank is to blame for it.
    Recorder,
}

impl Trace {
    /// Appends an action. An action that begins before the last one ended begins when that one ended.
    pub fn push(&mut self, kind: Kind, event: u32, start: i64, end: i64, ran: i64) {
        let before = self.acts.last().map_or(self.began, |act| act.end);
        let start = start.max(before);
        self.acts.push(Act { kind, event, start, end: end.max(start), ran });
        self.ended = self.ended.max(end.max(start));
    }

    /// Whether the rank arrives at an operation in an action.
    #[must_use]
    pub fn arrives(&self, act: &Act) -> bool {
        let is_late = || self.late.get(act.event as usize).copied().unwrap_or_default();
        match act.kind {
            Kind::Post => !is_late(),
            Kind::Enter => is_late(),
            Kind::Wait | Kind::WaitSent | Kind::Step => false,
        }
    }

    /// Appends an operation that the rank stays in until it is over.
    pub fn push_blocking(&mut self, event: Event, ran: i64) {
        let (start, end, part) = (event.start, event.end, event.part);
        let at = self.events.len() as u32;
        self.events.push(event);
        match part {
            Part::Gives => {
                self.push(Kind::Post, at, start, start, ran);
                self.push(Kind::WaitSent, at, start, end, -1);
            }
            Part::All | Part::Takes | Part::Prefix(_) => {
                self.push(Kind::Post, at, start, start, ran);
                self.push(Kind::Wait, at, start, end, -1);
            }
        }
    }

    /// Returns the rank's number; readers and [`crate::judge()`] make sure that there is one.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.rank.unwrap_or_default()
    }
}
