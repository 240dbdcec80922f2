//! Lines of NCCL's Inspector (`NCCL_INSPECTOR_DUMP_VERBOSE=1`), one file a process: a collective operation each, with
//! the times at which its kernels began and ended on the GPU.
//!
//! ```text
//! {"header": {"id": "0x7f", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {"hostname": "a", "pid": 7, ...},
//!  "coll_perf": {"coll": "AllReduce", "coll_sn": 5, "coll_msg_size_bytes": 64, ..., "event_trace_ts": {...,
//!  "kernel_events": [{"channel_id": 0, "kernel_start_ts": 1752867229235181, "kernel_stop_ts": ...}]}}}
//! ```
//!
//! Operations are numbered for each kind and communicator. The plug-in writes what ended last when it looks, so that an
//! operation is lost where two end between two looks: the numbers show that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MOST_RANKS, ReadError, json};
use crate::trace::{Event, Key, Kind, Part, Trace};

/// A verdict is refused where operations that are not modelled take more than one part in this many of the run.
const UNMODELLED: i64 = 50;
/// Latest time that a kernel may end, us.
const LATEST_US: i64 = 1 << 51;

#[derive(Clone, Copy)]
struct Operation {
    number: i64,
    size: u64,
    start: i64,
    end: i64,
}

pub struct InspectorReader {
    trace: Trace,
    /// By communicator and kind.
    operations: BTreeMap<(String, String), Vec<Operation>>,
    /// Size of the largest communicator so far, with its id: that of all ranks.
    world: (u32, String),
    /// Time in operations whose root or peer is not in the file, ns.
    unmodelled: i64,
}

impl InspectorReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self {
            trace: Trace { source: source.into(), sized: true, beside: true, ..Trace::default() },
            operations: BTreeMap::new(),
            world: (0, String::new()),
            unmodelled: 0,
        }
    }

    /// # Errors
    /// The line is wrong.
    pub fn line(&mut self, line: &[u8], number: u64) -> Result<(), ReadError> {
        let wrong = |problem: String| ReadError::line(number, problem);
        let mut found = json::members(line).ok_or_else(|| wrong("it must be a JSON object".into()))?;
        let (mut header, mut operation) = (None, None);
        for (name, value) in found.by_ref() {
            match name {
                b"header" => header = Some(value),
                b"coll_perf" | b"p2p_perf" => operation = Some((name, value)),
                _ => {}
            }
        }
        if found.is_broken() {
            return Err(wrong("it must be one whole JSON object".into()));
        }
        let (Some(header), Some((kind, operation))) = (header, operation) else {
            return Err(wrong("header or coll_perf is missing".into()));
        };
        let comm = self.header(header, number)?;
        let (name, operation) = read_operation(operation).map_err(wrong)?;
        let is_modelled = matches!(&name[..], "AllReduce" | "AllGather" | "ReduceScatter" | "AlltoAll");
        if kind == b"coll_perf" && is_modelled {
            self.operations.entry((comm, name)).or_default().push(operation);
        } else {
            self.unmodelled = self.unmodelled.saturating_add(operation.end - operation.start);
        }
        Ok(())
    }

    /// Takes a header; the communicator's id.
    fn header(&mut self, header: &[u8], number: u64) -> Result<String, ReadError> {
        let (mut id, mut rank, mut size) = (String::new(), None, None);
        for (name, value) in json::members(header).into_iter().flatten() {
            let whole = || {
                let whole = json::scaled(value, 0).filter(|whole| (0..=i64::from(MOST_RANKS)).contains(whole));
                whole.map(|whole| whole as u32).ok_or_else(|| {
                    let name = String::from_utf8_lossy(name);
                    ReadError::line(number, format!("{name} must be a whole number from 0 to 1000000"))
                })
            };
            match name {
                b"id" => id = json::string(value).unwrap_or_default().into_owned(),
                b"rank" => rank = Some(whole()?),
                b"n_ranks" => size = Some(whole()?),
                _ => {}
            }
        }
        let (Some(rank), Some(size)) = (rank, size) else {
            return Err(ReadError::line(number, "the header must have rank and n_ranks"));
        };
        if rank >= size {
            return Err(ReadError::line(number, format!("rank is {rank}; it must be below n_ranks, {size}")));
        }
        if size > self.world.0 {
            self.world = (size, id.clone());
            (self.trace.rank, self.trace.world) = (Some(rank), Some(size));
        } else if self.world.1 == id && self.trace.rank != Some(rank) {
            let several = "several GPUs are in one file; record with a process for each GPU";
            return Err(ReadError::line(number, several));
        }
        Ok(id)
    }

    /// # Errors
    /// The file holds no operation.
    pub fn finish(mut self) -> Result<Trace, ReadError> {
        let mut acts = Vec::new();
        for ((comm, name), mut operations) in std::mem::take(&mut self.operations) {
            operations.sort_by_key(|one| one.number);
            let (first, last) = (operations[0].number, operations[operations.len() - 1].number);
            if last - first + 1 != operations.len() as i64 {
                self.trace.refusals.push(format!(
                    "events are missing: {} has {} of the {} {name} operations from {first} to {last}; a shorter \
                     NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS loses fewer",
                    self.trace.source,
                    operations.len(),
                    last - first + 1
                ));
            }
            let comm = if comm == self.world.1 { format!("world {name}") } else { format!("{comm} {name}") };
            let (comm, name): (Arc<str>, Arc<str>) = (comm.into(), name.into());
            for Operation { number, size, start, end } in operations {
                let at = self.trace.events.len() as u32;
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                let key = Key::Collective { comm: Arc::clone(&comm), number };
                let (part, name) = (Part::All, Arc::clone(&name));
                self.trace.events.push(Event { key, part, name, size, start, since: start, end, together: None });
                acts.extend([(start, Kind::Post, at), (end, Kind::Wait, at)]);
            }
        }
        if acts.is_empty() {
            return Err(ReadError::file("there are no collective operations of all ranks of a communicator"));
        }
        acts.sort_by_key(|&(time, kind, at)| (time, kind == Kind::Post, at));
        (self.trace.began, self.trace.ended) = (acts[0].0, acts[0].0);
        for (time, kind, at) in acts {
            let start = if kind == Kind::Post { time } else { self.trace.ended };
            self.trace.push(kind, at, start, time, -1);
        }
        let whole = self.trace.ended - self.trace.began;
        if self.unmodelled.saturating_mul(UNMODELLED) > whole {
            self.trace.refusals.push(format!(
                "broadcasts, reductions to one rank and messages take {:.3} s and are not modelled: NCCL's Inspector does \
                 not write their root or peer",
                self.unmodelled as f64 * 1e-9
            ));
        }
        Ok(self.trace)
    }
}

