//! What a call of MPI means: which operations a rank arrives at in it, and which it waits for.
//!
//! | calls | become |
//! |---|---|
//! | sends, receives, collective operations | themselves; nonblocking and persistent ones begin at their start |
//! | exchanges (Sendrecv, neighbourhood collectives) | a message to each and from each, waited for in one call |
//! | fences, and post, start, complete and wait of windows | what they wait for ([`super::windows`]) |
//! | other one-sided communication, files, groups that are linked | nothing: their time is summed, and limits the verdict |

use std::sync::Arc;

use super::app_rank::{Call, Exchange, NO_PEER, Polled, Rank, Request};
use crate::trace::{Kind, Part};

/// Tag of the messages of neighbourhood collectives, which no program can use.
const NEIGHBOURS: i32 = -100;

const UNKNOWN: &str = "waits for calls that are not modelled";
pub(super) const ONE_SIDED: &str = "one-sided communication";
const BETWEEN: &str = "operations between groups of ranks";

/// Why an operation is left out.
pub enum Left {
    /// It goes nowhere, so it takes no time.
    Nowhere,
    Unmodelled(&'static str),
}

pub type Begun<T> = Result<T, Left>;

impl Rank {
    /// Takes a call; `ran`: CPU time since the one before, ns, or -1.
    pub(super) fn call(&mut self, call: &Call, ran: i64) {
        let matched = matches!(call.kind, 21 | 35).then(|| self.matched(call));
        let call = matched.as_ref().unwrap_or(call);
        let (t0, t1) = (call.t0, call.t1);
        // A call that completes what polling looked for has waited since the polling began.
        let before = self.polled.take();
        let same = before.is_some_and(|before| match before.request {
            0 => matches!(call.kind, 14 | 17..=21),
            handle => call.request == handle || call.extras.iter().any(|extra| extra.0 == handle),
        });
        let polled = before.filter(|polled| polled.continues(t0, ran, same));
        if polled.is_none() || !matches!(call.kind, 14 | 17..=21) {
            self.lose(before);
        }
        let ran = polled.map_or(ran, |polled| polled.ran);
        let waits_since = polled.map_or(t0, |polled| polled.begin);
        let status = call.extras.first().copied();
        let whole = t1 - t0;
        match call.kind {
            10..=13 => match self.send(call, call.peer, call.tag, call.bytes) {
                Ok(event) => {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    self.wait(Kind::WaitSent, event, (t0, t1), None, true, 0);
                }
                Err(left) => self.leave(left, whole),
            },
            14 | 21 => {
                let since = if call.kind == 21 || polled.is_some() { waits_since } else { t0 };
                match self.receive(&Call { t0: since, ..call.clone() }) {
                    Ok(at) => {
                        self.came(at, status);
                        let event = self.posted[at as usize].event;
                        self.trace.push(Kind::Post, event, since, since, ran);
                        self.wait(Kind::Wait, event, (since, t1), None, true, 0);
                    }
                    Err(left) => self.leave(left, t1 - since),
                }
            }
            17..=20 => {
                if let (19 | 20, Some((message, from, tag))) = (call.kind, status) {
                    self.messages.insert(message, (call.comm, from, tag));
                }
                let is_probe = matches!(call.kind, 17 | 19) || polled.is_some();
                self.polled = Some(Polled { begin: waits_since, end: t1, ran, request: 0, is_probe });
            }
            15 | 16 | 87..=91 => match self.exchange(call, call.kind, ran) {
                Ok(exchange) => {
                    if let Some(&at) = exchange.received.first().filter(|_| call.kind < 70) {
                        self.came(at, status);
                    }
                    let waits = self.waits_of(&exchange);
                    self.waits(&waits, t0, t1, 0);
                }
                Err(left) => self.leave(left, whole),
            },
            30..=37 | 126 | 137 | 170..=191 => {
                let begun = self.begin(call, call.kind, ran);
                let before = self.requests.insert(call.request, begun);
                // Two requests at a time with one handle: it stands for all that are over when they begin.
                if matches!(before, Some(Request::Send(_) | Request::Nothing)) {
                    self.shared.insert(call.request);
                }
            }
            40..=44 | 470..=491 => {
                self.requests.insert(call.request, Request::Template(Arc::new(call.clone())));
            }
            45 | 46 => self.start(call, ran),
            50..=57 => self.complete(call, waits_since, ran),
            58 => {
                for (request, ..) in &call.extras {
                    self.requests.remove(request);
                    self.started.remove(request);
                }
            }
            70..=86 | 120..=122 | 124 | 125 | 127..=131 | 133 | 205..=207 => {
                let met = if matches!(call.kind, 206 | 207) { self.fence(call) } else { self.met(call, call.kind) };
                match met {
                    Ok(event) => {
                        self.trace.push(Kind::Post, event, t0, t0, ran);
                        let gives = self.trace.events[event as usize].part == Part::Gives;
                        self.wait(if gives { Kind::WaitSent } else { Kind::Wait }, event, (t0, t1), None, true, 0);
                    }
                    Err(left) => self.leave(left, whole),
                }
            }
            208..=211 => {
                let since = if call.kind == 211 { waits_since } else { t0 };
                if let Err(left) = self.epoch(call, since, ran) {
                    self.leave(left, t1 - since);
                }
            }
            123 => self.skipped("MPI_Comm_create_group", whole),
            132 | 136 => self.skipped(BETWEEN, whole),
            134 | 135 => self.skipped("freeing of communicators", whole),
            200 | 201 => {
                self.moved |= call.kind == 201;
                self.unmodelled(call, ONE_SIDED);
            }
            202 => self.unmodelled(call, "MPI files"),
            203 => self.unmodelled(call, "partitioned communication"),
            204 => self.unmodelled(call, "waits for the buffer of sends"),
            _ => {}
        }
    }

