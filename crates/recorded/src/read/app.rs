//! `app.trace`, our own recording of an MPI program: a head line, then blocks of records, rank by rank.
//!
//! A call becomes arrivals and waits. A nonblocking operation arrives where it was started and is waited for where it was
//! completed; calls that found nothing, directly before, belong to the wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::app_rank::Rank;
use super::{ReadError, json};
use crate::trace::{Away, By, Trace};

const LONGEST_HEAD: usize = 1 << 20;
/// Longest block of JSON, bytes.
const LONGEST_JSON: u64 = 16 << 20;
const BLOCK_HEAD: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Head,
    BetweenBlocks,
    In { kind: u32, rank: u32, thread: u32, left: u64 },
}

pub struct AppReader {
    source: String,
    state: State,
    pending: Vec<u8>,
    offset: u64,
    world: Option<u32>,
    current: Option<Rank>,
    done: Vec<Trace>,
    /// Intervals of absence, by rank number.
    away: BTreeMap<u32, Vec<Absence>>,
    causes: Vec<Named>,
    /// Those of all ranks.
    threads: BTreeSet<i64>,
    /// The kernel's trace was read.
    watched: bool,
}

/// An interval in which a thread was kept from running.
#[derive(Clone, Copy)]
struct Absence {
    start: i64,
    end: i64,
    tid: u32,
    kind: u16,
    cause: u32,
}

/// What kept a thread from running, as the file has it.
#[derive(Clone, Default)]
struct Named {
    name: String,
    pid: Option<i64>,
    cgroup: String,
    recorder: bool,
}

impl Named {
    /// Returns what an absence of a kind is called.
    fn phrase(&self, kind: u16) -> String {
        let Self { name, pid, cgroup, .. } = self;
        match (kind, pid) {
            (0, Some(pid)) => format!("preempted by {name} ({pid})"),
            (0, None) => format!("preempted by {name}"),
            (1, Some(pid)) => format!("stopped by {name} ({pid})"),
            (2, _) => "waiting for a disk or a page".into(),
            (3, _) if name == "quota" && !cgroup.is_empty() => format!("held back by the CPU quota of {cgroup}"),
            (3, _) if name == "quota" => "held back by a CPU quota".into(),
            (3, _) => "held back while its processor was idle".into(),
            _ => name.clone(),
        }
    }
}

/// Little-endian fields of a record.
#[derive(Clone, Copy)]
pub struct Words<'a>(pub &'a [u8]);

