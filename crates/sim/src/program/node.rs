//! A rank and its processor: the rank's next step and its time.

use crosswind_policy::window::{Credits, Moment, ReturnedBy};
use crosswind_program::{Body, Kind, Op, Rank, Reply};
use crosswind_schema::disturbance::{NEVER, Timeline};

use super::inbox::{Inbox, Packet, What, carried};
use super::matching::Matching;
use super::meeting::Purpose;
use super::watch::Watch;
use super::wires::{Envelope, Wires};
use crate::error::SimError;

/// Position of a rank in its program. Small, because it is set for every operation; the operation itself stays in the
/// node.
#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Over,
    /// Before an operation: arrived packets are handled first.
    Before,
    /// Sending the rest of a message.
    Sending {
        left: u64,
    },
    Sync,
    Stored(u64),
    /// Waiting until anything is handled.
    Wait,
    Receive {
        from: u32,
        tag: u32,
    },
    /// Waiting for all other ranks.
    Meeting(Purpose),
    /// Released from a meeting; may continue at this time, ns.
    Released(u64),
    Done,
}

impl State {
    /// Describes what a rank waits for, for error messages. `None` if it is done.
    pub fn waits_for<R: Rank>(self, op: &Op, unanswered: u32, stored: u64, rank: &R) -> Option<String> {
        match self {
            Self::Done => None,
            Self::Sync => Some(format!("sync ({unanswered} not answered)")),
            Self::Stored(bytes) => Some(format!("wait for {bytes} stored bytes ({stored} are here)")),
            Self::Wait => Some(rank.waits_for()),
            Self::Receive { from, tag } => Some(format!("receive from {from} with tag {tag}")),
            Self::Meeting(Purpose::Barrier) => Some("barrier".into()),
            Self::Meeting(Purpose::StoreSync) => Some("store-sync".into()),
            Self::Sending { .. } => Some(format!("credit to send {op:?}")),
            Self::Over | Self::Before | Self::Released(_) => Some("its processor".into()),
        }
    }
}

/// A rank on its processor.
pub struct Node<R> {
    /// Time at which the processor has completed all that it has begun, ns.
    pub now: u64,
    pub state: State,
    /// The current operation, other than computing.
    op: Op,
    pub timeline: Timeline,
    /// Time at which the interface accepts the next packet, ns.
    interface: u64,
    number: u32,
    /// Own gets, puts and requests without an answer so far.
    unanswered: u32,
    /// Whether anything has been handled since the last operation was issued.
    heard: bool,
    /// Bytes of stores handled but not yet waited for.
    stored: u64,
    matching: Matching,
    credits: Option<Credits>,
    stalled_since: Option<u64>,
    /// Time spent waiting for credits, ns.
    pub stalled: u64,
    /// Work done, ns of an undisturbed processor.
    pub busy: u64,
    /// Time at which the last operation ended or the last message was handled, ns.
    pub end: u64,
    /// Watches the interface, where the window's settings need it.
    watch: Option<Box<Watch>>,
    pub rank: R,
}

/// What a rank waits for before it continues.
enum Until {
    /// Time has passed, so packets that arrived meanwhile must be handled.
    Polled,
    /// This time, ns, or an earlier packet.
    Time(u64),
}

impl Until {
    const PACKET: Self = Self::Time(u64::MAX);
}

impl<R: Rank> Node<R> {
    pub fn new(rank: R, timeline: Timeline, credits: Option<Credits>, watch: Option<Box<Watch>>) -> Self {
        Self {
            now: 0,
            state: State::Over,
            op: Op::Done,
            timeline,
            interface: 0,
            number: 0,
            unanswered: 0,
            heard: false,
            stored: 0,
            matching: Matching::default(),
            credits,
            stalled_since: None,
            stalled: 0,
            busy: 0,
            end: 0,
            watch,
            rank,
        }
    }

