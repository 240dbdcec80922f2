//! Event queue of the farm simulation: at most one timer per processor, port and result link, and the messages in
//! transit.
//!
//! A rate change moves a slot's only entry, so no stale entries remain. Ties are served in scheduling order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::inbox::News;
use crate::time::Nanos;
use crate::tournament::{NO_KEY, Tournament};

const NO_LEAF: u32 = u32::MAX;
/// Slots kept outside the tournament because nearly every event changes them. Their leaves start at [`FIRST_APART`].
const APART: usize = 2;
const FIRST_APART: u32 = NO_LEAF - APART as u32;

#[derive(Debug)]
pub(crate) enum Next {
    /// The timer of this slot has expired.
    Slot(u32),
    Message {
        node: u32,
        news: News,
    },
}

#[derive(Debug)]
struct Letter {
    at: (Nanos, u64),
    node: u32,
    news: News,
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

pub(crate) struct Agenda {
    /// Key of each occupied leaf: time, then a counter, then the slot, packed into one number.
    keys: Tournament,
    /// Keys of the slots outside the tournament.
    apart: [u128; APART],
    has_apart: bool,
    /// Number of low bits of a key that hold the slot.
    slot_bits: u32,
    /// The leaf of each slot, or [`NO_LEAF`].
    leaves: Vec<u32>,
    /// Freed leaves. They are reused first, so the tournament stays as small as the number of pending entries.
    free: Vec<u32>,
    /// Leaves used so far, including those in `free`.
    taken: u32,
    /// The slot popped last and its leaf. Another slot may take the leaf before the next pop.
    over: Option<(u32, u32)>,
    letters: BinaryHeap<Reverse<Letter>>,
    counter: u64,
}

impl Agenda {
    /// Creates an agenda of `slots` slots. Those in `apart`, if any, are kept outside the tournament because nearly
    /// every event changes them.
    pub fn new(slots: usize, apart: Option<[u32; APART]>) -> Self {
        let mut leaves = vec![NO_LEAF; slots];
        for (slot, leaf) in apart.into_iter().flatten().zip(FIRST_APART..) {
            leaves[slot as usize] = leaf;
        }
        Self {
            keys: Tournament::new(),
            apart: [NO_KEY; APART],
            has_apart: apart.is_some(),
            slot_bits: usize::BITS - slots.leading_zeros(),
            leaves,
            free: Vec::new(),
            taken: 0,
            over: None,
            letters: BinaryHeap::new(),
            counter: 0,
        }
    }

    #[inline]
    fn key(&self, time: Nanos, counter: u64, slot: u32) -> u128 {
        (u128::from(time) << 64) | u128::from((counter << self.slot_bits) | u64::from(slot))
    }

    /// Whether the counter, which gets the bits that slots leave free, is nearly exhausted: after 10^11 events on 10^8
    /// slots.
    pub fn is_worn_out(&self) -> bool {
        self.counter >> (63 - self.slot_bits) != 0
    }

    #[inline]
    pub fn at(&mut self, time: Nanos, slot: u32) {
        let turn = self.turn();
        self.at_turn(time, turn, slot);
    }

    /// Reserves a position among entries at the same time, for [`Self::at_turn`].
    #[inline]
    pub fn turn(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    #[inline]
    pub fn at_turn(&mut self, time: Nanos, turn: u64, slot: u32) {
        let key = self.key(time, turn, slot);
        let mut leaf = self.leaves[slot as usize];
        if let Some(apart) = Self::apart(leaf) {
            self.apart[apart] = key;
            return;
        }
        match self.over {
            Some((over, _)) if over == slot => self.over = None,
            _ if leaf != NO_LEAF => {}
            _ => leaf = self.take_leaf(slot),
        }
        self.keys.write(leaf, key);
    }

    /// Index of a leaf into `apart`, or `None` for a leaf of the tournament.
    #[inline]
    fn apart(leaf: u32) -> Option<usize> {
        let place = leaf.wrapping_sub(FIRST_APART) as usize;
        (place < APART).then_some(place)
    }

    #[inline(never)]
    fn take_leaf(&mut self, slot: u32) -> u32 {
        let leaf = if let Some((over, leaf)) = self.over.take() {
            self.leaves[over as usize] = NO_LEAF;
            leaf
        } else if let Some(leaf) = self.free.pop() {
            leaf
        } else {
            if self.taken as usize == self.keys.leaves() {
                self.keys.grow();
            }
            self.taken += 1;
            self.taken - 1
        };
        self.leaves[slot as usize] = leaf;
        leaf
    }

    #[inline]
    pub fn cancel(&mut self, slot: u32) {
        if let Some(apart) = Self::apart(self.leaves[slot as usize]) {
            self.apart[apart] = NO_KEY;
            return;
        }
        let leaf = std::mem::replace(&mut self.leaves[slot as usize], NO_LEAF);
        if leaf != NO_LEAF {
            self.over = self.over.filter(|&(over, _)| over != slot);
            self.leave(leaf);
        }
    }

    fn leave(&mut self, leaf: u32) {
        self.free.push(leaf);
        self.keys.write(leaf, NO_KEY);
    }

    pub fn post(&mut self, time: Nanos, node: u32, news: News) {
        self.counter += 1;
        self.letters.push(Reverse(Letter { at: (time, self.counter), node, news }));
    }

    pub fn has_messages(&self) -> bool {
        !self.letters.is_empty()
    }

    /// Drops the messages in transit to the nodes for which `is_lost` holds.
    pub fn lose(&mut self, is_lost: impl Fn(u32) -> bool) {
        self.letters.retain(|Reverse(letter)| !is_lost(letter.node));
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Next)> {
        if let Some((slot, leaf)) = self.over.take() {
            self.leaves[slot as usize] = NO_LEAF;
            self.leave(leaf);
        }
        let mut first = self.keys.first();
        if self.has_apart {
            first = self.apart.iter().copied().fold(first, u128::min);
        }
        if let Some(Reverse(letter)) = self.letters.peek()
            && self.key(letter.at.0, letter.at.1, 0) < first
        {
            let Reverse(letter) = self.letters.pop()?;
            return Some((letter.at.0, Next::Message { node: letter.node, news: letter.news }));
        }
        if first == NO_KEY {
            return None;
        }
        let slot = (first as u64 & ((1 << self.slot_bits) - 1)) as u32;
        let leaf = self.leaves[slot as usize];
        match Self::apart(leaf) {
            Some(apart) => self.apart[apart] = NO_KEY,
            None => self.over = Some((slot, leaf)),
        }
        Some(((first >> 64) as Nanos, Next::Slot(slot)))
    }
}
