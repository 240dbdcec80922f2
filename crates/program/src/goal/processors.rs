//! A rank of a GOAL schedule with several processors: which operations are free, on which processor, and which message
//! belongs to which receive. It has no clock: the caller says what begins, ends and arrives.
//!
//! A rendezvous message *matches* when a processor begins to handle it, if its receive is posted by then. Otherwise it matches
//! when it has been handled and its receive is posted. Then its send ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::rank::asks_for;
use super::requirements::Requirements;
use super::{Act, Place, Schedule};

/// The part of an operation that occupies a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Calc {
        ns: u64,
    },
    /// `waits`: the send ends when the message has matched.
    Send {
        to: u32,
        tag: u64,
        bytes: u64,
        waits: bool,
    },
}

/// The send of a rendezvous message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub rank: u32,
    pub operation: u32,
}

/// A free operation that a processor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub operation: u32,
    pub work: Work,
    pub place: Place,
    /// Its position among the rank's operations that need a processor, in the order in which they became free.
    pub order: u32,
    /// Whether it was the first in the processor's queue.
    pub first: bool,
}

/// A message that has passed the rank's interface.
struct Message {
    id: u64,
    from: u32,
    tag: u64,
    /// Whether a processor has handled it.
    handled: bool,
    /// Its send, if that waits.
    sender: Option<Sender>,
}

pub struct RankProcessors {
    schedule: Arc<Schedule>,
    requirements: Requirements,
    /// Messages of more bytes are rendezvous.
    rendezvous_above: u64,
    /// Sends that wait for their messages to match: operation and receiver.
    waiting: Vec<(u32, u32)>,
    /// Sends of other ranks whose messages have matched since [`Self::matched`] was called.
    matched: Vec<Sender>,
    /// Free operations of each processor, in the order in which they became free, with their position in that order.
    queues: Vec<VecDeque<(u32, u32)>>,
    /// Receives without a message so far, in the order in which they were posted.
    posted: VecDeque<u32>,
    /// Messages without a receive so far, in the order in which they came.
    unexpected: VecDeque<Message>,
    /// Messages that were unexpected, have a receive now, and have not been handled, with the sends that wait for them to
    /// match.
    expected: Vec<(u64, u32, Option<Sender>)>,
    /// Processors whose queues have grown since [`Self::grown`] was called.
    grown: Vec<u8>,
}

impl RankProcessors {
    pub(super) fn new(schedule: Arc<Schedule>, rendezvous_above: u64) -> Self {
        let mut rank = Self {
            requirements: Requirements::new(Arc::clone(&schedule)),
            schedule,
            rendezvous_above,
            waiting: Vec::new(),
            matched: Vec::new(),
            queues: Vec::new(),
            posted: VecDeque::new(),
            unexpected: VecDeque::new(),
            expected: Vec::new(),
            grown: Vec::new(),
        };
        rank.release();
        rank
    }