    /// Advances the rank to the horizon and schedules its next visit.
    pub fn advance(&mut self, me: u32, inbox: &mut Inbox, wires: &mut Wires) -> Result<(), SimError> {
        let (horizon, gap) = (wires.windows.horizon, wires.gap());
        // A waiting rank has waited until the start of this window.
        self.now = self.now.max(horizon - wires.windows.length);
        if let Some(watch) = &mut self.watch {
            watch.take_in(me, inbox, self.now, wires);
        } else {
            inbox.take_in(horizon, gap, wires.gap_per_byte, |_| true);
        }
        loop {
            self.now = self.timeline.next_on(self.now);
            if self.now >= horizon {
                return self.look_later(me, inbox, wires);
            }
            if let Some(packet) = inbox.first(self.now) {
                self.handle(me, packet, wires)?;
                inbox.first_is_handled();
                continue;
            }
            let until = match self.go_on(me, wires)? {
                Until::Polled => continue,
                Until::Time(time) => time,
            };
            let watched = self.watch.as_ref().map_or(u64::MAX, |watch| watch.next(inbox, wires));
            let time = inbox.front().min(inbox.coming()).min(until);
            if time < horizon && !(watched >= horizon && watched < time) {
                self.now = time;
                continue;
            }
            inbox.listens = true;
            let time = time.min(watched.max(horizon));
            if time < u64::MAX {
                wires.look_at(me, inbox, time);
            }
            return Ok(());
        }
    }

    /// Schedules the next visit of a processor that is ahead of the window. Only a rank that watches its interface is
    /// visited before its own time.
    fn look_later(&self, me: u32, inbox: &mut Inbox, wires: &mut Wires) -> Result<(), SimError> {
        if self.now >= NEVER {
            return Err(SimError::Endless);
        }
        inbox.listens = self.watch.is_some();
        let watched = self.watch.as_ref().map_or(u64::MAX, |watch| watch.next(inbox, wires));
        wires.look_at(me, inbox, self.now.min(watched.max(wires.windows.horizon)));
        Ok(())
    }

    /// Executes operations until time passes. All packets that arrived by `now` have been handled.
    #[inline(always)]
    fn go_on(&mut self, me: u32, wires: &mut Wires) -> Result<Until, SimError> {
        let polled = self.now;
        loop {
            // The two most frequent states come first: a jump table over the state would be mispredicted.
            if self.state == State::Wait {
                if !self.heard {
                    return Ok(Until::PACKET);
                }
                self.state = State::Over;
            }
            if self.state != State::Over {
                match self.elsewhere(me, polled, wires)? {
                    Some(until) => return Ok(until),
                    None => continue,
                }
            }
            self.end = self.end.max(self.now);
            wires.totals.operations += 1;
            self.heard = false;
            let op = self.rank.next();
            if let Op::Message { to, kind, bytes, body } = op {
                if self.now == polled && self.goes_at_once(me, to, bytes, wires) {
                    self.count(kind, wires);
                    let envelope =
                        Envelope { from: me, to, what: What::Message(kind), word: carried(bytes), credit: false };
                    self.transmit(envelope, carried(bytes).max(1), true, body, wires);
                    self.rank.sent();
                    self.end = self.end.max(self.now);
                } else {
                    self.op = Op::Message { to, kind, bytes, body };
                    self.state = State::Before;
                }
            } else if matches!(op, Op::Wait) {
                self.state = State::Wait;
            } else if let Op::Compute { ns } = op {
                self.work(ns);
                if self.now >= NEVER {
                    return Err(SimError::Endless);
                }
                continue;
            } else {
                self.op = op;
                self.state = State::Before;
            }
            if self.now > polled {
                return Ok(Until::Polled);
            }
        }
    }

    /// Counts a message that begins.
    #[inline(always)]
    fn count(&mut self, kind: Kind, wires: &mut Wires) {
        wires.totals.messages += 1;
        wires.one_way = wires.one_way.wrapping_add(u64::from(!kind.is_answered()));
        self.unanswered += u32::from(kind.is_answered());
    }

