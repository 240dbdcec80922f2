//! What happens at a rank's interface while its processor computes or is away: packets that others take off the network for
//! it, packets that are thrown away.
//!
//! Only where the window's settings make it matter (credits back when extracted, or packets discarded); otherwise packets
//! just wait, and no watch is kept.

use std::collections::VecDeque;

use crosswind_policy::window::{Away, CreditReturn, Moment, ReturnedBy, WindowSettings};
use crosswind_schema::disturbance::Timeline;

use super::inbox::{Inbox, Packet};
use super::wires::Wires;

/// A rank's interface.
pub struct Watch {
    /// The rank's timeline once more: packets arrive at other times than its processor has got to.
    timeline: Timeline,
    asked: u64,
    discards: bool,
    /// Acknowledgements sent by others than the rank.
    number: u32,
    /// By source: packets thrown away, in the order of sending. Until they have come again nothing else of that source is
    /// kept, so messages never overtake one another.
    missing: Vec<Missing>,
}

/// What a source has sent and must send again.
struct Missing {
    from: u32,
    /// How often the first of them has been thrown away.
    attempts: u32,
    /// Their numbers, in the order of sending.
    serials: VecDeque<u32>,
}

impl Watch {
    /// Whether anything is to be watched.
    pub fn needed(settings: &WindowSettings) -> bool {
        settings.away != Away::Buffer || (settings.limits() && settings.credit == CreditReturn::Extracted)
    }

    pub fn new(timeline: Timeline, settings: &WindowSettings) -> Self {
        Self { timeline, asked: 0, discards: settings.away != Away::Buffer, number: 0, missing: Vec::new() }
    }

    /// Takes in what arrives before the horizon; the processor itself looks again at `processor`.
    pub fn take_in(&mut self, me: u32, inbox: &mut Inbox, processor: u64, wires: &mut Wires) {
        let mut thrown: Vec<(Packet, u32)> = Vec::new();
        let mut extracted: Vec<(u32, u64)> = Vec::new();
        let horizon = wires.windows.horizon;
        let early = wires.window.limits() && wires.window.credit == CreditReturn::Extracted;
        let (network, settings) = (wires.network, wires.window);
        let (gap, per_byte) = (wires.gap(), wires.gap_per_byte);
        inbox.take_in(horizon, gap, per_byte, |packet| {
            if packet.is_control() {
                return true;
            }
            self.asked = self.asked.max(packet.at);
            let polled = self.timeline.is_polled(self.asked).is_some();
            if self.discards {
                if let Some(attempts) = self.thrown_away(packet, polled) {
                    thrown.push((packet.clone(), attempts));
                    return false;
                }
            }
            if polled && early {
                extracted.extend(extract(packet, &settings, packet.at));
            }
            true
        });
        // A process that polls may come while packets wait for a processor that is still busy.
        while let Some(start) = if early { self.next_interval(horizon.min(processor)) } else { None } {
            if self.timeline.is_polled(start).is_some() {
                for packet in inbox.waiting_mut().iter_mut().filter(|packet| packet.at <= start) {
                    extracted.extend(extract(packet, &settings, start));
                }
            }
        }
        for (packet, attempts) in thrown {
            wires.throw_away(me, packet, attempts);
        }
        for (to, at) in extracted {
            self.number = self.number.wrapping_add(1);
            wires.acknowledge(me, to, self.number, at + network.acknowledgement_ns);
        }
    }

    /// The start of the next interval, if it is before `until` and none has asked beyond it.
    fn next_interval(&mut self, until: u64) -> Option<u64> {
        let interval = self.timeline.clone().interval()?;
        let start = if interval.start > self.asked { interval.start } else { self.beyond(interval.end)? };
        (start < until).then(|| {
            self.asked = start;
            start
        })
    }

    /// The start of the first interval after one that ends at `end`.
    fn beyond(&self, end: u64) -> Option<u64> {
        let mut timeline = self.timeline.clone();
        timeline.interval()?;
        timeline.interval().map(|interval| interval.start.max(end))
    }

    /// When to look at the interface again, at the latest.
    pub fn next(&self, inbox: &mut Inbox, wires: &Wires) -> u64 {
        let coming = inbox.coming();
        let waiting = inbox.waiting_mut().iter().any(|packet| !packet.extracted && !packet.is_control());
        let early = wires.window.limits() && wires.window.credit == CreditReturn::Extracted;
        if !(waiting && early) {
            return coming;
        }
        let mut timeline = self.timeline.clone();
        let mut next = timeline.interval();
        while next.is_some_and(|interval| interval.start <= self.asked) {
            next = timeline.interval();
        }
        next.map_or(coming, |interval| coming.min(interval.start))
    }

    /// Whether a packet is thrown away, and how often the first of its source then has been: the rank is away and nothing polls for
    /// it, or something of its source is missing before it.
    fn thrown_away(&mut self, packet: &Packet, polled: bool) -> Option<u32> {
        let there = polled || self.timeline.is_on(self.asked);
        let serial = packet.serial();
        let Some(at) = self.missing.iter().position(|missing| missing.from == packet.from) else {
            if there {
                return None;
            }
            let missing = Missing { from: packet.from, attempts: 1, serials: VecDeque::from([serial]) };
            self.missing.push(missing);
            return Some(1);
        };
        let missing = &mut self.missing[at];
        if missing.serials.front() == Some(&serial) {
            if !there {
                missing.attempts += 1;
                return Some(missing.attempts);
            }
            missing.serials.pop_front();
            if missing.serials.is_empty() {
                self.missing.swap_remove(at);
            }
            return None;
        }
        if !missing.serials.contains(&serial) {
            missing.serials.push_back(serial);
        }
        Some(missing.attempts)
    }
}

/// Takes a packet off the network for its rank; returns the rank that gets the credit, and when the packet was taken.
fn extract(packet: &mut Packet, settings: &WindowSettings, at: u64) -> Option<(u32, u64)> {
    if packet.extracted || packet.is_control() || packet.what == super::inbox::What::Answer {
        return None;
    }
    packet.extracted = true;
    (settings.returned(Moment::ExtractedForIt, false, true) == ReturnedBy::Acknowledgement).then_some((packet.from, at))
}