/// Reads an operation: its name, and from when to when its kernels ran.
fn read_operation(text: &[u8]) -> Result<(String, Operation), String> {
    let (mut name, mut number, mut size, mut times) = (String::new(), None, 0, None);
    for (field, value) in json::members(text).into_iter().flatten() {
        match field {
            b"coll" | b"p2p" => name = json::string(value).unwrap_or_default().into_owned(),
            b"coll_sn" | b"p2p_sn" => number = json::scaled(value, 0).filter(|number| (0..1 << 32).contains(number)),
            b"coll_msg_size_bytes" | b"p2p_msg_size_bytes" => {
                size = json::scaled(value, 0).unwrap_or(0).unsigned_abs();
            }
            b"event_trace_ts" => times = Some(value),
            _ => {}
        }
    }
    let number = number.ok_or("coll_sn must be a whole number from 0 to 4294967295")?;
    let times = times.ok_or("event_trace_ts is missing: record with NCCL_INSPECTOR_DUMP_VERBOSE=1")?;
    let (mut start, mut end) = (i64::MAX, i64::MIN);
    let kernels = json::members(times).into_iter().flatten().find(|(field, _)| *field == b"kernel_events");
    for kernel in kernels.map(|(_, kernels)| json::elements(kernels)).into_iter().flatten() {
        for (field, value) in json::members(kernel).into_iter().flatten() {
            let time = json::scaled(value, 0).filter(|time| (0..LATEST_US).contains(time)).map(|us| 1000 * us);
            match (field, time) {
                (b"kernel_start_ts", Some(time)) => start = start.min(time),
                (b"kernel_stop_ts", Some(time)) => end = end.max(time),
                (b"kernel_start_ts" | b"kernel_stop_ts", None) => return Err("a time must be in us since 1970".into()),
                _ => {}
            }
        }
    }
    if end < start {
        return Err(format!("{name} {number} has no kernel that begins and ends after that"));
    }
    Ok((name, Operation { number, size, start, end }))
}