    /// Whether a message is one packet that can be sent at once.
    #[inline(always)]
    fn goes_at_once(&self, me: u32, to: u32, bytes: u64, wires: &Wires) -> bool {
        self.credits.is_none()
            && self.interface <= self.now
            && bytes <= wires.network.packet_bytes.into()
            && (to != me || R::ITSELF_BY_NETWORK)
            && to < wires.ranks
    }

    /// Performs one step in any state except between operations. Returns `None` if the rank continues at the same time.
    fn elsewhere(&mut self, me: u32, polled: u64, wires: &mut Wires) -> Result<Option<Until>, SimError> {
        match self.state {
            State::Before => {
                self.begin(me, wires)?;
                return Ok((self.now > polled).then_some(Until::Polled));
            }
            State::Sending { left } => {
                return Ok(match self.send(me, left, wires) {
                    Until::Polled if self.now == polled => None,
                    until => Some(until),
                });
            }
            State::Sync if self.unanswered > 0 => return Ok(Some(Until::PACKET)),
            State::Stored(bytes) if self.stored < bytes => return Ok(Some(Until::PACKET)),
            State::Stored(bytes) => self.stored -= bytes,
            State::Receive { from, tag } if !self.matching.take(from, tag) => return Ok(Some(Until::PACKET)),
            State::Released(at) if at > self.now => return Ok(Some(Until::Time(at))),
            State::Meeting(_) | State::Done => return Ok(Some(Until::PACKET)),
            State::Over | State::Wait | State::Sync | State::Receive { .. } | State::Released(_) => {}
        }
        self.state = State::Over;
        Ok(None)
    }

    /// Starts an operation other than computing.
    fn begin(&mut self, me: u32, wires: &mut Wires) -> Result<(), SimError> {
        let ranks = wires.ranks;
        let known = |to: u32| {
            if to < ranks { Ok(()) } else { Err(SimError::NoSuchRank { rank: me, named: to, ranks }) }
        };
        self.state = match self.op {
            Op::Compute { .. } => State::Over,
            Op::Message { to, kind, .. } if to != me || R::ITSELF_BY_NETWORK => {
                known(to)?;
                self.count(kind, wires);
                State::Sending { left: self.op.message_bytes() }
            }
            Op::Message { kind, bytes, ref mut body, .. } => {
                let body = std::mem::take(body);
                self.rank.sent();
                wires.totals.messages += 1;
                wires.totals.handled += 1;
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
                wires.totals.messages += 1;
                State::Sending { left: self.op.message_bytes() }
            }
            Op::Sync => State::Sync,
            Op::Wait => State::Wait,
            Op::WaitStored { bytes } => State::Stored(bytes),
            Op::Receive { from, tag } => {
                known(from)?;
                State::Receive { from, tag }
            }
            Op::Barrier => self.meet(Purpose::Barrier, wires),
            Op::StoreSync => self.meet(Purpose::StoreSync, wires),
            Op::Done => {
                self.end = self.end.max(self.now);
                State::Done
            }
        };
        Ok(())
    }

    fn meet(&self, purpose: Purpose, wires: &mut Wires) -> State {
        wires.meeting.come(purpose, self.now);
        State::Meeting(purpose)
    }