impl Words<'_> {
    pub fn u16(self, at: usize) -> u16 {
        self.0.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
    }

    pub fn u32(self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    pub fn i32(self, at: usize) -> i32 {
        self.u32(at) as i32
    }

    pub fn u64(self, at: usize) -> u64 {
        self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    /// Returns a time, ns. Times beyond 2^61 are none of this clock.
    pub fn time(self, at: usize) -> i64 {
        self.u64(at).min(1 << 61) as i64
    }
}

impl AppReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self {
            source: source.into(),
            state: State::Head,
            pending: Vec::new(),
            offset: 0,
            world: None,
            current: None,
            done: Vec::new(),
            away: BTreeMap::new(),
            causes: Vec::new(),
            threads: BTreeSet::new(),
            watched: false,
        }
    }

    fn wrong(&self, problem: impl Into<String>) -> ReadError {
        ReadError { place: format!("byte {}", self.offset), problem: problem.into() }
    }

    /// # Errors
    /// The file is wrong.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        while let Some(used) = self.take(rest)? {
            rest = &rest[used..];
            self.offset += used as u64;
        }
        self.pending = rest.to_vec();
        Ok(())
    }

    /// Takes the next part; `None`: more bytes are needed.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<usize>, ReadError> {
        match self.state {
            State::Head => {
                let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                    return if bytes.len() > LONGEST_HEAD {
                        Err(self.wrong("the head is longer than 1 MiB"))
                    } else {
                        Ok(None)
                    };
                };
                self.head(&bytes[..end])?;
                self.state = State::BetweenBlocks;
                Ok(Some(end + 1))
            }
            State::BetweenBlocks => {
                let Some(head) = bytes.get(..BLOCK_HEAD) else { return Ok(None) };
                let words = Words(head);
                if &head[..4] != b"CWTB" {
                    return Err(self.wrong("a block must begin with CWTB; the file is damaged"));
                }
                let (kind, rank, thread, left) = (words.u32(4), words.u32(8), words.u32(12), words.u64(16));
                if matches!(kind, 1 | 4) && left > LONGEST_JSON {
                    return Err(self.wrong(format!("the block is {left} bytes long; it must be at most 16 MiB")));
                }
                if matches!(kind, 2 | 3) && left % 8 != 0 {
                    return Err(self.wrong(format!("the block is {left} bytes long; it must be a multiple of 8")));
                }
                self.state = if left == 0 { State::BetweenBlocks } else { State::In { kind, rank, thread, left } };
                Ok(Some(BLOCK_HEAD))
            }
            State::In { kind, rank, thread, left } => {
                let used = self.inside((kind, rank, thread), left, bytes)?;
                if let Some(used) = used {
                    let left = left - used as u64;
                    self.state = if left == 0 { State::BetweenBlocks } else { State::In { kind, rank, thread, left } };
                }
                Ok(used)
            }
        }
    }

    fn inside(
        &mut self,
        (kind, rank, thread): (u32, u32, u32),
        left: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, ReadError> {
        match kind {
            1 | 4 | 5 => {
                let Some(whole) = bytes.get(..left as usize) else { return Ok(None) };
                match kind {
                    1 => self.begin_rank(whole)?,
                    4 => self.causes = causes(whole),
                    _ => self.end_rank(Words(whole).u64(8) & 1 == 1),
                }
                Ok(Some(whole.len()))
            }
            2 => {
                if bytes.len() < 8 {
                    return Ok(None);
                }
                let length = usize::from(Words(bytes).u16(2)) * 8;
                if length == 0 || length as u64 > left {
                    return Err(self.wrong(format!("a record of {length} bytes; {left} are left in its block")));
                }
                let Some(record) = bytes.get(..length) else { return Ok(None) };
                let Some(current) = &mut self.current else {
                    return Err(self.wrong("records come before the INFO of their rank"));
                };
                current
                    .record(Words(record), thread)
                    .map_err(|problem| ReadError { place: format!("record at byte {}", self.offset), problem })?;
                Ok(Some(length))
            }
            3 => {
                let length = 40.min(left as usize);
                let Some(record) = bytes.get(..length) else { return Ok(None) };
                let words = Words(record);
                if length == 40 {
                    self.away.entry(rank).or_default().push(Absence {
                        start: words.time(0),
                        end: words.time(8),
                        tid: words.u32(16),
                        kind: words.u16(20),
                        cause: words.u32(24),
                    });
                }
                Ok(Some(length))
            }
            _ => Ok((!bytes.is_empty()).then_some(bytes.len().min(left as usize))),
        }
    }

    fn head(&mut self, line: &[u8]) -> Result<(), ReadError> {
        let members = json::members(line).ok_or_else(|| self.wrong("the head must be a JSON object"))?;
        for (name, value) in members {
            match name {
                b"version" if value != b"1" => {
                    let version = String::from_utf8_lossy(&value[..value.len().min(20)]).into_owned();
                    return Err(self.wrong(format!("version is {version}; this Crosswind reads version 1")));
                }
                b"world_size" => {
                    self.world = json::scaled(value, 0)
                        .and_then(|world| u32::try_from(world).ok())
                        .filter(|&world| world <= super::MOST_RANKS)
                }
                b"kernel_trace" => {
                    let used = |(name, value): (&[u8], &[u8])| name == b"used" && value == b"true";
                    self.watched = json::members(value).is_some_and(|mut members| members.any(used));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn begin_rank(&mut self, info: &[u8]) -> Result<(), ReadError> {
        self.end_rank(false);
        let rank = Rank::new(&self.source, info, self.world).map_err(|problem| self.wrong(problem))?;
        self.current = Some(rank);
        Ok(())
    }

    fn end_rank(&mut self, complete: bool) {
        if let Some(rank) = self.current.take() {
            let threads = rank.threads().to_vec();
            self.threads.extend(threads.iter().map(|&thread| i64::from(thread)));
            let trace = rank.finish(complete);
            // What keeps a thread from running that MPI made for itself is no lateness of the rank.
            if let Some(away) = self.away.get_mut(&trace.number()).filter(|_| !threads.is_empty()) {
                away.retain(|away| threads.contains(&away.tid));
            }
            self.done.push(trace);
        }
    }

    /// # Errors
    /// The file holds no rank.
    pub fn finish(mut self) -> Result<Vec<Trace>, ReadError> {
        if self.state == State::Head {
            return Err(self.wrong("the file ends in its head"));
        }
        self.end_rank(false);
        if self.done.is_empty() {
            return Err(self.wrong("there are no ranks"));
        }
        let cut = !self.pending.is_empty() || self.state != State::BetweenBlocks;
        for trace in &mut self.done {
            trace.watched = self.watched;
            let mut phrases: BTreeMap<(u16, u32), Arc<str>> = BTreeMap::new();
            let unknown = Named { name: "an unknown process".into(), ..Named::default() };
            for Absence { start, end, kind, cause, .. } in self.away.remove(&trace.number()).into_iter().flatten() {
                let named = self.causes.get(cause as usize).unwrap_or(&unknown);
                let cause = phrases.entry((kind, cause)).or_insert_with(|| named.phrase(kind).into());
                let by = match named.pid {
                    _ if named.recorder => By::Recorder,
                    Some(pid) if self.threads.contains(&pid) => By::Rank,
                    _ => By::Other,
                };
                trace.away.push(Away { start, end, cause: Arc::clone(cause), by });
            }
            trace.away.sort_by_key(|away| away.start);
        }
        if cut && let Some(last) = self.done.last_mut() {
            last.refusals.push("events are missing: the file is cut short".into());
        }
        Ok(self.done)
    }
}

fn causes(list: &[u8]) -> Vec<Named> {
    let one = |cause: &&[u8]| {
        let mut found = Named { name: "an unknown process".into(), ..Named::default() };
        for (name, value) in json::members(cause).into_iter().flatten() {
            match name {
                b"name" => found.name = json::string(value).unwrap_or_default().into_owned(),
                b"pid" => found.pid = json::scaled(value, 0),
                b"recorder" => found.recorder = value == b"true",
                b"cgroup" => found.cgroup = json::string(value).unwrap_or_default().into_owned(),
                _ => {}
            }
        }
        found
    };
    json::elements(list).iter().map(one).collect()
}