    /// Counts a call that is not modelled, and remembers that the wait for it is not either.
    fn unmodelled(&mut self, call: &Call, what: &'static str) {
        self.skipped(what, call.t1 - call.t0);
        if call.request != 0 {
            self.requests.insert(call.request, Request::Unmodelled(what));
        }
    }

    fn leave(&mut self, left: Left, ns: i64) {
        if let Left::Unmodelled(what) = left {
            self.skipped(what, ns);
        }
    }

    /// Returns a receive of a matched message with the communicator, source and tag of that.
    fn matched(&mut self, call: &Call) -> Call {
        let message = call.extras.first().map_or(0, |extra| extra.0);
        match self.messages.remove(&message) {
            Some((comm, peer, tag)) => Call { comm, peer, tag, ..call.clone() },
            None => call.clone(),
        }
    }

    /// Begins what a call describes, as one of a nonblocking kind; what is to be waited for.
    fn begin(&mut self, call: &Call, kind: u16, ran: i64) -> Request {
        let t0 = call.t0;
        let begun = match kind {
            30..=33 => self.send(call, call.peer, call.tag, call.bytes).map(|event| {
                self.trace.push(Kind::Post, event, t0, t0, ran);
                Request::Send(event)
            }),
            34 | 35 => self.receive(call).map(|at| {
                self.trace.push(Kind::Post, self.posted[at as usize].event, t0, t0, ran);
                Request::Receive(at)
            }),
            36 | 37 | 187..=191 => {
                let blocking = if kind < 100 { kind - 21 } else { kind - 100 };
                self.exchange(call, blocking, ran).map(|exchange| Request::Exchange(Box::new(exchange)))
            }
            _ => self.met(call, if matches!(kind, 126 | 137) { 126 } else { kind - 100 }).map(|event| {
                self.trace.push(Kind::Post, event, t0, t0, ran);
                Request::Collective(event)
            }),
        };
        match begun {
            Ok(request) => request,
            Err(Left::Nowhere) => Request::Nothing,
            Err(Left::Unmodelled(what)) => Request::Unmodelled(what),
        }
    }

    fn send(&mut self, call: &Call, peer: i32, tag: i32, bytes: u64) -> Begun<u32> {
        if peer == NO_PEER {
            return Err(Left::Nowhere);
        }
        let to = self.world_rank(call.comm, peer).ok_or(Left::Unmodelled(BETWEEN))?;
        Ok(self.sent(call, peer, to, tag, bytes))
    }

    fn receive(&mut self, call: &Call) -> Begun<u32> {
        if call.peer == NO_PEER {
            return Err(Left::Nowhere);
        }
        if !self.has_peers(call.comm) {
            return Err(Left::Unmodelled(BETWEEN));
        }
        Ok(self.received(call.comm, call.peer, call.tag, call.bytes, call.t0))
    }

    fn met(&mut self, call: &Call, kind: u16) -> Begun<u32> {
        self.collective(call, kind).ok_or(Left::Unmodelled(BETWEEN))
    }