    /// Sends one packet of the operation's message, if the interface is free and a credit is available.
    #[inline]
    fn send(&mut self, me: u32, left: u64, wires: &mut Wires) -> Until {
        if self.interface > self.now {
            return self.kept_back(left, self.interface, wires);
        }
        let (to, what, word) = match self.op {
            Op::Message { to, kind, bytes, .. } => (to, What::Message(kind), carried(bytes)),
            Op::Send { to, tag, .. } => (to, What::Send, tag),
            _ => return Until::Polled,
        };
        if let Some(credits) = &mut self.credits {
            let runs = !wires.window.follows() || wires.runs(to);
            if !credits.take(to, runs) {
                self.stalled_since.get_or_insert(self.now);
                return self.kept_back(left, wires.knows_a_change(to), wires);
            }
            if let Some(since) = self.stalled_since.take() {
                self.stalled += self.now - since;
            }
        }
        let is_first = left == self.op.message_bytes();
        let bytes = left.min(u64::from(wires.network.packet_bytes));
        let left = left - bytes;
        self.state = if left == 0 { State::Over } else { State::Sending { left } };
        let body = match &mut self.op {
            Op::Message { body, .. } if left == 0 => std::mem::take(body),
            _ => Body::Empty,
        };
        let envelope = Envelope { from: me, to, what, word, credit: false };
        self.transmit(envelope, bytes as u32, left == 0, body, wires);
        if left == 0 {
            self.rank.sent();
        } else if is_first {
            self.rank.begun();
        }
        self.end = self.end.max(self.now);
        Until::Polled
    }

    /// Handles a packet that cannot leave yet. Before the first packet of a message, the rank does what it can do
    /// meanwhile.
    fn kept_back(&mut self, left: u64, until: u64, wires: &mut Wires) -> Until {
        let meanwhile = if left == self.op.message_bytes() { self.rank.meanwhile() } else { None };
        let Some(ns) = meanwhile else { return Until::Time(until) };
        wires.totals.operations += 1;
        self.work(ns);
        self.end = self.end.max(self.now);
        Until::Polled
    }

    /// Sends one packet. Requires a free interface.
    #[inline(always)]
    fn transmit(&mut self, envelope: Envelope, bytes: u32, last: bool, body: Body, wires: &mut Wires) {
        let overhead = wires.network.overhead_ns;
        self.work(overhead);
        // The gap runs from the beginning of the overhead.
        let begun = self.now - overhead.min(self.now);
        self.interface = begun + wires.network.gap_ns + wires.gap_per_byte.train(bytes);
        self.number = self.number.wrapping_add(1);
        wires.send(envelope, self.number, self.now, bytes, last, body);
    }

    /// Handles a packet that has arrived.
    #[inline(always)]
    fn handle(&mut self, me: u32, packet: &mut Packet, wires: &mut Wires) -> Result<(), SimError> {
        let overhead = wires.network.overhead_ns;
        if packet.is_whole() && !wires.window.limits() {
            return self.handle_message(me, packet, overhead, wires);
        }
        if packet.thrown_away {
            self.send_again(me, packet, wires);
            return Ok(());
        }
        if packet.what == What::Acknowledgement {
            self.work(wires.network.acknowledgement_ns);
            return self.give_back(packet.from, packet.word);
        }
        if wires.window.limits() && wires.returned(Moment::Extracted, packet) == ReturnedBy::Acknowledgement {
            self.work(overhead);
            self.acknowledge(me, packet.from, wires);
        } else if !packet.last || !matches!(packet.what, What::Message(_)) {
            self.work(overhead);
        } else {
            // The overhead is charged together with the handler's time, below.
            return self.handle_message(me, packet, overhead, wires);
        }
        if !packet.last {
            self.end = self.end.max(self.now);
            self.handled(me, packet, wires);
            return Ok(());
        }
        match packet.what {
            What::Message(_) => return self.handle_message(me, packet, 0, wires),
            What::Answer => {
                wires.totals.handled += 1;
                self.unanswered -= 1;
                self.heard = true;
                self.rank.answered(packet.from, std::mem::take(&mut packet.body));
                if packet.credit {
                    self.give_back(packet.from, 1)?;
                }
            }
            What::Send => {
                wires.totals.handled += 1;
                self.heard = true;
                self.matching.add(packet.from, packet.word);
            }
            What::Acknowledgement => {}
        }
        self.end = self.end.max(self.now);
        self.handled(me, packet, wires);
        Ok(())
    }

