//! The calls of one rank of an `app.trace`, as arrivals and waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::app::Words;
use super::{MOST_RANKS, json};
use crate::trace::{Event, Key, Kind, Part, Trace};

/// A wait continues calls that found nothing, or a probe, if it begins this soon after them, ns.
const CONTINUED_NS: i64 = 50_000;
/// A verdict is refused where calls that are not modelled take more than one part in this many of the run.
const UNMODELLED: i64 = 50;
const NO_PEER: i32 = -2;

struct Comm {
    name: Arc<str>,
    /// Its ranks, numbered as in the world.
    members: Vec<i32>,
}

/// What a request stands for.
#[derive(Clone, Copy)]
enum Request {
    Send(u32),
    /// Index of the receive in the order of posting.
    Receive(u32),
    Collective(u32),
    /// Started again and again: the call that made it.
    Template {
        receives: bool,
        comm: u32,
        peer: i32,
        tag: i32,
        bytes: u64,
    },
    None,
}

/// A receive whose source and tag are known when it is over.
struct Posted {
    event: u32,
    comm: u32,
    from: i32,
    tag: i32,
}

/// Calls that found nothing: from when to when, and the CPU time before them.
#[derive(Clone, Copy)]
struct Polled {
    begin: i64,
    end: i64,
    ran: i64,
}

struct Call {
    kind: u16,
    comm: u32,
    t0: i64,
    t1: i64,
    peer: i32,
    tag: i32,
    bytes: u64,
    request: u64,
    extras: Vec<(u64, i32, i32)>,
}

pub struct Rank {
    trace: Trace,
    comms: BTreeMap<u32, Comm>,
    requests: BTreeMap<u64, Request>,
    /// Started and not completed, with their templates.
    started: BTreeMap<u64, Request>,
    posted: Vec<Posted>,
    collectives: BTreeMap<Arc<str>, u32>,
    sends: BTreeMap<(u32, i32, i32), u32>,
    names: BTreeMap<u16, Arc<str>>,
    together: u32,
    /// Calls that found nothing, or a probe, directly before the next call.
    polled: Option<Polled>,
    /// CPU time at the end of the last call, and whether CPU time is recorded.
    cpu: Option<i64>,
    has_cpu: bool,
    /// The kernel's numbers of the threads that called MPI.
    threads: Vec<u32>,
    unmodelled: BTreeMap<&'static str, i64>,
}

/// Returns the name of a collective operation and how it couples ranks; `None`: it cannot be modelled.
fn collective(kind: u16) -> Option<(&'static str, Option<bool>)> {
    // Some(true): all others need the root; Some(false): the root needs all others.
    Some(match kind {
        70 => ("barrier", None),
        71 => ("bcast", Some(true)),
        72 => ("reduce", Some(false)),
        73 => ("allreduce", None),
        74 => ("gather", Some(false)),
        75 => ("gatherv", Some(false)),
        76 => ("scatter", Some(true)),
        77 => ("scatterv", Some(true)),
        78 => ("allgather", None),
        79 => ("allgatherv", None),
        80 => ("alltoall", None),
        81 => ("alltoallv", None),
        82 => ("alltoallw", None),
        83 => ("reduce_scatter", None),
        84 => ("reduce_scatter_block", None),
        120..=122 | 124..=131 | 133 => ("comm_split", None),
        _ => return None,
    })
}

