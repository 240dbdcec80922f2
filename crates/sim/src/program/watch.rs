//! Events at a rank's interface while its processor computes or is away: packets that other processes extract for it,
//! and packets that are discarded.
//!
//! Kept only where the window's settings need it (credits returned on extraction, or packets discarded). Otherwise
//! packets just wait.

use std::collections::VecDeque;

use crosswind_policy::window::{Away, CreditReturn, Moment, ReturnedBy, WindowSettings};
use crosswind_schema::disturbance::Timeline;

use super::inbox::{Inbox, Packet};
use super::wires::Wires;

/// Watch on a rank's interface.
pub struct Watch {
    /// A second copy of the rank's timeline: packets arrive at times other than the processor's current time.
    timeline: Timeline,
    requested: u64,
    discards: bool,
    /// Number of acknowledgements sent on the rank's behalf.
    number: u32,
    /// Discarded packets, by source, in order of sending. Until they have arrived again, nothing else from that source
    /// is kept, so messages never overtake one another.
    missing: Vec<Missing>,
}

/// Packets that a source must send again.
struct Missing {
    from: u32,
    /// How often the first of them has been discarded.
    attempts: u32,
    /// Their serial numbers, in order of sending.
    serials: VecDeque<u32>,
}

impl Watch {
    /// Whether these settings need a watch.
    pub fn needed(settings: &WindowSettings) -> bool {
        settings.away != Away::Buffer || (settings.limits() && settings.credit == CreditReturn::Extracted)
    }

    pub fn new(timeline: Timeline, settings: &WindowSettings) -> Self {
        Self { timeline, requested: 0, discards: settings.away != Away::Buffer, number: 0, missing: Vec::new() }
    }

    /// Takes in packets that arrive before the horizon. `processor`: when the processor itself polls next, ns.
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
            self.requested = self.requested.max(packet.at);
            let polled = self.timeline.is_polled(self.requested).is_some();
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
        // A polling process may start to run while packets wait for a processor that is still busy.
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

    /// Returns the start of the next interval that was not examined yet, if it is before `until`, and marks it as
    /// examined.
    fn next_interval(&mut self, until: u64) -> Option<u64> {
        let interval = self.timeline.clone().interval()?;
        let start = if interval.start > self.requested { interval.start } else { self.beyond(interval.end)? };
        (start < until).then(|| {
            self.requested = start;
            start
        })
    }

    /// Returns the start of the first interval after one that ends at `end`.
    fn beyond(&self, end: u64) -> Option<u64> {
        let mut timeline = self.timeline.clone();
        timeline.interval()?;
        timeline.interval().map(|interval| interval.start.max(end))
    }

    /// Returns the latest time of the next look at the interface, ns.
    pub fn next(&self, inbox: &mut Inbox, wires: &Wires) -> u64 {
        let coming = inbox.coming();
        let waiting = inbox.waiting_mut().iter().any(|packet| !packet.extracted && !packet.is_control());
        let early = wires.window.limits() && wires.window.credit == CreditReturn::Extracted;
        if !(waiting && early) {
            return coming;
        }
        let mut timeline = self.timeline.clone();
        let mut next = timeline.interval();
        while next.is_some_and(|interval| interval.start <= self.requested) {
            next = timeline.interval();
        }
        next.map_or(coming, |interval| coming.min(interval.start))
    }

    /// Decides whether a packet is discarded: the rank is away and nothing polls for it, or an earlier packet of its
    /// source is missing. Returns how often the first missing packet of that source has been discarded, or `None` if
    /// the packet is kept.
    fn thrown_away(&mut self, packet: &Packet, polled: bool) -> Option<u32> {
        let there = polled || self.timeline.is_on(self.requested);
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

/// Extracts a packet on its rank's behalf. Returns the rank that gets the credit and the time of extraction, or `None`
/// if no credit is due.
fn extract(packet: &mut Packet, settings: &WindowSettings, at: u64) -> Option<(u32, u64)> {
    if packet.extracted || packet.is_control() || packet.what == super::inbox::What::Answer {
        return None;
    }
    packet.extracted = true;
    (settings.returned(Moment::ExtractedForIt, false, true) == ReturnedBy::Acknowledgement).then_some((packet.from, at))
}
