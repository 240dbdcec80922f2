//! A rank and its processor in front of a network with finite capacity.

use std::collections::VecDeque;

use crosswind_policy::window::{Credits, Moment, ReturnedBy, WindowSettings};
use crosswind_program::{Body, Kind, Op, Rank};
use crosswind_schema::disturbance::Timeline;

use super::super::inbox::{Packet, What, carried};
use super::super::matching::Matching;
use super::super::meeting::{Meeting, Purpose};
use super::super::network::Network;
use super::super::node::State;
use super::super::outcome::RankTimes;
use super::super::wires::Totals;
use super::switches::{Lane, Switches};
use crate::error::SimError;

/// State shared by all ranks.
pub struct Shared {
    pub network: Network,
    pub window: WindowSettings,
    pub ranks: u32,
    pub polls_per_send: u32,
    pub switches: Switches,
    pub meeting: Meeting,
    pub totals: Totals,
    /// One-way messages sent but not handled.
    pub one_way: u64,
}

/// A packet with its destination and network.
struct Parcel {
    to: u32,
    lane: Lane,
    packet: Packet,
}

/// Restores the order of packets from each rank in one network: paths differ, but messages must not overtake one
/// another.
struct Order {
    /// Number of packets sent, by destination.
    sent: Vec<u32>,
    /// Number of packets handled, by source.
    handled: Vec<u32>,
    /// Packets that arrived before an earlier one of the same source.
    early: Vec<Packet>,
}

impl Order {
    fn new(ranks: u32) -> Self {
        Self { sent: vec![0; ranks as usize], handled: vec![0; ranks as usize], early: Vec::new() }
    }

    fn number(&mut self, to: u32) -> u32 {
        self.sent[to as usize] = self.sent[to as usize].wrapping_add(1);
        self.sent[to as usize]
    }

    /// Whether a packet is the next in order from its source.
    fn is_next(&self, packet: &Packet) -> bool {
        packet.number == self.handled[packet.from as usize].wrapping_add(1)
    }

    /// Counts a packet from a source as handled. Returns the next one in order if it has already arrived.
    fn follows(&mut self, from: u32) -> Option<Packet> {
        self.handled[from as usize] = self.handled[from as usize].wrapping_add(1);
        let next = self.handled[from as usize].wrapping_add(1);
        let at = self.early.iter().position(|packet| packet.from == from && packet.number == next)?;
        Some(self.early.swap_remove(at))
    }
}

/// A rank on its processor.
pub struct Processor<R> {
    /// Time at which it completes what it has begun, ns.
    pub now: u64,
    pub state: State,
    pub timeline: Timeline,
    /// The current operation, other than computing.
    op: Op,
    /// The packet that enters the interface when the processor has finished with it.
    sending: Option<Parcel>,
    /// Answers and acknowledgements to send.
    owed: VecDeque<Parcel>,
    /// Requests handled since its last own packet.
    polled: u32,
    orders: [Order; 2],
    unanswered: u32,
    heard: bool,
    stored: u64,
    matching: Matching,
    credits: Option<Credits>,
    stalled_since: Option<u64>,
    stalled: u64,
    busy: u64,
    end: u64,
    pub rank: R,
}

/// Time of a processor's next step.
pub enum Next {
    At(u64),
    /// When something arrives or room becomes free, and at this time at the latest.
    Notified(u64),
}

impl<R: Rank> Processor<R> {
    pub fn new(rank: R, ranks: u32, timeline: Timeline, credits: Option<Credits>) -> Self {
        Self {
            now: 0,
            state: State::Over,
            timeline,
            op: Op::Done,
            sending: None,
            owed: VecDeque::new(),
            polled: 0,
            orders: [Order::new(ranks), Order::new(ranks)],
            unanswered: 0,
            heard: false,
            stored: 0,
            matching: Matching::default(),
            credits,
            stalled_since: None,
            stalled: 0,
            busy: 0,
            end: 0,
            rank,
        }
    }

