//! The records of one rank of an `app.trace`; what its calls mean stands in `app_calls`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::app::Words;
use super::windows::Window;
use super::{MOST_RANKS, json};
use crate::trace::{Event, Key, Kind, Part, Trace};

/// A wait continues calls that found nothing, or a probe, if it begins this soon after them, ns.
const CONTINUED_NS: i64 = 50_000;
/// First kind of record that is communication: what comes before is the beginning and the end.
const FIRST_CALL: u16 = 10;
/// A verdict is refused where calls that are not modelled take more than one part in this many of the run.
const UNMODELLED: i64 = 50;
pub const NO_PEER: i32 = -2;

struct Comm {
    name: Arc<str>,
    /// Its ranks, numbered as in the world.
    members: Vec<i32>,
    /// Those of the other group, if it links two.
    remote: Vec<i32>,
    /// Its own ranks that this one receives from and sends to in neighbourhood collectives.
    neighbours: Option<(Vec<i32>, Vec<i32>)>,
}

/// Messages that begin together: events of those sent, places of those received.
#[derive(Clone, Default)]
pub struct Exchange {
    pub sent: Vec<u32>,
    pub received: Vec<u32>,
}

/// What a request stands for.
#[derive(Clone)]
pub enum Request {
    Send(u32),
    /// Index of the receive in the order of posting.
    Receive(u32),
    Collective(u32),
    Exchange(Box<Exchange>),
    /// Started again and again: the call that made it.
    Template(Arc<Call>),
    Nothing,
    Unmodelled(&'static str),
}

/// A receive whose source and tag are known when it is over.
pub struct Posted {
    pub event: u32,
    comm: u32,
    from: i32,
    pub tag: i32,
}

/// Calls that found nothing, or a probe: from when to when, and the CPU time before them.
#[derive(Clone, Copy)]
pub struct Polled {
    pub begin: i64,
    pub end: i64,
    pub ran: i64,
    /// What was asked for last; 0: any message.
    pub request: u64,
    /// The rank waited all the time, so that its waiting is lost if no receive follows.
    pub is_probe: bool,
}

impl Polled {
    /// Whether a call at `begin` continues it; `ran`: CPU time in between. A rank that sleeps between two looks waits as well.
    pub fn continues(&self, begin: i64, ran: i64, same: bool) -> bool {
        let gap = begin - self.end;
        begin >= self.begin && (gap <= CONTINUED_NS || (same && !self.is_probe && ran >= 0 && 2 * ran < gap))
    }
}

#[derive(Clone)]
pub struct Call {
    pub kind: u16,
    pub comm: u32,
    pub t0: i64,
    pub t1: i64,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    pub request: u64,
    pub extras: Vec<(u64, i32, i32)>,
}

pub struct Rank {
    pub(super) trace: Trace,
    comms: BTreeMap<u32, Comm>,
    pub(super) requests: BTreeMap<u64, Request>,
    /// Handles of requests that are over when they begin: any number of sends, or receives from nowhere, have the same.
    pub(super) shared: BTreeSet<u64>,
    /// Started and not completed, with their templates.
    pub(super) started: BTreeMap<u64, Request>,
    pub(super) posted: Vec<Posted>,
    collectives: BTreeMap<Arc<str>, u32>,
    sends: BTreeMap<(u32, i32, i32), u32>,
    names: BTreeMap<u16, Arc<str>>,
    together: u32,
    /// Calls that found nothing, or a probe, directly before the next call.
    pub(super) polled: Option<Polled>,
    /// CPU time at the end of the last call, and whether CPU time is recorded.
    cpu: Option<i64>,
    has_cpu: bool,
    /// The kernel's numbers of the threads that called MPI.
    threads: Vec<u32>,
    /// The thread whose calls are read.
    thread: Option<u32>,
    /// Matched messages: communicator, source and tag.
    pub(super) messages: BTreeMap<u64, (u32, i32, i32)>,
    pub(super) windows: BTreeMap<u64, Window>,
    /// There are one-sided calls that move data, whose bytes are not recorded; and calls that wait for them.
    pub(super) moved: bool,
    pub(super) synchronised: bool,
    /// The MPI is one whose Win_start waits until all ranks of its group have posted.
    pub(super) starts_wait: bool,
    unmodelled: BTreeMap<&'static str, i64>,
}

/// Which ranks need which in a collective operation.
#[derive(Clone, Copy)]
enum Needs {
    /// All need all.
    All,
    /// All others need the root.
    Root,
    /// The root needs all others.
    Others,
    /// Each needs those at lower places.
    Lower,
}

/// Whether Win_start of a library, by its description of itself, waits for the posts of its group.
fn starts_wait_in(library: &[u8]) -> bool {
    let holds = |words: &[u8]| library.windows(words.len()).any(|part| part == words);
    library.starts_with(b"\"Open MPI") || (library.starts_with(b"\"MPICH") && holds(b"ch4"))
}

/// Returns the name of a collective operation and how it couples ranks; `None`: it cannot be modelled.
fn collective(kind: u16) -> Option<(&'static str, Needs)> {
    use Needs::{All, Lower, Others, Root};
    Some(match kind {
        70 => ("barrier", All),
        71 => ("bcast", Root),
        72 => ("reduce", Others),
        73 => ("allreduce", All),
        74 => ("gather", Others),
        75 => ("gatherv", Others),
        76 => ("scatter", Root),
        77 => ("scatterv", Root),
        78 => ("allgather", All),
        79 => ("allgatherv", All),
        80 => ("alltoall", All),
        81 => ("alltoallv", All),
        82 => ("alltoallw", All),
        83 => ("reduce_scatter", All),
        84 => ("reduce_scatter_block", All),
        85 => ("scan", Lower),
        86 => ("exscan", Lower),
        120..=122 | 124..=131 | 133 => ("comm_split", All),
        205 => ("win_create", All),
        206 => ("win_fence", All),
        207 => ("win_free", All),
        _ => return None,
    })
}

impl Rank {
    /// Begins with the INFO of a rank.
    pub fn new(source: &str, info: &[u8], world: Option<u32>) -> Result<Self, String> {
        let mut trace = Trace { source: source.into(), world, sized: true, ..Trace::default() };
        let (mut has_cpu, mut threads, mut starts_wait) = (true, Vec::new(), false);
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
                b"library" => starts_wait = starts_wait_in(value),
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
            shared: BTreeSet::new(),
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
            thread: None,
            messages: BTreeMap::new(),
            windows: BTreeMap::new(),
            moved: false,
            synchronised: false,
            starts_wait,
            unmodelled: BTreeMap::new(),
        })
    }

    #[must_use]
    pub fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// Takes one record of a thread, whose head says its kind.
    pub fn record(&mut self, words: Words<'_>, thread: u32) -> Result<(), String> {
        let (bytes, kind) = (words.0.len(), words.u16(0));
        if matches!(kind, FIRST_CALL..300 | 300 | 301 | 400..700) {
            let first = *self.thread.get_or_insert(thread);
            if first != thread {
                self.refuse_threads();
                return Ok(());
            }
        }
        match kind {
            1..300 | 400..700 if bytes >= 64 => {
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
            300 if bytes >= 64 => {
                let (begin, end, request) = (words.time(8), words.time(16), words.u64(56));
                let ran = self.ran(words.time(24), words.time(32));
                let before = self.polled.take();
                let is_same = |before: &Polled| before.continues(begin, ran, before.request == request);
                self.polled = Some(match before {
                    Some(before) if is_same(&before) => Polled { end, request, ..before },
                    lost => {
                        self.lose(lost);
                        Polled { begin, end, ran, request, is_probe: false }
                    }
                });
            }
            301 if bytes >= 32 => {
                let (t, cpu) = (words.time(8), words.time(16));
                let ran = self.ran(cpu, cpu);
                self.trace.push(Kind::Step, 0, t, t, ran);
            }
            310 if bytes >= 48 => self.comm(words)?,
            312 if bytes >= 16 => self.topology(words)?,
            _ => {}
        }
        Ok(())
    }

    /// Counts a probe that no receive followed.
    pub(super) fn lose(&mut self, polled: Option<Polled>) {
        if let Some(probe) = polled.filter(|polled| polled.is_probe) {
            self.skipped("probes whose message is received later", probe.end - probe.begin);
        }
    }

    fn refuse_threads(&mut self) {
        let reason = format!(
            "several threads of rank {} call MPI: which of them waits for which is not known",
            self.trace.number()
        );
        if !self.trace.refusals.contains(&reason) {
            self.trace.refusals.push(reason);
        }
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
        let ranks = |from: usize, count: usize| (from..from + count).map(|at| words.i32(first + 4 * at)).collect();
        let name: Arc<str> = if id == 1 { "world".into() } else { format!("communicator {id}").into() };
        let (members, remote) = (ranks(0, local), ranks(local, remote));
        self.comms.insert(index, Comm { name, members, remote, neighbours: None });
        Ok(())
    }

    fn topology(&mut self, words: Words<'_>) -> Result<(), String> {
        let (sources, targets) = (words.u32(8) as usize, words.u32(12) as usize);
        if words.0.len() < 16 + 4 * sources.saturating_add(targets) {
            return Err(format!("a topology of {sources} sources and {targets} targets does not fit into its record"));
        }
        let ranks = |from: usize, count: usize| (from..from + count).map(|at| words.i32(16 + 4 * at)).collect();
        if let Some(comm) = self.comms.get_mut(&words.u32(4)) {
            comm.neighbours = Some((ranks(0, sources), ranks(sources, targets)));
        }
        Ok(())
    }

    /// Returns the ranks that this one receives from and sends to in neighbourhood collectives.
    pub(super) fn neighbours(&self, comm: u32) -> Option<(Vec<i32>, Vec<i32>)> {
        self.comms.get(&comm)?.neighbours.clone()
    }

    pub(super) fn skipped(&mut self, what: &'static str, ns: i64) {
        let sum = self.unmodelled.entry(what).or_default();
        *sum = sum.saturating_add(ns.max(0));
    }

    /// Returns a rank of a communicator as one of the world; messages between groups go to the other one.
    pub(super) fn world_rank(&self, comm: u32, rank: i32) -> Option<u32> {
        let comm = self.comms.get(&comm)?;
        let members = if comm.remote.is_empty() { &comm.members } else { &comm.remote };
        usize::try_from(rank).ok().and_then(|rank| members.get(rank)).and_then(|&rank| u32::try_from(rank).ok())
    }

    pub(super) fn name(&mut self, kind: u16, name: &str) -> Arc<str> {
        Arc::clone(self.names.entry(kind).or_insert_with(|| name.into()))
    }

    pub(super) fn event(&mut self, event: Event) -> u32 {
        self.trace.events.push(event);
        (self.trace.events.len() - 1) as u32
    }

    /// Adds a message to a rank of a communicator, which is rank `to` of the world.
    pub(super) fn sent(&mut self, call: &Call, peer: i32, to: u32, tag: i32, bytes: u64) -> u32 {
        let number = self.sends.entry((call.comm, peer, tag)).or_default();
        let comm = self.comms.get(&call.comm).map(|comm| Arc::clone(&comm.name)).unwrap_or_default();
        let key = Key::Message { comm, from: self.trace.number(), to, tag: tag.into(), number: *number };
        *number += 1;
        let name = self.name(10, "send");
        self.message(key, Part::Gives, name, bytes, call.t0)
    }

    /// Adds a message that is posted at `t0`; its waits follow.
    fn message(&mut self, key: Key, part: Part, name: Arc<str>, size: u64, t0: i64) -> u32 {
        self.event(Event { key, part, name, size, start: t0, since: t0, end: t0, together: None })
    }

    /// Whether messages of a communicator come from ranks that are known.
    pub(super) fn has_peers(&self, comm: u32) -> bool {
        self.comms.get(&comm).is_some_and(|comm| !comm.members.is_empty())
    }

    /// Adds a receive that is posted at `t0`; its number follows when all are known.
    pub(super) fn received(&mut self, comm: u32, peer: i32, tag: i32, bytes: u64, t0: i64) -> u32 {
        let key = Key::Message { comm: "".into(), from: 0, to: self.trace.number(), tag: tag.into(), number: 0 };
        let name = self.name(14, "recv");
        let event = self.message(key, Part::Takes, name, bytes, t0);
        self.posted.push(Posted { event, comm, from: peer, tag });
        (self.posted.len() - 1) as u32
    }

    /// Adds a collective operation, by the number of its blocking form. `None`: it cannot be modelled.
    pub(super) fn collective(&mut self, call: &Call, kind: u16) -> Option<u32> {
        let (name, needs) = collective(kind)?;
        let comm = self.comms.get(&call.comm).filter(|comm| comm.remote.is_empty() && !comm.members.is_empty())?;
        let name_of = Arc::clone(&comm.name);
        let me = i64::from(self.trace.number());
        let mine = comm.members.iter().position(|&rank| i64::from(rank) == me).map(|at| at as i32);
        let is_root = mine == Some(call.peer);
        let part = match needs {
            Needs::All => Part::All,
            Needs::Root if is_root => Part::Gives,
            Needs::Others if !is_root => Part::Gives,
            Needs::Root | Needs::Others => Part::Takes,
            Needs::Lower => Part::Prefix(mine.and_then(|mine| u32::try_from(mine).ok())?),
        };
        let (event, number) = self.numbered(call, (kind, name), part, Arc::clone(&name_of));
        if kind == 205 {
            self.windows.insert(call.request, Window::new(format!("window {number} of {name_of}").into()));
        }
        Some(event)
    }

    /// Adds an operation of all ranks of a window. `None`: the window is not known.
    pub(super) fn at_window(&mut self, call: &Call) -> Option<u32> {
        let comm = self.windows.get(&call.request)?.name();
        let (name, _) = collective(call.kind)?;
        Some(self.numbered(call, (call.kind, name), Part::All, comm).0)
    }

    /// Adds the next collective operation of a communicator or a window, and returns its number there.
    fn numbered(&mut self, call: &Call, (kind, name): (u16, &str), part: Part, comm: Arc<str>) -> (u32, u32) {
        let next = self.collectives.entry(Arc::clone(&comm)).or_default();
        let number = *next;
        *next += 1;
        let key = Key::Collective { comm, number };
        let name = self.name(kind, name);
        let (start, since, end) = (call.t0, call.t0, call.t1);
        (self.event(Event { key, part, name, size: call.bytes, start, since, end, together: None }), number)
    }

    /// Marks an operation as waited for from `since` to `end`, and adds the wait.
    pub(super) fn wait(
        &mut self,
        kind: Kind,
        event: u32,
        (since, end): (i64, i64),
        together: Option<u32>,
        last: bool,
        ran: i64,
    ) {
        let of = &mut self.trace.events[event as usize];
        (of.since, of.end, of.together) = (since, end, together);
        self.trace.push(kind, event, since, if last { end } else { since }, ran);
    }

    /// Says where a receive's message came from.
    pub(super) fn came(&mut self, at: u32, status: Option<(u64, i32, i32)>) {
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
    pub(super) fn waits(&mut self, waits: &[(Kind, u32)], since: i64, end: i64, mut ran: i64) {
        self.together += 1;
        let together = (waits.len() > 1).then_some(self.together);
        for (at, &(kind, event)) in waits.iter().enumerate() {
            self.wait(kind, event, (since, end), together, at + 1 == waits.len(), ran);
            ran = 0;
        }
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
        // Fences and the like would be all that a simulated network sees of these calls.
        self.trace.sized &= !(self.moved && self.synchronised);
        let whole = self.trace.ended - self.trace.began;
        let unseen = self.unmodelled.values().fold(0, |sum: i64, ns| sum.saturating_add(*ns));
        if let Some((what, _)) = self.unmodelled.iter().max_by_key(|(_, ns)| **ns)
            && unseen.saturating_mul(UNMODELLED) > whole
        {
            let (more, is) = match self.unmodelled.len() {
                1 => (String::new(), "takes"),
                several => (format!(" (and {} other kinds of calls)", several - 1), "take"),
            };
            let seconds = unseen as f64 * 1e-9;
            self.trace.refusals.push(format!(
                "{what}{more} {is} {seconds:.3} s and {} not modelled: the waits in them are not seen",
                if is == "takes" { "is" } else { "are" }
            ));
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
