//! Packets for a rank: first in the network, then at its interface, until the rank polls.

use crosswind_program::{Body, Kind};

use super::memory::{prefetch_end, prefetch_tail};
use super::network::Gap;

/// No window: the rank is in no list of the calendar.
pub const NEVER_VISITED: u64 = u64::MAX;

/// Returns the length of a message as its packets carry it: receivers count the bytes of stores, which stay far below 4 GiB.
pub fn carried(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Message(Kind),
    Answer,
    Send,
    Acknowledgement,
}

#[derive(Clone, Debug)]
pub struct Packet {
    /// Arrival of its last byte, ns. Once taken in, the time at which the interface has processed it.
    pub at: u64,
    pub from: u32,
    /// Sequence number among all packets of the sender, to any rank. `at`, `from` and `number` define the order of all
    /// packets.
    pub number: u32,
    pub bytes: u32,
    /// For a send, its tag. For an acknowledgement, its credits. Otherwise the length of the whole message, bytes.
    pub word: u32,
    pub what: What,
    /// Whether it is the last packet of its message and carries the body.
    pub last: bool,
    /// For an answer, whether it returns a credit.
    pub credit: bool,
    /// Whether a daemon has extracted it from the network.
    pub extracted: bool,
    /// Whether `from` has discarded it, so that it must be sent there again.
    pub thrown_away: bool,
    /// Present if the packet has been discarded before.
    pub again: Option<Box<Again>>,
    pub body: Body,
}

/// Data of a packet that has been discarded.
#[derive(Clone, Debug)]
pub struct Again {
    /// Its `number` at the first attempt.
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

    /// Returns its number at the first attempt.
    pub fn serial(&self) -> u32 {
        self.again.as_ref().map_or(self.number, |again| again.serial)
    }

    /// Whether it is the last packet of a one-sided message, at its first attempt. Most packets are.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.last && !self.thrown_away && matches!(self.what, What::Message(_))
    }

    /// Whether it bypasses the interface: an acknowledgement, or a notice that a packet must be sent again.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.thrown_away || self.what == What::Acknowledgement
    }
}

pub struct Inbox {
    /// `[..handled]` are done, `[handled..taken]` have passed the interface, in order. The rest are in the network,
    /// unordered.
    packets: Vec<Packet>,
    handled: usize,
    taken: usize,
    /// Arrival of the first packet in the network, ns.
    coming: u64,
    /// Time at which the interface finished the last packet, ns. `None` before the first.
    interface: Option<u64>,
    /// Window of the rank's next visit, or [`NEVER_VISITED`].
    pub visit: u64,
    /// Whether an arriving packet must trigger a visit.
    pub listens: bool,
}

/// Returns the key that sorts packets by arrival.
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

    #[inline]
    pub fn prefetch(&self) {
        prefetch_tail(&self.packets, 4);
    }

    /// Prefetches the memory of the next packet.
    #[inline]
    pub fn prefetch_end(&self) {
        prefetch_end(&self.packets);
    }

    /// Moves a packet into the network.
    #[inline]
    pub fn push(&mut self, packet: &mut Packet) {
        self.coming = self.coming.min(packet.at);
        self.packets.push(std::mem::replace(packet, Packet::ACKNOWLEDGEMENT));
    }

    /// Passes the packets that arrive before `horizon` through the interface, in order of arrival, spaced by `gap` and
    /// their length (as in LogGOPSim). Each is shown to `look` with its time; packets for which `look` returns `false`
    /// are dropped.
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
        // Acknowledgements bypass the interface but do not overtake earlier packets.
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

    /// Returns when the first packet has passed the interface, or `u64::MAX` if none has.
    #[inline]
    pub fn front(&self) -> u64 {
        if self.handled < self.taken { self.packets[self.handled].at } else { u64::MAX }
    }

    /// Returns the arrival of the first packet still in the network, or `u64::MAX` if there is none.
    #[inline]
    pub const fn coming(&self) -> u64 {
        self.coming
    }

    /// Returns the first packet if it has passed the interface by `now`.
    #[inline]
    pub fn first(&mut self, now: u64) -> Option<&mut Packet> {
        if self.handled == self.taken {
            return None;
        }
        self.packets.get_mut(self.handled).filter(|packet| packet.at <= now)
    }

    /// Removes the first packet, which has been handled and whose body has been taken.
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

    /// Returns the packets that have passed the interface but have not been handled.
    pub fn waiting_mut(&mut self) -> &mut [Packet] {
        &mut self.packets[self.handled..self.taken]
    }
}

/// Sorts by insertion if there are few packets, since most are in order already. Otherwise uses the library sort.
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