    /// Performs one step at `now`: everything that takes no time, then the first thing that takes some.
    pub fn step(&mut self, me: u32, now: u64, shared: &mut Shared) -> Result<Next, SimError> {
        self.now = now;
        if let Some(Parcel { to, lane, packet }) = self.sending.take() {
            shared.switches.send(me, lane, to, packet, now);
        }
        self.now = self.timeline.next_on(now);
        while self.now == now {
            let goes_on = if let Some(parcel) = self.owed.pop_front() {
                self.pay(me, parcel, shared)?
            } else if self.state == State::Over {
                self.begin(me, shared)?;
                true
            } else {
                self.poll_or_go_on(me, shared)?
            };
            if !goes_on {
                // A rank that may leave the barrier but has no room for what it owes is notified when there is room.
                let until = match self.state {
                    State::Released(at) if at > now => at,
                    _ => u64::MAX,
                };
                return Ok(Next::Notified(until));
            }
        }
        Ok(Next::At(self.now))
    }

    /// Sends what is owed, or handles replies. Returns `false` if neither is possible.
    fn pay(&mut self, me: u32, parcel: Parcel, shared: &mut Shared) -> Result<bool, SimError> {
        if shared.switches.has_room(me, Lane::Replies) {
            let ns = match parcel.packet.what {
                What::Acknowledgement => shared.network.acknowledgement_ns,
                _ => shared.network.overhead_ns,
            };
            self.transmit(me, parcel, ns, shared);
            return Ok(true);
        }
        self.owed.push_front(parcel);
        self.take(me, Lane::Replies, shared)
    }

    fn poll_or_go_on(&mut self, me: u32, shared: &mut Shared) -> Result<bool, SimError> {
        let could = self.can_go_on(me, shared);
        if self.take(me, Lane::Replies, shared)? {
            return Ok(true);
        }
        if (!could || self.polled < shared.polls_per_send) && self.take(me, Lane::Requests, shared)? {
            self.polled = self.polled.saturating_add(1);
            return Ok(true);
        }
        if could {
            self.go_on(me, shared);
            return Ok(true);
        }
        Ok(self.meanwhile(shared))
    }

    fn can_go_on(&self, me: u32, shared: &Shared) -> bool {
        match self.state {
            State::Over | State::Before => true,
            State::Sending { .. } => self.has_credit() && shared.switches.has_room(me, Lane::Requests),
            State::Sync => self.unanswered == 0,
            State::Stored(bytes) => self.stored >= bytes,
            State::Wait => self.heard,
            State::Receive { from, tag } => self.matching.has(from, tag),
            State::Released(at) => at <= self.now,
            State::Meeting(_) | State::Done => false,
        }
    }

    fn has_credit(&self) -> bool {
        match (&self.credits, &self.op) {
            (Some(credits), Op::Message { to, .. } | Op::Send { to, .. }) => {
                credits.under_way(*to) < credits.window(true)
            }
            _ => true,
        }
    }

    /// Continues after a wait whose condition holds.
    fn go_on(&mut self, me: u32, shared: &mut Shared) {
        match self.state {
            State::Sending { left } => return self.send(me, left, shared),
            State::Stored(bytes) => self.stored -= bytes,
            State::Receive { from, tag } => {
                self.matching.take(from, tag);
            }
            _ => {}
        }
        self.state = State::Over;
    }

    /// Computes while the first packet of a message is blocked. Returns `false` if there is nothing to compute.
    fn meanwhile(&mut self, shared: &mut Shared) -> bool {
        let State::Sending { left } = self.state else { return false };
        self.stalled_since.get_or_insert(self.now);
        if left != self.op.message_bytes() {
            return false;
        }
        let Some(ns) = self.rank.meanwhile() else { return false };
        shared.totals.operations += 1;
        self.work(ns);
        true
    }

