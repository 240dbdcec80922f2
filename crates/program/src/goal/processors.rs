//! A rank of a GOAL schedule with several processors: which operations are free, on which processor, and which message
//! belongs to which receive. It has no clock: the caller says what begins, ends and arrives.

use std::collections::VecDeque;
use std::sync::Arc;

use super::rank::asks_for;
use super::requirements::Requirements;
use super::{Act, Place, Schedule};

/// The part of an operation that occupies a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Calc { ns: u64 },
    Send { to: u32, tag: u64, bytes: u64 },
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
}

pub struct RankProcessors {
    schedule: Arc<Schedule>,
    requirements: Requirements,
    /// Free operations of each processor, in the order in which they became free, with their position in that order.
    queues: Vec<VecDeque<(u32, u32)>>,
    /// Receives without a message so far, in the order in which they were posted.
    posted: VecDeque<u32>,
    /// Messages without a receive so far, in the order in which they came.
    unexpected: VecDeque<Message>,
    /// Messages that were unexpected, have a receive now, and have not been handled.
    expected: Vec<(u64, u32)>,
    /// Processors whose queues have grown since [`Self::grown`] was called.
    grown: Vec<u8>,
}

impl RankProcessors {
    pub(super) fn new(schedule: Arc<Schedule>) -> Self {
        let mut rank = Self {
            requirements: Requirements::new(Arc::clone(&schedule)),
            schedule,
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
            Act::Send { to, tag, bytes } => Work::Send { to, tag, bytes },
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

    /// Returns the processor of the first posted receive that asks for a message. `None` if none is posted.
    #[must_use]
    pub fn receiver(&self, from: u32, tag: u64) -> Option<u8> {
        let at = self.posted.iter().find(|&&at| asks_for(self.schedule.acts[at as usize], from, tag))?;
        Some(self.schedule.place(*at).cpu)
    }

    /// Records that a whole message has passed the interface. `id`: any number that no other message has. Returns the
    /// receive that it belongs to, or `None` if none is posted.
    pub fn passed(&mut self, id: u64, from: u32, tag: u64) -> Option<u32> {
        let acts = &self.schedule.acts;
        if let Some(index) = self.posted.iter().position(|&at| asks_for(acts[at as usize], from, tag)) {
            return self.posted.remove(index);
        }
        self.unexpected.push_back(Message { id, from, tag, handled: false });
        None
    }

    /// Records that a message has been handled. `receive`: what [`Self::passed`] returned.
    pub fn handled(&mut self, id: u64, receive: Option<u32>) {
        if let Some(receive) = receive {
            self.record(receive, true);
        } else if let Some(index) = self.expected.iter().position(|expected| expected.0 == id) {
            let (_, receive) = self.expected.swap_remove(index);
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
        (self.requirements.left() > 0).then(|| super::rank::receives_named(&self.schedule.acts, &self.posted))
    }

    fn release(&mut self) {
        let Self { schedule, requirements, queues, posted, unexpected, expected, grown } = self;
        let post = |at: u32| {
            let act = schedule.acts[at as usize];
            let index = unexpected.iter().position(|message| asks_for(act, message.from, message.tag));
            let message = index.and_then(|index| unexpected.remove(index));
            match &message {
                Some(message) if !message.handled => expected.push((message.id, at)),
                Some(_) => {}
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
