//! What is on its way to a rank: in the network, then at its interface, until the rank polls.

use crosswind_program::{Body, Kind};

use super::memory::{prefetch_end, prefetch_tail};
use super::network::Gap;

/// No window: a rank that is in no list of the calendar.
pub const NEVER_VISITED: u64 = u64::MAX;

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Message(Kind),
    Answer,
    Send,
    Acknowledgement,
}

#[derive(Clone, Debug)]
pub struct Packet {
    /// When its last byte is here; once taken in: when the interface is done with it.
    pub at: u64,
    pub from: u32,
    /// How many packets the sender had sent before, to any rank: with `at` and `from`, the order of all.
    pub number: u32,
    /// Bytes in the packet.
    pub bytes: u32,
    /// Of a send: its tag. Of an acknowledgement: its credits. Else: bytes of the whole message.
    pub word: u32,
    pub what: What,
    /// Whether it is the last of its message, and carries the body.
    pub last: bool,
    /// Of an answer: whether it brings a credit back.
    pub credit: bool,
    /// Whether a daemon has taken it off the network.
    pub extracted: bool,
    /// Thrown away by `from`: to be sent there again.
    pub thrown_away: bool,
    /// What is to be known of a packet that has been thrown away before.
    pub again: Option<Box<Again>>,
    pub body: Body,
}

/// Of a packet that has been thrown away.
#[derive(Clone, Debug)]
pub struct Again {
    /// Its `number` when it was sent first.
    pub serial: u32,
}

impl Packet {
    /// An acknowledgement of one packet.
    pub const ACKNOWLEDGEMENT: Self = Self {
        at: 0,
        from: 0,
        number: 0,
        bytes: 0,
        word: 1,
        what: What::Acknowledgement,
        last: true,
        credit: true,
        extracted: false,
        thrown_away: false,
        again: None,
        body: Body::Empty,
    };

    /// Its number when it was sent first.
    pub fn serial(&self) -> u32 {
        self.again.as_ref().map_or(self.number, |again| again.serial)
    }

    /// Whether it is the last of a one-sided message, and here for the first time: what most are.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.last && !self.thrown_away && matches!(self.what, What::Message(_))
    }

    /// Whether it takes no interface: an acknowledgement, or word that a packet must be sent again.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.thrown_away || self.what == What::Acknowledgement
    }
}

pub struct Inbox {
    /// `[..handled]` are gone, `[handled..taken]` are through the interface, in order; the rest is in the network, in no order.
    packets: Vec<Packet>,
    handled: usize,
    taken: usize,
    /// When the first of those in the network arrives.
    coming: u64,
    /// When the interface was done with the last packet, and how long it takes at least to the next.
    interface: Option<u64>,
    /// The window in which the rank is looked at next, or [`NEVER_VISITED`].
    pub visit: u64,
    /// Whether the rank must be looked at when a packet arrives.
    pub listens: bool,
}

/// Order of arrival.
#[inline]
fn order(packet: &Packet) -> (u64, u32, u32) {
    (packet.at, packet.from, packet.number)
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            packets: Vec::new(),
            handled: 0,
            taken: 0,
            coming: u64::MAX,
            interface: None,
            visit: NEVER_VISITED,
            listens: false,
        }
    }

    /// Asks for the memory of its last packets.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_tail(&self.packets, 4);
    }

    /// Asks for the memory of the next packet.
    #[inline]
    pub fn prefetch_end(&self) {
        prefetch_end(&self.packets);
    }

    /// A packet is on its way, and taken from its place.
    #[inline]
    pub fn push(&mut self, packet: &mut Packet) {
        self.coming = self.coming.min(packet.at);
        self.packets.push(std::mem::replace(packet, Packet::ACKNOWLEDGEMENT));
    }

    /// Takes what arrives before `horizon` through the interface, in order of arrival and `gap` and their length apart (as LogGOPSim does), and shows each to `look` with the time; what `look` refuses is not kept.
    #[inline]
    pub fn take_in(&mut self, horizon: u64, gap: u64, per_byte: Gap, look: impl FnMut(&mut Packet) -> bool) {
        if self.coming < horizon {
            self.take_in_some(horizon, gap, per_byte, look);
        }
    }

    #[inline]
    fn take_in_some(&mut self, horizon: u64, gap: u64, per_byte: Gap, mut look: impl FnMut(&mut Packet) -> bool) {
        if self.packets.len() - self.taken > 1 {
            sort(&mut self.packets[self.taken..]);
        }
        // Acknowledgements are past the interface, but not past the packets before them.
        let mut before = if self.taken > self.handled { self.packets[self.taken - 1].at } else { 0 };
        while let Some(packet) = self.packets.get_mut(self.taken) {
            if packet.at >= horizon {
                break;
            }
            if packet.is_control() {
                packet.at = packet.at.max(before);
            } else {
                if let Some(last) = self.interface {
                    packet.at = packet.at.max(last + gap + per_byte.train(packet.bytes));
                }
                self.interface = Some(packet.at);
            }
            let at = packet.at;
            if look(packet) {
                self.taken += 1;
                before = at;
            } else {
                self.packets.remove(self.taken);
            }
        }
        self.coming = self.packets.get(self.taken).map_or(u64::MAX, |packet| packet.at);
    }

    /// When the first packet is through the interface; the end of time: none is.
    #[inline]
    pub fn front(&self) -> u64 {
        if self.handled < self.taken { self.packets[self.handled].at } else { u64::MAX }
    }

    /// When the first packet arrives that is still in the network; the end of time: none is.
    #[inline]
    pub const fn coming(&self) -> u64 {
        self.coming
    }

    /// The first packet that is through the interface, if it is at `now`.
    #[inline]
    pub fn first(&mut self, now: u64) -> Option<&mut Packet> {
        if self.handled == self.taken {
            return None;
        }
        self.packets.get_mut(self.handled).filter(|packet| packet.at <= now)
    }

    /// The first packet has been handled, and its body taken.
    #[inline]
    pub fn first_is_handled(&mut self) {
        self.handled += 1;
        if self.handled == self.packets.len() {
            self.packets.clear();
            (self.handled, self.taken) = (0, 0);
        } else if self.handled >= 32 && self.handled * 2 >= self.packets.len() {
            self.packets.drain(..self.handled);
            self.taken -= self.handled;
            self.handled = 0;
        }
    }

    /// Packets that are through the interface and not handled.
    pub fn waiting_mut(&mut self) -> &mut [Packet] {
        &mut self.packets[self.handled..self.taken]
    }
}

/// Few packets at a time, most of them in order: by insertion. Many are left to the library.
fn sort(packets: &mut [Packet]) {
    if packets.len() > 24 {
        packets.sort_unstable_by_key(order);
        return;
    }
    for end in 1..packets.len() {
        let key = order(&packets[end]);
        let place = packets[..end].iter().rposition(|packet| order(packet) < key).map_or(0, |at| at + 1);
        if place < end {
            packets[place..=end].rotate_right(1);
        }
    }
}
