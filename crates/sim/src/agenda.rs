//! What happens next: for each processor, port and result link at most one time, and the messages under way.
//!
//! A change of rate moves the one entry instead of leaving a stale one behind. Ties: first scheduled, first served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crosswind_policy::farm::Event;
use crosswind_policy::heap::Heap;

use crate::time::Nanos;

/// What is next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// The entry of this number.
    Slot(u32),
    /// A message arrives.
    Message { node: u32, event: Event },
}

#[derive(Clone, Debug)]
struct Letter {
    at: (Nanos, u64),
    node: u32,
    event: Event,
}

impl PartialEq for Letter {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Letter {}

impl PartialOrd for Letter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Letter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

fn key(time: Nanos, counter: u64) -> u128 {
    (u128::from(time) << 64) | u128::from(counter)
}

pub(crate) struct Agenda {
    /// Time, then a counter, in one number.
    slots: Heap<u128>,
    letters: BinaryHeap<Reverse<Letter>>,
    counter: u64,
}

impl Agenda {
    pub fn new(slots: usize) -> Self {
        Self { slots: Heap::new(slots), letters: BinaryHeap::new(), counter: 0 }
    }

    #[inline]
    pub fn at(&mut self, time: Nanos, slot: u32) {
        self.counter += 1;
        self.slots.put(key(time, self.counter), slot);
    }

    #[inline]
    pub fn cancel(&mut self, slot: u32) {
        self.slots.remove(slot);
    }

    pub fn post(&mut self, time: Nanos, node: u32, event: Event) {
        self.counter += 1;
        self.letters.push(Reverse(Letter { at: (time, self.counter), node, event }));
    }

    /// Loses the messages that are under way to some nodes.
    pub fn lose(&mut self, is_lost: impl Fn(u32) -> bool) {
        self.letters.retain(|Reverse(letter)| !is_lost(letter.node));
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Next)> {
        let slot = self.slots.first();
        if let Some(Reverse(letter)) = self.letters.peek()
            && slot.is_none_or(|(at, _)| key(letter.at.0, letter.at.1) < at)
        {
            let Reverse(letter) = self.letters.pop()?;
            return Some((letter.at.0, Next::Message { node: letter.node, event: letter.event }));
        }
        let (key, slot) = self.slots.pop()?;
        Some(((key >> 64) as Nanos, Next::Slot(slot)))
    }
}
