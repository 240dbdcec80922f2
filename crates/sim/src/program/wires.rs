//! State shared by all ranks: the network between them, and the calendar of visits.

use crosswind_policy::window::{Away, Moment, ReturnedBy, WindowSettings};
use crosswind_program::{Body, Kind};
use crosswind_schema::disturbance::{NEVER, Timeline};

use super::calendar::Calendar;
use super::inbox::{Again, Inbox, Packet, What};
use super::meeting::Meeting;
use super::network::{Gap, Network};
use super::outbox::Outbox;

/// After this many discards of a packet, its source and destination are assumed never to run at the same time.
const MOST_ATTEMPTS: u32 = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages sent: one-sided messages, answers and sends.
    pub messages: u64,
    /// Packets of those messages. A packet sent again counts again.
    pub packets: u64,
    pub acknowledgements: u64,
    /// Packets discarded because their rank was away.
    pub discarded: u64,
    pub operations: u64,
    /// Messages handled, or answers taken.
    pub handled: u64,
    /// Barriers and store-syncs of all ranks.
    pub meetings: u64,
}

impl Totals {
    pub(super) const fn add(&mut self, other: &Self) {
        let Self { messages, packets, acknowledgements, discarded, operations, handled, meetings } = other;
        self.messages += *messages;
        self.packets += *packets;
        self.acknowledgements += *acknowledgements;
        self.discarded += *discarded;
        self.operations += *operations;
        self.handled += *handled;
        self.meetings += *meetings;
    }
}

/// Division by a constant, as a multiplication and a correction.
#[derive(Clone, Copy)]
pub struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    /// Creates a divisor; `by` must be at least 1.
    pub const fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by }
    }

    /// Returns `time` divided by the divisor, rounded down. `time` must be below 2^63.
    #[inline]
    pub const fn of(self, time: u64) -> u64 {
        // The reciprocal is too small by less than 1, so the quotient is too small by less than 2^-1 plus the part cut
        // off.
        let quotient = ((time as u128 * self.reciprocal as u128) >> 64) as u64;
        quotient + (time - quotient * self.by >= self.by) as u64
    }
}

/// Windows of time, within which no rank can affect another.
pub struct Windows {
    /// Length of a window, ns.
    pub length: u64,
    /// The same, prepared for division.
    pub lengths: Divisor,
    /// End of the current window, ns.
    pub horizon: u64,
}

/// The network, the calendar of visits, and other state shared by all ranks.
pub struct Wires {
    pub network: Network,
    pub window: WindowSettings,
    pub ranks: u32,
    pub calendar: Calendar,
    pub meeting: Meeting,
    pub totals: Totals,
    pub gap_per_byte: Gap,
    pub windows: Windows,
    /// Timeline of each rank, queried at the start of windows. Empty unless senders follow whether destinations run.
    pub running: Vec<Timeline>,
    /// Packets sent but not yet in an inbox. None arrives before the window is over, so delivery can wait until the
    /// memory of several inboxes has been prefetched.
    pub outbox: Outbox,
    /// A source and a destination that never run at the same time, so that a discarded packet is discarded at every
    /// attempt.
    pub starved: Option<(u32, u32)>,
    /// One-way messages sent by these ranks, less those that they have handled. Wraps: only the sum over all ranks is at
    /// least 0.
    pub one_way: u64,
}

/// Fields common to all packets of a message.
#[derive(Clone, Copy)]
pub struct Envelope {
    pub from: u32,
    pub to: u32,
    pub what: What,
    /// The same as in [`Packet::word`].
    pub word: u32,
    pub credit: bool,
}

impl Wires {
    /// Returns the spacing of packets at a receiver, beside their length, ns: the slower of interface and processor.
    #[inline]
    pub fn gap(&self) -> u64 {
        self.network.gap_ns.max(self.network.overhead_ns)
    }

    /// Schedules a visit to a rank at `time`, unless an earlier one is scheduled.
    #[inline]
    pub fn look_at(&mut self, rank: u32, inbox: &mut Inbox, time: u64) {
        let window = self.windows.lengths.of(time);
        if window < inbox.visit {
            inbox.visit = window;
            self.calendar.add(window, rank);
        }
    }