    /// Returns the processors, by number, whose queues have grown since the last call.
    pub fn grown(&mut self) -> std::vec::Drain<'_, u8> {
        self.grown.drain(..)
    }

    /// Whether the first free operation of a processor computes.
    #[must_use]
    pub fn computes_next(&self, cpu: u8) -> bool {
        let first = self.queues.get(usize::from(cpu)).and_then(VecDeque::front);
        first.is_some_and(|&(_, at)| self.computes(at))
    }

    /// Returns the position in the order of [`Taken::order`] of the operation that [`Self::take`] would take.
    pub fn first(&self, cpu: u8, can_send: impl Fn(u8) -> bool) -> Option<u32> {
        let queue = self.queues.get(usize::from(cpu))?;
        queue.iter().find(|&&(_, at)| self.can_begin(at, &can_send)).map(|&(order, _)| order)
    }

    /// Takes the first free operation of a processor that can begin: one that computes, or a send whose interface `can_send`.
    pub fn take(&mut self, cpu: u8, can_send: impl Fn(u8) -> bool) -> Option<Taken> {
        let index = self.queues.get(usize::from(cpu))?.iter().position(|&(_, at)| self.can_begin(at, &can_send))?;
        let (order, operation) = self.queues[usize::from(cpu)].remove(index)?;
        let work = match self.schedule.acts[operation as usize] {
            Act::Calc { ns } => Work::Calc { ns },
            Act::Send { to, tag, bytes } => Work::Send { to, tag, bytes, waits: bytes > self.rendezvous_above },
            Act::Receive { .. } => return None,
        };
        Some(Taken { operation, work, place: self.schedule.place(operation), order, first: index == 0 })
    }

    fn computes(&self, at: u32) -> bool {
        matches!(self.schedule.acts[at as usize], Act::Calc { .. })
    }

    fn can_begin(&self, at: u32, can_send: impl Fn(u8) -> bool) -> bool {
        self.computes(at) || can_send(self.schedule.place(at).nic)
    }

    /// Returns the interfaces that the sends in a processor's queue need.
    pub fn interfaces(&self, cpu: u8) -> impl Iterator<Item = u8> {
        let queue = self.queues.get(usize::from(cpu)).into_iter().flatten();
        queue.map(|&(_, at)| self.schedule.place(at).nic)
    }

    /// Records that an operation has begun (`over`: ended).
    pub fn record(&mut self, operation: u32, over: bool) {
        self.requirements.record(operation, over);
        self.release();
    }

    /// Records that the last packet of a rendezvous message has been sent to `to`; its send waits from now on.
    pub fn waits(&mut self, operation: u32, to: u32) {
        self.waiting.push((operation, to));
    }

    /// Records that the message of a send has matched: the send has ended.
    pub fn has_matched(&mut self, operation: u32) {
        self.waiting.retain(|&(waiting, _)| waiting != operation);
        self.record(operation, true);
    }

    /// Takes the sends, of any rank, whose messages have matched here since the last call.
    pub fn matched(&mut self) -> Option<Sender> {
        self.matched.pop()
    }

    /// Returns the processor of the first posted receive that asks for a message. `None` if none is posted.
    #[must_use]
    pub fn receiver(&self, from: u32, tag: u64) -> Option<u8> {
        let at = self.posted.iter().find(|&&at| asks_for(self.schedule.acts[at as usize], from, tag))?;
        Some(self.schedule.place(*at).cpu)
    }

    /// Records that a whole message has passed the interface. `id`: any number that no other message has. Returns the
    /// receive that it belongs to, or `None` if none is posted. `sender`: its send, if that waits.
    pub fn passed(&mut self, id: u64, from: u32, tag: u64, sender: Option<Sender>) -> Option<u32> {
        let acts = &self.schedule.acts;
        if let Some(index) = self.posted.iter().position(|&at| asks_for(acts[at as usize], from, tag)) {
            return self.posted.remove(index);
        }
        self.unexpected.push_back(Message { id, from, tag, handled: false, sender });
        None
    }

    /// Records that a processor begins to handle a rendezvous message. `receive`: what [`Self::passed`] returned.
    pub fn begins_to_handle(&mut self, id: u64, receive: Option<u32>, sender: Sender) {
        if receive.is_some() {
            self.matched.push(sender);
        } else if let Some((_, _, sender)) = self.expected.iter_mut().find(|expected| expected.0 == id) {
            self.matched.extend(sender.take());
        }
    }

    /// Records that a message has been handled. `receive`: what [`Self::passed`] returned.
    pub fn handled(&mut self, id: u64, receive: Option<u32>) {
        if let Some(receive) = receive {
            self.record(receive, true);
        } else if let Some(index) = self.expected.iter().position(|expected| expected.0 == id) {
            let (_, receive, sender) = self.expected.swap_remove(index);
            self.matched.extend(sender);
            self.record(receive, true);
        } else if let Some(message) = self.unexpected.iter_mut().find(|message| message.id == id) {
            message.handled = true;
        }
    }

    /// Returns the number of operations that have not ended, and of messages that no receive asked for.
    #[must_use]
    pub fn result(&self) -> Vec<u64> {
        vec![u64::from(self.requirements.left()), self.unexpected.len() as u64]
    }

    /// Describes what the rank waits for. `None` if all operations have ended.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        (self.requirements.left() > 0).then(|| match self.waiting.first() {
            Some((_, to)) if self.posted.is_empty() => {
                format!("rank {to} to receive a message above rendezvous_above_bytes")
            }
            _ => super::rank::receives_named(&self.schedule.acts, &self.posted),
        })
    }

    fn release(&mut self) {
        let Self { schedule, requirements, queues, posted, unexpected, expected, grown, matched, .. } = self;
        let post = |at: u32| {
            let act = schedule.acts[at as usize];
            let index = unexpected.iter().position(|message| asks_for(act, message.from, message.tag));
            let message = index.and_then(|index| unexpected.remove(index));
            match &message {
                Some(message) if !message.handled => expected.push((message.id, at, message.sender)),
                Some(message) => matched.extend(message.sender),
                None => posted.push_back(at),
            }
            message.is_some_and(|message| message.handled)
        };
        requirements.release(post, |order, at| {
            let cpu = schedule.place(at).cpu;
            if queues.len() <= usize::from(cpu) {
                queues.resize_with(usize::from(cpu) + 1, VecDeque::new);
            }
            queues[usize::from(cpu)].push_back((order, at));
            grown.push(cpu);
        });
    }
}