impl Rank {
    /// Begins with the INFO of a rank.
    pub fn new(source: &str, info: &[u8], world: Option<u32>) -> Result<Self, String> {
        let mut trace = Trace { source: source.into(), world, sized: true, ..Trace::default() };
        let (mut has_cpu, mut threads) = (true, Vec::new());
        for (name, value) in json::members(info).ok_or("the INFO of a rank must be a JSON object")? {
            let number = || json::scaled(value, 0);
            match name {
                b"rank" => {
                    trace.rank = number().and_then(|rank| u32::try_from(rank).ok()).filter(|&rank| rank < MOST_RANKS)
                }
                b"world_size" => {
                    trace.world =
                        number().and_then(|world| u32::try_from(world).ok()).filter(|&world| world <= MOST_RANKS)
                }
                b"host_id" => {
                    trace.host = json::string(value).filter(|host| !host.is_empty()).map(|host| host.as_ref().into())
                }
                b"init_ns" => trace.began = number().unwrap_or(0).clamp(0, 1 << 61),
                b"finalize_ns" => trace.ended = number().unwrap_or(0).clamp(0, 1 << 61),
                b"threads" => {
                    let tid = |thread: &&[u8]| {
                        let (_, tid) = json::members(thread)?.find(|(name, _)| *name == b"tid")?;
                        u32::try_from(json::scaled(tid, 0)?).ok()
                    };
                    threads = json::elements(value).iter().filter_map(tid).collect();
                }
                b"cpu_clock" => has_cpu = value != b"\"none\"",
                b"lost" if number().unwrap_or(0) > 0 => trace
                    .refusals
                    .push(format!("events are missing: {} records could not be written", number().unwrap_or(0))),
                _ => {}
            }
        }
        if trace.rank.is_none() {
            return Err("rank is missing in the INFO of a rank, or is not from 0 to 999999".into());
        }
        trace.ended = trace.ended.max(trace.began);
        Ok(Self {
            trace,
            comms: BTreeMap::new(),
            requests: BTreeMap::new(),
            started: BTreeMap::new(),
            posted: Vec::new(),
            collectives: BTreeMap::new(),
            sends: BTreeMap::new(),
            names: BTreeMap::new(),
            together: 0,
            polled: None,
            cpu: None,
            has_cpu,
            threads,
            unmodelled: BTreeMap::new(),
        })
    }