    /// Sends a packet of `bytes` that leaves a processor at `sent`.
    #[inline(always)]
    pub fn send(&mut self, envelope: Envelope, number: u32, sent: u64, bytes: u32, last: bool, body: Body) {
        self.totals.packets += 1;
        let at = sent + self.network.latency_ns + self.gap_per_byte.train(bytes);
        let Envelope { from, to, what, word, credit } = envelope;
        // Written field by field in place: if it were built elsewhere, the copy would wait for the fields.
        let packet = self.outbox.add(to);
        packet.at = at;
        packet.from = from;
        packet.number = number;
        packet.bytes = bytes;
        packet.word = word;
        packet.what = what;
        packet.last = last;
        packet.credit = credit;
        packet.extracted = false;
        packet.thrown_away = false;
        packet.again = None;
        packet.body = body;
    }

    /// Sends an acknowledgement that leaves `from` at `sent`.
    pub fn acknowledge(&mut self, from: u32, to: u32, number: u32, sent: u64) {
        self.totals.acknowledgements += 1;
        let at = sent + self.network.latency_ns;
        *self.outbox.add(to) = Packet { at, from, number, ..Packet::ACKNOWLEDGEMENT };
    }

    /// Sends a discarded packet again.
    pub fn send_again(&mut self, to: u32, packet: Packet, sent: u64) {
        self.totals.packets += 1;
        let at = sent + self.network.latency_ns + self.gap_per_byte.train(packet.bytes);
        *self.outbox.add(to) = Packet { at, thrown_away: false, ..packet };
    }

    /// Discards a packet at `me`, and notifies its sender to send it again. `attempts`: how often the first packet that
    /// this sender must resend has been discarded. It sets the delay of all of them, so that they arrive again in
    /// order.
    pub fn throw_away(&mut self, me: u32, packet: Packet, attempts: u32) {
        let Away::Discard { resend_ns } = self.window.away else { return };
        self.totals.discarded += 1;
        if attempts > MOST_ATTEMPTS {
            self.starved = Some((packet.from, me));
        }
        let serial = packet.serial();
        // The delay varies, since a fixed one could fall into the same part of a rank's quantum for ever.
        let part = u64::from(attempts).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        let spread = resend_ns.saturating_mul(part) >> 20;
        let under_way = self.network.latency_ns + self.gap_per_byte.train(packet.bytes);
        let soonest = packet.at + self.network.latency_ns + self.network.overhead_ns;
        let at = (packet.at - under_way.min(packet.at) + resend_ns + spread).max(soonest);
        let sender = packet.from;
        let again = Some(Box::new(Again { serial }));
        *self.outbox.add(sender) = Packet { at, from: me, again, thrown_away: true, ..packet };
    }

    /// Returns how the credit of a packet goes back at this moment.
    #[inline]
    pub fn returned(&self, moment: Moment, packet: &Packet) -> ReturnedBy {
        let answer = packet.last && matches!(packet.what, What::Message(kind) if Kind::is_answered(kind));
        if packet.what == What::Answer {
            return ReturnedBy::Nothing;
        }
        self.window.returned(moment, answer, packet.extracted)
    }

    /// Whether a destination runs, as far as senders know: its state at the start of the window.
    pub fn runs(&mut self, rank: u32) -> bool {
        let start = self.windows.horizon - self.windows.length;
        self.running.get_mut(rank as usize).is_none_or(|timeline| timeline.is_on(start))
    }

    /// Returns when senders learn of a destination's next change between running and away, or `u64::MAX` if changes are
    /// not followed.
    pub fn knows_a_change(&mut self, rank: u32) -> u64 {
        let start = self.windows.horizon - self.windows.length;
        let change = self.running.get_mut(rank as usize).map_or(NEVER, |timeline| timeline.changes(start));
        if change < NEVER { change + self.windows.length } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dividing_by_the_reciprocal_is_dividing() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        for _ in 0..200_000 {
            let by = (next() >> (next() % 64)).max(1) & (u64::MAX >> 1) | 1;
            let divisor = Divisor::new(by);
            let random = next() >> (1 + next() % 60);
            let multiple = (random / by).wrapping_mul(by);
            for time in [0, by - 1, random, multiple, multiple.saturating_sub(1), u64::MAX >> 1] {
                let time = time & (u64::MAX >> 1);
                assert_eq!(divisor.of(time), time / by, "{time} by {by}");
            }
        }
    }
}