    fn begin(&mut self, me: u32, shared: &mut Shared) -> Result<(), SimError> {
        self.end = self.end.max(self.now);
        shared.totals.operations += 1;
        self.heard = false;
        self.op = self.rank.next();
        let ranks = shared.ranks;
        let known = |to: u32| {
            if to < ranks { Ok(()) } else { Err(SimError::NoSuchRank { rank: me, named: to, ranks }) }
        };
        self.state = match self.op {
            Op::Compute { ns } => {
                self.work(ns);
                State::Over
            }
            Op::Message { to, kind, .. } if to != me => {
                known(to)?;
                shared.totals.messages += 1;
                shared.one_way += u64::from(!kind.is_answered());
                self.unanswered += u32::from(kind.is_answered());
                State::Sending { left: self.op.message_bytes() }
            }
            Op::Message { kind, bytes, ref mut body, .. } => {
                let body = std::mem::take(body);
                self.rank.sent();
                shared.totals.messages += 1;
                shared.totals.handled += 1;
                let reply = self.rank.handle(me, kind, body);
                self.work(reply.ns);
                self.heard = true;
                if kind == Kind::Store {
                    self.stored += bytes;
                }
                if kind.is_answered() {
                    self.rank.answered(me, reply.body);
                }
                State::Over
            }
            Op::Send { to, .. } => {
                known(to)?;
                if to == me {
                    return Err(SimError::SendToItself { rank: me });
                }
                shared.totals.messages += 1;
                State::Sending { left: self.op.message_bytes() }
            }
            Op::Sync => State::Sync,
            Op::Wait => State::Wait,
            Op::WaitStored { bytes } => State::Stored(bytes),
            Op::Receive { from, tag } => {
                known(from)?;
                State::Receive { from, tag }
            }
            Op::Barrier => self.meet(Purpose::Barrier, shared),
            Op::StoreSync => self.meet(Purpose::StoreSync, shared),
            Op::Done => State::Done,
        };
        Ok(())
    }

    fn meet(&self, purpose: Purpose, shared: &mut Shared) -> State {
        shared.meeting.come(purpose, self.now);
        State::Meeting(purpose)
    }

    /// Sends one packet of the message. Requires a credit and room.
    fn send(&mut self, me: u32, left: u64, shared: &mut Shared) {
        let (to, what, word) = match self.op {
            Op::Message { to, kind, bytes, .. } => (to, What::Message(kind), carried(bytes)),
            Op::Send { to, tag, .. } => (to, What::Send, tag),
            _ => return,
        };
        if let Some(credits) = &mut self.credits {
            let _ = credits.take(to, true);
        }
        if let Some(since) = self.stalled_since.take() {
            self.stalled += self.now - since;
        }
        let is_first = left == self.op.message_bytes();
        let bytes = left.min(u64::from(shared.network.packet_bytes));
        let left = left - bytes;
        self.state = if left == 0 { State::Over } else { State::Sending { left } };
        let body = match &mut self.op {
            Op::Message { body, .. } if left == 0 => std::mem::take(body),
            _ => Body::Empty,
        };
        let last = left == 0;
        let packet = Packet { bytes: bytes as u32, word, what, last, credit: false, body, ..Packet::ACKNOWLEDGEMENT };
        self.polled = 0;
        self.transmit(me, Parcel { to, lane: Lane::Requests, packet }, shared.network.overhead_ns, shared);
        if left == 0 {
            self.rank.sent();
        } else if is_first {
            self.rank.begun();
        }
        self.end = self.end.max(self.now);
    }

    /// Starts to process a packet for sending, and reserves its place at the interface.
    fn transmit(&mut self, me: u32, mut parcel: Parcel, ns: u64, shared: &mut Shared) {
        parcel.packet.from = me;
        parcel.packet.number = self.orders[parcel.lane as usize].number(parcel.to);
        match parcel.packet.what {
            What::Acknowledgement => shared.totals.acknowledgements += 1,
            _ => shared.totals.packets += 1,
        }
        shared.switches.reserve(me, parcel.lane);
        self.sending = Some(parcel);
        self.work(ns);
    }

