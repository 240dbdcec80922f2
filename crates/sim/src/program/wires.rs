//! What ranks share: the network between them, and the calendar of who is looked at next.

use crosswind_policy::window::{Away, Moment, ReturnedBy, WindowSettings};
use crosswind_program::{Body, Kind};
use crosswind_schema::disturbance::Timeline;

use super::calendar::Calendar;
use super::inbox::{Again, Inbox, Packet, What};
use super::meeting::Meeting;
use super::network::{Gap, Network};

/// A packet that has been thrown away so often will always be.
const MOST_ATTEMPTS: u32 = 1000;

/// Of all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages sent: one-sided ones, answers, sends.
    pub messages: u64,
    /// Packets of those; sent again, counted again.
    pub packets: u64,
    /// Acknowledgements.
    pub acknowledgements: u64,
    /// Packets thrown away because their rank was away.
    pub discarded: u64,
    /// Operations.
    pub operations: u64,
    /// Messages handled, or answers taken.
    pub handled: u64,
    /// Barriers and store-syncs of all ranks.
    pub meetings: u64,
}

/// The network, and who is looked at when.
pub struct Wires {
    pub network: Network,
    pub window: WindowSettings,
    pub inboxes: Vec<Inbox>,
    pub calendar: Calendar,
    pub meeting: Meeting,
    pub totals: Totals,
    /// Of the network.
    pub gap_per_byte: Gap,
    /// Windows of time are so many nanoseconds long.
    pub length: u64,
    /// The end of the window that is being worked on.
    pub horizon: u64,
    /// Where senders follow whether destinations run: each rank's timeline, asked at the start of windows.
    pub running: Vec<Timeline>,
    /// A source and a destination that never run at the same time, so that what is thrown away never comes again in time.
    pub starved: Option<(u32, u32)>,
    /// One-way messages sent and not handled.
    pub one_way: u64,
}

/// What all packets of a message have in common.
#[derive(Clone, Copy)]
pub struct Envelope {
    pub from: u32,
    pub to: u32,
    pub what: What,
    /// See [`Packet::word`].
    pub word: u32,
    pub credit: bool,
}

impl Wires {
    /// How far apart a receiver takes packets, beside their length: as the slower of interface and processor needs.
    #[inline]
    pub fn gap(&self) -> u64 {
        self.network.gap_ns.max(self.network.overhead_ns)
    }

    /// Looks at a rank at `time`, if not before.
    #[inline]
    pub fn look_at(&mut self, rank: u32, time: u64) {
        let window = time / self.length;
        let inbox = &mut self.inboxes[rank as usize];
        if window < inbox.visit {
            inbox.visit = window;
            self.calendar.add(window, rank);
        }
    }

    /// A packet is on its way to `to`.
    #[inline]
    pub fn put(&mut self, to: u32, packet: Packet) {
        let inbox = &mut self.inboxes[to as usize];
        let at = packet.at;
        inbox.push(packet);
        if inbox.listens {
            self.look_at(to, at);
        }
    }

    /// A packet of `bytes` leaves a processor at `sent`.
    #[inline]
    pub fn send(&mut self, envelope: Envelope, number: u32, sent: u64, bytes: u32, last: bool, body: Body) {
        self.totals.packets += 1;
        let at = sent + self.network.latency_ns + self.gap_per_byte.train(bytes);
        let Envelope { from, what, word, credit, .. } = envelope;
        let packet = Packet {
            at,
            from,
            number,
            bytes,
            word,
            what,
            last,
            credit,
            extracted: false,
            thrown_away: false,
            again: None,
            body,
        };
        self.put(envelope.to, packet);
    }

    /// An acknowledgement leaves `from` at `sent`.
    pub fn acknowledge(&mut self, from: u32, to: u32, number: u32, sent: u64) {
        self.totals.acknowledgements += 1;
        let at = sent + self.network.latency_ns;
        let packet = Packet {
            at,
            from,
            number,
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
        self.put(to, packet);
    }

    /// A packet that was thrown away leaves a processor again.
    pub fn send_again(&mut self, to: u32, packet: Packet, sent: u64) {
        self.totals.packets += 1;
        let at = sent + self.network.latency_ns + self.gap_per_byte.train(packet.bytes);
        self.put(to, Packet { at, thrown_away: false, ..packet });
    }

    /// A packet is thrown away by `me`: its sender is to send it again. `attempts`: how often the first packet that its sender must
    /// send again has been thrown away, so that all come again in their order.
    pub fn throw_away(&mut self, me: u32, packet: Packet, attempts: u32) {
        let Away::Discard { resend_ns } = self.window.away else { return };
        self.totals.discarded += 1;
        if attempts > MOST_ATTEMPTS {
            self.starved = Some((packet.from, me));
        }
        let serial = packet.serial();
        // Not at a fixed distance, which could fall into the same part of somebody's quantum for ever.
        let part = u64::from(attempts).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        let spread = resend_ns.saturating_mul(part) >> 20;
        let under_way = self.network.latency_ns + self.gap_per_byte.train(packet.bytes);
        let soonest = packet.at + self.network.latency_ns + self.network.overhead_ns;
        let at = (packet.at - under_way.min(packet.at) + resend_ns + spread).max(soonest);
        let sender = packet.from;
        let again = Some(Box::new(Again { serial }));
        self.put(sender, Packet { at, from: me, again, thrown_away: true, ..packet });
    }

    /// How the credit of a packet goes back at this moment.
    #[inline]
    pub fn returned(&self, moment: Moment, packet: &Packet) -> ReturnedBy {
        let answer = packet.last && matches!(packet.what, What::Message(kind) if Kind::is_answered(kind));
        if packet.what == What::Answer {
            return ReturnedBy::Nothing;
        }
        self.window.returned(moment, answer, packet.extracted)
    }

    /// Whether a destination runs, as far as senders know: what was so at the start of the window of time.
    pub fn runs(&mut self, rank: u32) -> bool {
        let start = self.horizon - self.length;
        self.running.get_mut(rank as usize).is_none_or(|timeline| timeline.next_on(start) == start)
    }
}
