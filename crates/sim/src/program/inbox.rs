//! What is on its way to a rank: in the network, then at its interface, until the rank polls.

use crosswind_program::{Body, Kind};

use super::network::Network;

/// No window: a rank that is in no list of the calendar.
pub const NEVER_VISITED: u64 = u64::MAX;

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A one-sided message.
    Message(Kind),
    /// The answer to one.
    Answer,
    /// A send.
    Send,
    /// Credits, and nothing else.
    Acknowledgement,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// When its last byte is here; once taken in: when the interface is done with it.
    pub at: u64,
    /// Who sent it.
    pub from: u32,
    /// How many packets the sender had sent before, to anybody: with `at` and `from`, the order of all.
    pub number: u32,
    /// Bytes in the packet.
    pub bytes: u32,
    /// Of a send: its tag. Of an acknowledgement: its credits. Else: bytes of the whole message.
    pub word: u32,
    /// What for.
    pub what: What,
    /// Whether it is the last of its message, and carries the body.
    pub last: bool,
    /// Of an answer: whether it brings a credit back.
    pub credit: bool,
    /// Whether a daemon has taken it off the network.
    pub extracted: bool,
    /// Thrown away by `from`: to be sent there again.
    pub thrown_away: bool,
    /// How often that has happened.
    pub attempts: u16,
    /// Its `number` when it was sent first.
    pub serial: u32,
    /// When it left its sender's processor.
    pub sent: u64,
    /// The data.
    pub body: Body,
}

impl Packet {
    /// Whether it takes no interface: an acknowledgement, or word that a packet must be sent again.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.thrown_away || self.what == What::Acknowledgement
    }
}

/// Packets for one rank.
#[derive(Default)]
pub struct Inbox {
    /// `[..handled]` are gone, `[handled..taken]` are through the interface, in order; the rest is in the network, in no order.
    packets: Vec<Packet>,
    handled: usize,
    taken: usize,
    /// When the interface was done with the last packet, and 0 before the first.
    interface: u64,
    busy_interface: bool,
    /// The window in which the rank is looked at next, or [`NEVER_VISITED`].
    pub visit: u64,
    /// Whether the rank must be looked at when a packet arrives.
    pub listens: bool,
}

impl Inbox {
    pub fn new() -> Self {
        Self { visit: NEVER_VISITED, ..Self::default() }
    }

    /// A packet is on its way.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        self.packets.push(packet);
    }

    /// Takes what arrives before `horizon` through the interface, in order of arrival and as far apart as the slower of interface
    /// and processor needs (as LogGOPSim does), and shows each to `look` with the
    /// time; what `look` refuses is not kept.
    pub fn take_in(&mut self, horizon: u64, network: &Network, mut look: impl FnMut(&mut Packet) -> bool) {
        let coming = self.packets.len() - self.taken;
        if coming == 0 {
            return;
        }
        if coming > 1 {
            self.packets[self.taken..].sort_unstable_by_key(|packet| (packet.at, packet.from, packet.number));
        }
        while let Some(packet) = self.packets.get_mut(self.taken) {
            if packet.at >= horizon {
                break;
            }
            if !packet.is_control() {
                let gap = network.gap_ns.max(network.overhead_ns) + network.train(packet.bytes);
                if self.busy_interface {
                    packet.at = packet.at.max(self.interface + gap);
                }
                self.busy_interface = true;
                self.interface = packet.at;
            } else {
                // Past the interface, but not past the packets before it.
                let before = if self.taken > self.handled { self.packets[self.taken - 1].at } else { 0 };
                let packet = &mut self.packets[self.taken];
                packet.at = packet.at.max(before);
            }
            if look(&mut self.packets[self.taken]) {
                self.taken += 1;
            } else {
                self.packets.remove(self.taken);
            }
        }
    }

    /// When the first packet is through the interface.
    #[inline]
    pub fn front(&self) -> Option<u64> {
        if self.handled < self.taken { Some(self.packets[self.handled].at) } else { None }
    }

    /// When the first packet arrives that is still in the network.
    pub fn coming(&self) -> Option<u64> {
        self.packets[self.taken..].iter().map(|packet| packet.at).min()
    }

    /// The first packet that is through the interface.
    pub fn pop(&mut self) -> Option<Packet> {
        if self.handled == self.taken {
            return None;
        }
        let packet = &mut self.packets[self.handled];
        let taken = Packet { body: std::mem::take(&mut packet.body), ..*packet };
        self.handled += 1;
        if self.handled == self.packets.len() {
            self.packets.clear();
            (self.handled, self.taken) = (0, 0);
        } else if self.handled >= 32 && self.handled * 2 >= self.packets.len() {
            self.packets.drain(..self.handled);
            self.taken -= self.handled;
            self.handled = 0;
        }
        Some(taken)
    }

    /// Packets that are through the interface and not handled.
    pub fn waiting_mut(&mut self) -> &mut [Packet] {
        &mut self.packets[self.handled..self.taken]
    }
}
