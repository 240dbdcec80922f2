//! What happens next: for each processor, port and result link at most one time, and the messages under way.
//!
//! A change of rate moves the one entry instead of leaving a stale one behind. Ties: first scheduled, first served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::inbox::News;
use crate::time::Nanos;
use crate::tournament::{NO_KEY, Tournament};

const NO_SEAT: u32 = u32::MAX;
/// Slots outside the tournament, with seats from [`FIRST_APART`] on: those that nearly every event changes.
const APART: usize = 2;
const FIRST_APART: u32 = NO_SEAT - APART as u32;

#[derive(Debug)]
pub(crate) enum Next {
    /// The entry of this number.
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
    /// Of each entry that has one: time, then a counter, then its slot, in one number.
    keys: Tournament,
    /// The same of the slots that have a place apart.
    apart: [u128; APART],
    has_apart: bool,
    /// The lowest bits of a key, which are the slot.
    slot_bits: u32,
    /// The seat of each slot, or [`NO_SEAT`].
    seats: Vec<u32>,
    /// Seats that were left: they are taken first, so the tournament is as small as what is under way.
    free: Vec<u32>,
    /// Seats that were ever taken.
    taken: u32,
    /// The slot that came last and its seat, which others may take before the next comes.
    over: Option<(u32, u32)>,
    letters: BinaryHeap<Reverse<Letter>>,
    counter: u64,
}

impl Agenda {
    /// So many slots; those of `apart`, if any, are the ones that nearly every event changes.
    pub fn new(slots: usize, apart: Option<[u32; APART]>) -> Self {
        let mut seats = vec![NO_SEAT; slots];
        for (slot, seat) in apart.into_iter().flatten().zip(FIRST_APART..) {
            seats[slot as usize] = seat;
        }
        Self {
            keys: Tournament::new(),
            apart: [NO_KEY; APART],
            has_apart: apart.is_some(),
            slot_bits: usize::BITS - slots.leading_zeros(),
            seats,
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

    /// Whether the counter, which has the bits that slots leave, is nearly used up: after 10^11 events on 10^8 slots.
    pub fn is_worn_out(&self) -> bool {
        self.counter >> (63 - self.slot_bits) != 0
    }

    #[inline]
    pub fn at(&mut self, time: Nanos, slot: u32) {
        let turn = self.turn();
        self.at_turn(time, turn, slot);
    }

    /// A place among those at the same time, for [`Self::at_turn`].
    #[inline]
    pub fn turn(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    #[inline]
    pub fn at_turn(&mut self, time: Nanos, turn: u64, slot: u32) {
        let key = self.key(time, turn, slot);
        let mut seat = self.seats[slot as usize];
        if let Some(apart) = Self::apart(seat) {
            self.apart[apart] = key;
            return;
        }
        match self.over {
            Some((over, _)) if over == slot => self.over = None,
            _ if seat != NO_SEAT => {}
            _ => seat = self.take_seat(slot),
        }
        self.keys.write(seat, key);
    }

    /// Which of the places apart a seat is.
    #[inline]
    fn apart(seat: u32) -> Option<usize> {
        let place = seat.wrapping_sub(FIRST_APART) as usize;
        (place < APART).then_some(place)
    }

    #[inline(never)]
    fn take_seat(&mut self, slot: u32) -> u32 {
        let seat = if let Some((over, seat)) = self.over.take() {
            self.seats[over as usize] = NO_SEAT;
            seat
        } else if let Some(seat) = self.free.pop() {
            seat
        } else {
            if self.taken as usize == self.keys.seats() {
                self.keys.grow();
            }
            self.taken += 1;
            self.taken - 1
        };
        self.seats[slot as usize] = seat;
        seat
    }

    #[inline]
    pub fn cancel(&mut self, slot: u32) {
        if let Some(apart) = Self::apart(self.seats[slot as usize]) {
            self.apart[apart] = NO_KEY;
            return;
        }
        let seat = std::mem::replace(&mut self.seats[slot as usize], NO_SEAT);
        if seat != NO_SEAT {
            self.over = self.over.filter(|&(over, _)| over != slot);
            self.leave(seat);
        }
    }

    fn leave(&mut self, seat: u32) {
        self.free.push(seat);
        self.keys.write(seat, NO_KEY);
    }

    pub fn post(&mut self, time: Nanos, node: u32, news: News) {
        self.counter += 1;
        self.letters.push(Reverse(Letter { at: (time, self.counter), node, news }));
    }

    /// Loses the messages that are under way to some nodes.
    pub fn lose(&mut self, is_lost: impl Fn(u32) -> bool) {
        self.letters.retain(|Reverse(letter)| !is_lost(letter.node));
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Next)> {
        if let Some((slot, seat)) = self.over.take() {
            self.seats[slot as usize] = NO_SEAT;
            self.leave(seat);
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
        let seat = self.seats[slot as usize];
        match Self::apart(seat) {
            Some(apart) => self.apart[apart] = NO_KEY,
            None => self.over = Some((slot, seat)),
        }
        Some(((first >> 64) as Nanos, Next::Slot(slot)))
    }
}