    /// Runs the handler of a one-sided message on its last packet.
    #[inline(always)]
    fn handle_message(&mut self, me: u32, packet: &mut Packet, ns: u64, wires: &mut Wires) -> Result<(), SimError> {
        let What::Message(kind) = packet.what else { return Ok(()) };
        wires.totals.handled += 1;
        let reply = self.rank.handle(packet.from, kind, std::mem::take(&mut packet.body));
        self.work(ns.saturating_add(reply.ns));
        self.heard = true;
        if kind == Kind::Store {
            self.stored += u64::from(packet.word);
        }
        if kind.is_answered() {
            self.answer(me, packet, reply, wires);
        } else {
            wires.one_way = wires.one_way.wrapping_sub(1);
            wires.meeting.handled(self.now);
        }
        self.end = self.end.max(self.now);
        self.handled(me, packet, wires);
        Ok(())
    }

    /// Returns the credit of a handled packet, unless it goes back another way.
    #[inline]
    fn handled(&mut self, me: u32, packet: &Packet, wires: &mut Wires) {
        if wires.window.limits() && wires.returned(Moment::Handled, packet) == ReturnedBy::Acknowledgement {
            self.acknowledge(me, packet.from, wires);
        }
    }

    fn acknowledge(&mut self, me: u32, to: u32, wires: &mut Wires) {
        self.work(wires.network.acknowledgement_ns);
        self.number = self.number.wrapping_add(1);
        wires.acknowledge(me, to, self.number, self.now);
    }

    /// Sends an answer. Answers need no credit and do not poll the network.
    fn answer(&mut self, me: u32, packet: &Packet, reply: Reply, wires: &mut Wires) {
        let Reply { bytes, body, .. } = reply;
        let credit = wires.returned(Moment::Handled, packet) == ReturnedBy::Answer;
        let envelope = Envelope { from: me, to: packet.from, what: What::Answer, word: bytes, credit };
        wires.totals.messages += 1;
        let mut left = bytes.max(1);
        let mut body = Some(body);
        while left > 0 {
            self.now = self.now.max(self.interface);
            let bytes = left.min(wires.network.packet_bytes);
            left -= bytes;
            let body = if left == 0 { body.take().unwrap_or_default() } else { Body::Empty };
            self.transmit(envelope, bytes, left == 0, body, wires);
        }
    }

    /// Sends a packet again that its receiver has discarded.
    fn send_again(&mut self, me: u32, packet: &mut Packet, wires: &mut Wires) {
        self.now = self.now.max(self.interface);
        let to = packet.from;
        self.work(wires.network.overhead_ns);
        self.interface = self.now - wires.network.overhead_ns.min(self.now)
            + wires.network.gap_ns
            + wires.gap_per_byte.train(packet.bytes);
        self.number = self.number.wrapping_add(1);
        let (body, again) = (std::mem::take(&mut packet.body), packet.again.take());
        wires.send_again(to, Packet { from: me, number: self.number, body, again, ..*packet }, self.now);
    }

    fn give_back(&mut self, from: u32, packets: u32) -> Result<(), SimError> {
        match self.credits.as_mut().map_or(0, |credits| credits.give_back(from, packets)) {
            0 => Ok(()),
            _ => Err(SimError::Broken("a credit came back that had not been taken")),
        }
    }

    #[inline]
    fn work(&mut self, ns: u64) {
        self.busy = self.busy.saturating_add(ns);
        self.now = self.timeline.work(self.now, ns);
    }

    /// Whether all credits have returned and no answer is outstanding.
    pub fn is_settled(&self) -> bool {
        self.unanswered == 0 && self.credits.as_ref().is_none_or(Credits::is_complete)
    }

    /// Describes what the rank waits for, for error messages. `None` if it is done.
    pub fn waits_for(&self) -> Option<String> {
        self.state.waits_for(&self.op, self.unanswered, self.stored, &self.rank)
    }
}