    /// Handles an arrived packet, if there is one. Returns whether there was.
    fn take(&mut self, me: u32, lane: Lane, shared: &mut Shared) -> Result<bool, SimError> {
        let Some(packet) = shared.switches.take(me, lane, self.now) else { return Ok(false) };
        self.work(match packet.what {
            What::Acknowledgement => shared.network.acknowledgement_ns,
            _ => shared.network.overhead_ns,
        });
        if !self.orders[lane as usize].is_next(&packet) {
            self.orders[lane as usize].early.push(packet);
            return Ok(true);
        }
        let from = packet.from;
        let mut next = Some(packet);
        while let Some(packet) = next {
            self.handle(packet, shared)?;
            next = self.orders[lane as usize].follows(from);
        }
        Ok(true)
    }

    fn handle(&mut self, mut packet: Packet, shared: &mut Shared) -> Result<(), SimError> {
        let answered = packet.last && matches!(packet.what, What::Message(kind) if kind.is_answered());
        let returned = match packet.what {
            What::Answer | What::Acknowledgement => ReturnedBy::Nothing,
            _ => shared.window.returned(Moment::Handled, answered, false),
        };
        match packet.what {
            What::Acknowledgement => return self.give_back(packet.from, packet.word),
            What::Message(kind) if packet.last => {
                shared.totals.handled += 1;
                self.heard = true;
                let reply = self.rank.handle(packet.from, kind, std::mem::take(&mut packet.body));
                self.work(reply.ns);
                if kind == Kind::Store {
                    self.stored += u64::from(packet.word);
                }
                if kind.is_answered() {
                    self.owe_answer(packet.from, reply.bytes, reply.body, returned == ReturnedBy::Answer, shared);
                } else {
                    shared.one_way -= 1;
                    shared.meeting.handled(self.now);
                }
            }
            What::Send if packet.last => {
                shared.totals.handled += 1;
                self.heard = true;
                self.matching.add(packet.from, packet.word);
            }
            What::Answer if packet.last => {
                shared.totals.handled += 1;
                self.heard = true;
                self.unanswered -= 1;
                self.rank.answered(packet.from, std::mem::take(&mut packet.body));
                if packet.credit {
                    self.give_back(packet.from, 1)?;
                }
            }
            What::Message(_) | What::Send | What::Answer => {}
        }
        if returned == ReturnedBy::Acknowledgement {
            self.owe(packet.from, Packet::ACKNOWLEDGEMENT);
        }
        self.end = self.end.max(self.now);
        Ok(())
    }

    fn owe(&mut self, to: u32, packet: Packet) {
        self.owed.push_back(Parcel { to, lane: Lane::Replies, packet });
    }

    fn owe_answer(&mut self, to: u32, bytes: u32, body: Body, credit: bool, shared: &mut Shared) {
        shared.totals.messages += 1;
        let mut left = bytes.max(1);
        let mut body = Some(body);
        while left > 0 {
            let bytes = left.min(shared.network.packet_bytes);
            left -= bytes;
            let body = if left == 0 { body.take().unwrap_or_default() } else { Body::Empty };
            let last = left == 0;
            self.owe(
                to,
                Packet { what: What::Answer, word: bytes, bytes, last, credit, body, ..Packet::ACKNOWLEDGEMENT },
            );
        }
    }

    fn give_back(&mut self, from: u32, packets: u32) -> Result<(), SimError> {
        match self.credits.as_mut().map_or(0, |credits| credits.give_back(from, packets)) {
            0 => Ok(()),
            _ => Err(SimError::Broken("a credit came back that had not been taken")),
        }
    }

    fn work(&mut self, ns: u64) {
        self.busy = self.busy.saturating_add(ns);
        self.now = self.timeline.work(self.now, ns);
    }

    /// Whether all credits have returned, nothing is owed and no packet waits for an earlier one.
    pub fn is_settled(&self) -> bool {
        self.unanswered == 0
            && self.owed.is_empty()
            && self.orders.iter().all(|order| order.early.is_empty())
            && self.credits.as_ref().is_none_or(Credits::is_complete)
    }

    pub const fn times(&self) -> RankTimes {
        RankTimes { end_ns: self.end, busy_ns: self.busy, stalled_ns: self.stalled }
    }

    /// Describes what the rank waits for, for error messages. `None` if it is done.
    pub fn waits_for(&self) -> Option<String> {
        self.state.waits_for(&self.op, self.unanswered, self.stored, &self.rank)
    }
}