    #[must_use]
    pub fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// Takes one record, whose head says its kind.
    pub fn record(&mut self, words: Words<'_>) -> Result<(), String> {
        let bytes = words.0.len();
        match words.u16(0) {
            kind @ 1..300 if bytes >= 64 => {
                let extra = |at: usize| (words.u64(at), words.i32(at + 8), words.i32(at + 12));
                let call = Call {
                    kind,
                    comm: words.u32(4),
                    t0: words.time(8),
                    t1: words.time(16).max(words.time(8)),
                    peer: words.i32(40),
                    tag: words.i32(44),
                    bytes: words.u64(48),
                    request: words.u64(56),
                    extras: (0..(bytes - 64) / 24).map(|number| extra(64 + 24 * number)).collect(),
                };
                let ran = self.ran(words.time(24), words.time(32));
                self.call(&call, ran);
            }
            kind @ 401..700 if bytes >= 64 => {
                let request = words.u64(56);
                self.requests.insert(request, Request::None);
                self.skipped(
                    if kind >= 470 { "persistent collectives" } else { "other calls" },
                    words.time(16) - words.time(8),
                );
            }
            300 if bytes >= 64 => {
                let ran = self.ran(words.time(24), words.time(32));
                self.polled = Some(Polled { begin: words.time(8), end: words.time(16), ran });
            }
            301 if bytes >= 32 => {
                let (t, cpu) = (words.time(8), words.time(16));
                let ran = self.ran(cpu, cpu);
                self.trace.push(Kind::Step, 0, t, t, ran);
            }
            310 if bytes >= 48 => self.comm(words)?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the CPU time since the last call, ns, or -1.
    fn ran(&mut self, before: i64, after: i64) -> i64 {
        let ran = self.cpu.map_or(-1, |cpu| (before - cpu).max(0));
        self.cpu = self.has_cpu.then_some(after);
        if self.has_cpu { ran } else { -1 }
    }

    fn comm(&mut self, words: Words<'_>) -> Result<(), String> {
        let index = words.u32(4);
        let id = words.u64(8);
        let (local, remote) = (words.u32(28) as usize, words.u32(32) as usize);
        let first = 40;
        if words.0.len() < first + 4 * local.saturating_add(remote) {
            return Err(format!("a communicator of {local} ranks does not fit into its record"));
        }
        let members = if remote > 0 { Vec::new() } else { (0..local).map(|at| words.i32(first + 4 * at)).collect() };
        let name: Arc<str> = if id == 1 { "world".into() } else { format!("communicator {id}").into() };
        self.comms.insert(index, Comm { name, members });
        Ok(())
    }

    fn skipped(&mut self, what: &'static str, ns: i64) {
        let sum = self.unmodelled.entry(what).or_default();
        *sum = sum.saturating_add(ns.max(0));
    }

    /// Returns a rank of a communicator as one of the world.
    fn world_rank(&self, comm: u32, rank: i32) -> Option<u32> {
        let members = &self.comms.get(&comm)?.members;
        usize::try_from(rank).ok().and_then(|rank| members.get(rank)).and_then(|&rank| u32::try_from(rank).ok())
    }

    fn name(&mut self, kind: u16, name: &str) -> Arc<str> {
        Arc::clone(self.names.entry(kind).or_insert_with(|| name.into()))
    }

    fn event(&mut self, event: Event) -> u32 {
        self.trace.events.push(event);
        (self.trace.events.len() - 1) as u32
    }

    /// Adds a send; `None` where it goes nowhere.
    fn send(&mut self, comm: u32, peer: i32, tag: i32, bytes: u64, t0: i64) -> Option<u32> {
        let to = self.world_rank(comm, peer)?;
        let number = self.sends.entry((comm, peer, tag)).or_default();
        let key = Key::Message {
            comm: Arc::clone(&self.comms.get(&comm)?.name),
            from: self.trace.number(),
            to,
            tag: tag.into(),
            number: *number,
        };
        *number += 1;
        let name = self.name(10, "send");
        Some(self.message(key, Part::Gives, name, bytes, t0))
    }

    /// Adds a message that is posted at `t0`; its waits follow.
    fn message(&mut self, key: Key, part: Part, name: Arc<str>, size: u64, t0: i64) -> u32 {
        self.event(Event { key, part, name, size, start: t0, since: t0, end: t0, together: None })
    }

    /// Adds a receive, whose number follows when all are known. `None` where it comes from nowhere.
    fn receive(&mut self, comm: u32, peer: i32, tag: i32, bytes: u64, t0: i64) -> Option<u32> {
        if peer == NO_PEER || self.comms.get(&comm).is_none_or(|comm| comm.members.is_empty()) {
            return None;
        }
        let key = Key::Message { comm: "".into(), from: 0, to: self.trace.number(), tag: tag.into(), number: 0 };
        let name = self.name(14, "recv");
        let event = self.message(key, Part::Takes, name, bytes, t0);
        self.posted.push(Posted { event, comm, from: peer, tag });
        Some((self.posted.len() - 1) as u32)
    }

    fn collective(&mut self, call: &Call, kind: u16) -> Option<u32> {
        let (name, rooted) = collective(kind)?;
        let comm = self.comms.get(&call.comm)?;
        if comm.members.is_empty() {
            return None;
        }
        let name_of = Arc::clone(&comm.name);
        let me = i64::from(self.trace.number());
        let mine = comm.members.iter().position(|&rank| i64::from(rank) == me).map(|at| at as i32);
        let part = match rooted {
            Some(from_root) if (mine == Some(call.peer)) == from_root => Part::Gives,
            Some(_) => Part::Takes,
            None => Part::All,
        };
        let number = self.collectives.entry(Arc::clone(&name_of)).or_default();
        let key = Key::Collective { comm: name_of, number: *number };
        *number += 1;
        let name = self.name(kind, name);
        let (start, since, end) = (call.t0, call.t0, call.t1);
        Some(self.event(Event { key, part, name, size: call.bytes, start, since, end, together: None }))
    }

    /// Marks an operation as waited for from `since` to `end`, and adds the wait.
    fn wait(&mut self, kind: Kind, event: u32, (since, end): (i64, i64), together: Option<u32>, last: bool, ran: i64) {
        let of = &mut self.trace.events[event as usize];
        (of.since, of.end, of.together) = (since, end, together);
        self.trace.push(kind, event, since, if last { end } else { since }, ran);
    }

    fn call(&mut self, call: &Call, ran: i64) {
        let (t0, t1) = (call.t0, call.t1);
        // A call that completes what polling looked for has waited since the polling began.
        let polled = self.polled.take().filter(|polled| polled.begin <= t0 && t0 - polled.end <= CONTINUED_NS);
        let ran = polled.map_or(ran, |polled| polled.ran);
        let waits_since = polled.map_or(t0, |polled| polled.begin);
        let status = call.extras.first().copied();
        match call.kind {
            10..=13 => {
                if let Some(event) = self.send(call.comm, call.peer, call.tag, call.bytes, t0) {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    self.wait(Kind::WaitSent, event, (t0, t1), None, true, 0);
                }
            }
            14 | 21 => {
                let since = if call.kind == 21 || polled.is_some() { waits_since } else { t0 };
                if let Some(at) = self.receive(call.comm, call.peer, call.tag, call.bytes, since) {
                    self.came(at, status);
                    let event = self.posted[at as usize].event;
                    self.trace.push(Kind::Post, event, since, since, ran);
                    self.wait(Kind::Wait, event, (since, t1), None, true, 0);
                }
            }
            15 | 16 => {
                let second = call.extras.get(1).copied();
                let sent = self.send(call.comm, call.peer, call.tag, call.bytes, t0);
                let asked = second.or(status).map_or((-1, -1), |(_, peer, tag)| (peer, tag));
                let received = self.receive(call.comm, asked.0, asked.1, call.bytes, t0);
                if let Some(event) = sent {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                }
                let mut waits = Vec::new();
                if let Some(at) = received {
                    self.came(at, status);
                    let event = self.posted[at as usize].event;
                    self.trace.push(Kind::Post, event, t0, t0, if sent.is_some() { 0 } else { ran });
                    waits.push((Kind::Wait, event));
                }
                waits.extend(sent.map(|event| (Kind::WaitSent, event)));
                self.waits(&waits, t0, t1, 0);
            }
            17 | 19 => self.polled = Some(Polled { begin: waits_since, end: t1, ran }),
            30..=33 => {
                if let Some(event) = self.send(call.comm, call.peer, call.tag, call.bytes, t0) {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    self.requests.insert(call.request, Request::Send(event));
                }
            }
            34 | 35 => {
                if let Some(at) = self.receive(call.comm, call.peer, call.tag, call.bytes, t0) {
                    let event = self.posted[at as usize].event;
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    self.requests.insert(call.request, Request::Receive(at));
                }
            }
            40..=44 => {
                let template = Request::Template {
                    receives: call.kind == 44,
                    comm: call.comm,
                    peer: call.peer,
                    tag: call.tag,
                    bytes: call.bytes,
                };
                self.requests.insert(call.request, template);
            }
            45 | 46 => self.start(call, ran),
            50..=57 => self.complete(call, waits_since, ran),
            58 => {
                for (request, ..) in &call.extras {
                    self.requests.remove(request);
                    self.started.remove(request);
                }
            }
            70..=84 | 120..=122 | 124..=131 | 133 => {
                if let Some(event) = self.collective(call, call.kind) {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    let gives = self.trace.events[event as usize].part == Part::Gives;
                    self.wait(if gives { Kind::WaitSent } else { Kind::Wait }, event, (t0, t1), None, true, 0);
                }
            }
            170..=184 => {
                if let Some(event) = self.collective(call, call.kind - 100) {
                    self.trace.push(Kind::Post, event, t0, t0, ran);
                    self.requests.insert(call.request, Request::Collective(event));
                }
            }
            36 | 37 => self.skipped("MPI_Isendrecv", t1 - t0),
            85..=91 | 185..=191 => self.skipped("scans and neighbourhood collectives", t1 - t0),
            200 | 201 => self.skipped("one-sided communication", t1 - t0),
            202 => self.skipped("MPI files", t1 - t0),
            _ => {}
        }
    }

    /// Says where a receive's message came from.
    fn came(&mut self, at: u32, status: Option<(u64, i32, i32)>) {
        if let (Some((_, from, tag)), Some(posted)) = (status, self.posted.get_mut(at as usize)) {
            if from >= 0 {
                posted.from = from;
            }
            if tag >= 0 {
                posted.tag = tag;
            }
        }
    }

    /// Adds waits that end in one call.
    fn waits(&mut self, waits: &[(Kind, u32)], since: i64, end: i64, mut ran: i64) {
        self.together += 1;
        let together = (waits.len() > 1).then_some(self.together);
        for (at, &(kind, event)) in waits.iter().enumerate() {
            self.wait(kind, event, (since, end), together, at + 1 == waits.len(), ran);
            ran = 0;
        }
    }

    fn start(&mut self, call: &Call, mut ran: i64) {
        for (request, ..) in &call.extras {
            let Some(&Request::Template { receives, comm, peer, tag, bytes }) = self.requests.get(request) else {
                continue;
            };
            let made = if receives {
                self.receive(comm, peer, tag, bytes, call.t0)
                    .map(|at| (self.posted[at as usize].event, Request::Receive(at)))
            } else {
                self.send(comm, peer, tag, bytes, call.t0).map(|event| (event, Request::Send(event)))
            };
            if let Some((event, started)) = made {
                self.trace.push(Kind::Post, event, call.t0, call.t0, ran);
                self.started.insert(*request, started);
                ran = 0;
            }
        }
    }

    fn complete(&mut self, call: &Call, since: i64, ran: i64) {
        let mut waits = Vec::new();
        for &(request, from, tag) in &call.extras {
            let found = self.started.remove(&request).or_else(|| match self.requests.get(&request) {
                Some(Request::Template { .. }) | None => None,
                Some(_) => self.requests.remove(&request),
            });
            match found {
                Some(Request::Send(event)) => waits.push((Kind::WaitSent, event)),
                Some(Request::Collective(event)) => waits.push((Kind::Wait, event)),
                Some(Request::Receive(at)) => {
                    self.came(at, Some((0, from, tag)));
                    waits.push((Kind::Wait, self.posted[at as usize].event));
                }
                Some(Request::Template { .. } | Request::None) | None => {}
            }
        }
        if waits.is_empty() {
            if call.kind < 54 && !call.extras.is_empty() {
                self.skipped("waits for calls that are not modelled", call.t1 - call.t0);
            }
            return;
        }
        // Receives and collectives first: what the rank waits for.
        waits.sort_by_key(|&(kind, _)| kind == Kind::WaitSent);
        self.waits(&waits, since, call.t1, ran);
    }

    /// Returns the trace: numbers the receives in the order in which they were posted.
    pub fn finish(mut self, complete: bool) -> Trace {
        let mut numbers: BTreeMap<(u32, i32, i32), u32> = BTreeMap::new();
        for posted in &self.posted {
            let from = self.world_rank(posted.comm, posted.from);
            let name = self.comms.get(&posted.comm).map(|comm| Arc::clone(&comm.name));
            let number = numbers.entry((posted.comm, posted.from, posted.tag)).or_default();
            if let (Some(from), Some(comm)) = (from, name) {
                let to = self.trace.number();
                self.trace.events[posted.event as usize].key =
                    Key::Message { comm, from, to, tag: posted.tag.into(), number: *number };
            } else {
                // Never over, or from a group that is not known: nothing that could be matched.
                let to = self.trace.number();
                self.trace.events[posted.event as usize].key =
                    Key::Message { comm: "?".into(), from: u32::MAX, to, tag: 0, number: posted.event };
            }
            *number += 1;
        }
        if !complete {
            self.trace
                .refusals
                .push(format!("events are missing: the recording of rank {} ends early", self.trace.number()));
        }
        let whole = self.trace.ended - self.trace.began;
        for (what, ns) in &self.unmodelled {
            if ns.saturating_mul(UNMODELLED) > whole {
                self.trace.refusals.push(format!(
                    "{what} takes {:.3} s and is not modelled: the waits in it are not seen",
                    *ns as f64 * 1e-9
                ));
            }
        }
        if self.trace.events.is_empty() && !self.trace.acts.is_empty() {
            self.trace.refusals.push(super::steps::HIDDEN.into());
        }
        let ended = self.trace.ended;
        if self.trace.acts.last().is_some_and(|act| act.end < ended) {
            self.trace.push(Kind::Step, 0, ended, ended, -1);
        }
        self.trace
    }
}
