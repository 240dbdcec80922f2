//! GOAL schedules, whose ranks were never recorded: they run here, each for the times of its `calc`, on a network that costs
//! nothing.
//!
//! The replay keeps the order in which a rank does what it does here. A message is waited for before the first operation that
//! became free after it had come: those before do not need it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crosswind_program::goal::GoalRank;
use crosswind_program::op::{self, Body, Op};
use crosswind_program::{Goal, Program, Rank};

use super::ReadError;
use crate::trace::{Event, Key, Kind, Part, Trace};

const LONGEST_BYTES: usize = 1 << 30;
pub const SCHEDULED: &str =
    "the times are those of the schedule, not measured ones, and its network costs nothing here";

pub struct GoalReader {
    source: String,
    text: Vec<u8>,
}

impl GoalReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), text: Vec::new() }
    }

    /// # Errors
    /// The schedule is longer than 1 GiB.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        if self.text.len() + bytes.len() > LONGEST_BYTES {
            return Err(ReadError::file("the schedule is longer than 1 GiB"));
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns what each rank does when.
    ///
    /// # Errors
    /// The text is no schedule, or its ranks wait for ever.
    pub fn finish(self) -> Result<Vec<Trace>, ReadError> {
        let goal =
            Goal::parse(&self.text).map_err(|error| ReadError::line(error.line as u64, error.problem.clone()))?;
        if let Some(rank) = goal.several_processors() {
            return Err(ReadError::file(format!(
                "operations of rank {rank} name a cpu or nic other than 0; blame follows one processor per rank. Leave cpu and nic \
                 out, or simulate the schedule: crosswind run {}",
                self.source
            )));
        }
        let mut schedule = Schedule::new(&goal, &self.source);
        schedule.run();
        if let Some(rank) = schedule.ranks.iter().position(|rank| rank.waits_since.is_some()) {
            let what = schedule.ranks[rank].program.waits_for();
            return Err(ReadError::file(format!("rank {rank} waits for ever: {what}")));
        }
        let results: Vec<Vec<u64>> = schedule.ranks.iter().map(|rank| rank.program.result()).collect();
        goal.check(&results).map_err(ReadError::file)?;
        let trace = |mut rank: Running| {
            rank.wait_for_what_is_needed(u32::MAX);
            let mut trace = rank.trace;
            let ended = trace.ended;
            trace.push(Kind::Step, 0, ended, ended, -1);
            trace
        };
        Ok(schedule.ranks.into_iter().map(trace).collect())
    }
}

struct Message {
    from: u32,
    body: Body,
    tag: u64,
    /// Number among those with its tag from its sender.
    number: u32,
}

/// A receive that is over: its event, and the operations that had become free before.
struct Received {
    event: Event,
    freed: u32,
}

struct Running {
    program: GoalRank,
    trace: Trace,
    now: i64,
    waits_since: Option<i64>,
    came: Vec<Message>,
    /// Receives that are over, which no operation has needed yet.
    received: Vec<Received>,
    sent: BTreeMap<(u32, u64), u32>,
}

impl Running {
    /// Waits for the messages that had come before an operation at this position became free.
    fn wait_for_what_is_needed(&mut self, position: u32) {
        let needed = self.received.partition_point(|received| received.freed <= position);
        for received in self.received.drain(..needed) {
            self.trace.push_blocking(received.event, -1);
        }
    }
}

struct Schedule {
    ranks: Vec<Running>,
    /// When each rank can continue.
    ready: BinaryHeap<Reverse<(i64, u32)>>,
    world: Arc<str>,
    send: Arc<str>,
    receive: Arc<str>,
}

impl Schedule {
    fn new(goal: &Goal, source: &str) -> Self {
        let world = goal.ranks();
        let host: Arc<str> = "schedule".into();
        let running = |rank: u32| {
            let trace = Trace {
                source: source.into(),
                rank: Some(rank),
                world: Some(world),
                host: Some(Arc::clone(&host)),
                notes: vec![SCHEDULED.into()],
                scheduled: true,
                ..Trace::default()
            };
            let program = goal.rank(rank);
            Running {
                program,
                trace,
                now: 0,
                waits_since: None,
                came: Vec::new(),
                received: Vec::new(),
                sent: BTreeMap::new(),
            }
        };
        Self {
            ranks: (0..world).map(running).collect(),
            ready: (0..world).map(|rank| Reverse((0, rank))).collect(),
            world: "world".into(),
            send: "send".into(),
            receive: "recv".into(),
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((now, rank))) = self.ready.pop() {
            self.handle(rank, now);
            self.go_on(rank);
        }
        // Messages for ranks that are done.
        for rank in 0..self.ranks.len() as u32 {
            if !self.ranks[rank as usize].came.is_empty() {
                self.handle(rank, self.ranks[rank as usize].now);
            }
        }
    }

    /// Hands a rank the messages that have come, at a time at which it can take them.
    fn handle(&mut self, rank: u32, now: i64) {
        let one = &mut self.ranks[rank as usize];
        let mut since = one.waits_since.take().unwrap_or(now);
        one.now = now;
        for message in std::mem::take(&mut one.came) {
            let key = Key::Message {
                comm: Arc::clone(&self.world),
                from: message.from,
                to: rank,
                tag: message.tag as i64,
                number: message.number,
            };
            let name = Arc::clone(&self.receive);
            let event = Event { key, part: Part::Takes, name, size: 0, start: since, since, end: now, together: None };
            one.received.push(Received { event, freed: one.program.freed() });
            one.program.handle(message.from, op::Kind::Post, message.body);
            since = now;
        }
    }

    /// Lets a rank work until it computes, waits or is done.
    fn go_on(&mut self, rank: u32) {
        loop {
            let one = &mut self.ranks[rank as usize];
            let now = one.now;
            let next = one.program.next();
            if matches!(next, Op::Compute { .. } | Op::Message { .. }) {
                one.wait_for_what_is_needed(one.program.issued());
            }
            match next {
                Op::Compute { ns } => {
                    let end = now.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX));
                    one.trace.ended = end;
                    self.ready.push(Reverse((end, rank)));
                    return;
                }
                Op::Message { to, bytes, body, .. } => {
                    let tag = if let Body::Pair([tag, _]) = body { tag } else { 0 };
                    let next = one.sent.entry((to, tag)).or_default();
                    let number = *next;
                    *next += 1;
                    let comm = Arc::clone(&self.world);
                    let key = Key::Message { comm, from: rank, to, tag: tag as i64, number };
                    let name = Arc::clone(&self.send);
                    let at = one.trace.events.len() as u32;
                    let (start, since, end) = (now, now, now);
                    one.trace.events.push(Event {
                        key,
                        part: Part::Gives,
                        name,
                        size: bytes,
                        start,
                        since,
                        end,
                        together: None,
                    });
                    one.trace.push(Kind::Post, at, now, now, -1);
                    let other = &mut self.ranks[to as usize];
                    other.came.push(Message { from: rank, body, tag, number });
                    if other.waits_since.is_some() && other.came.len() == 1 {
                        self.ready.push(Reverse((now, to)));
                    }
                }
                Op::Wait if one.came.is_empty() => {
                    one.waits_since = Some(now);
                    return;
                }
                Op::Wait => self.handle(rank, now),
                // A schedule has no other operations.
                _ => return,
            }
        }
    }
}