    /// Begins the messages of a call that sends and receives: one each, or those to and from all neighbours.
    fn exchange(&mut self, call: &Call, kind: u16, mut ran: i64) -> Begun<Exchange> {
        let mut exchange = Exchange::default();
        let (sent, received) = if matches!(kind, 15 | 16) {
            // The last entry is what was asked for.
            let asked = call.extras.last().map_or((-1, -1), |&(_, peer, tag)| (peer, tag));
            (vec![(call.peer, call.tag, call.bytes)], vec![(asked.0, asked.1, call.bytes)])
        } else {
            let (from, to) = self.neighbours(call.comm).ok_or(Left::Unmodelled("neighbourhood collectives"))?;
            let bytes = call.bytes / (to.len() as u64).max(1);
            let message = |peer: i32| (peer, NEIGHBOURS, bytes);
            (to.into_iter().map(message).collect(), from.into_iter().map(message).collect())
        };
        for (peer, tag, bytes) in sent {
            match self.send(call, peer, tag, bytes) {
                Ok(event) => exchange.sent.push(event),
                Err(Left::Nowhere) => {}
                Err(left) => return Err(left),
            }
        }
        for (peer, tag, bytes) in received {
            match self.receive(&Call { peer, tag, bytes, ..call.clone() }) {
                Ok(at) => exchange.received.push(at),
                Err(Left::Nowhere) => {}
                Err(left) => return Err(left),
            }
        }
        let received = exchange.received.iter().map(|&at| self.posted[at as usize].event);
        let begun: Vec<u32> = exchange.sent.iter().copied().chain(received).collect();
        for event in begun {
            self.trace.push(Kind::Post, event, call.t0, call.t0, ran);
            ran = 0;
        }
        Ok(exchange)
    }

    /// Returns the waits for an exchange: first for what comes.
    fn waits_of(&self, exchange: &Exchange) -> Vec<(Kind, u32)> {
        let received = exchange.received.iter().map(|&at| (Kind::Wait, self.posted[at as usize].event));
        received.chain(exchange.sent.iter().map(|&event| (Kind::WaitSent, event))).collect()
    }

    fn start(&mut self, call: &Call, mut ran: i64) {
        for (request, ..) in &call.extras {
            let Some(Request::Template(made)) = self.requests.get(request) else { continue };
            let again = Call { t0: call.t0, t1: call.t1, ..Call::clone(made) };
            let kind = if again.kind < 100 { again.kind - 10 } else { again.kind - 300 };
            let acts = self.trace.acts.len();
            let begun = self.begin(&again, kind, ran);
            self.started.insert(*request, begun);
            if self.trace.acts.len() > acts {
                ran = 0;
            }
        }
    }

    fn complete(&mut self, call: &Call, since: i64, ran: i64) {
        let mut waits = Vec::new();
        let mut unseen = None;
        for &(request, from, tag) in &call.extras {
            let found = self.started.remove(&request).or_else(|| match self.requests.get(&request) {
                // One handle stands for all requests that go nowhere.
                Some(Request::Template(_) | Request::Nothing) => Some(Request::Nothing),
                Some(_) => self.requests.remove(&request),
                None => self.shared.contains(&request).then_some(Request::Nothing),
            });
            match found {
                Some(Request::Send(event)) => waits.push((Kind::WaitSent, event)),
                Some(Request::Collective(event)) => waits.push((Kind::Wait, event)),
                Some(Request::Receive(at)) => {
                    self.came(at, Some((0, from, tag)));
                    waits.push((Kind::Wait, self.posted[at as usize].event));
                }
                Some(Request::Exchange(exchange)) => {
                    // The status of a collective operation says nothing.
                    if let &[at] = &exchange.received[..]
                        && self.posted[at as usize].tag != NEIGHBOURS
                    {
                        self.came(at, Some((0, from, tag)));
                    }
                    waits.append(&mut self.waits_of(&exchange));
                }
                Some(Request::Unmodelled(what)) => unseen = Some(what),
                None => unseen = Some(UNKNOWN),
                Some(Request::Template(_) | Request::Nothing) => {}
            }
        }
        if let Some(what) = unseen {
            self.skipped(what, call.t1 - since);
        }
        if waits.is_empty() {
            return;
        }
        // Receives and collectives first: what the rank waits for.
        waits.sort_by_key(|&(kind, _)| kind == Kind::WaitSent);
        self.waits(&waits, since, call.t1, ran);
    }
}
