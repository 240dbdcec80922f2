//! Traces of PyTorch's profiler (Kineto): what is kept of the events of one rank.
//!
//! Times have had three forms: microseconds since 1970 as integers, the same as decimal numbers, and microseconds beside a
//! `baseTimeNanoseconds` at the top. Collectives are annotations (`gloo:all_reduce`) on the CPU, and kernels on a GPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json::{self, Document, Sink};
use super::{MOST_RANKS, ReadError, fingerprint};

/// A collective operation on this rank.
#[derive(Clone, Debug)]
pub struct Collective {
    pub start: i64,
    pub end: i64,
    pub name: Arc<str>,
    pub group: Arc<str>,
    pub size: u64,
}

/// What is kept of a rank's trace.
#[derive(Debug, Default)]
pub struct Profile {
    pub source: String,
    pub rank: Option<u32>,
    pub world: Option<u32>,
    pub collectives: Vec<Collective>,
    /// Intervals of the operators (or kernels) on the busiest thread (or stream), sorted.
    pub busy: Vec<(i64, i64)>,
    /// Steps as marked by `ProfilerStep`, sorted.
    pub steps: Vec<(i64, i64)>,
    /// Beginnings of what DDP does first when all its collectives are over.
    pub after_waits: Vec<i64>,
    /// Time in point-to-point kernels, which cannot be matched, ns.
    pub unmatched: i64,
    pub on_gpu: bool,
}

#[derive(Default)]
struct Kept {
    profile: Profile,
    base: i64,
    operators: BTreeMap<i64, Vec<(i64, i64)>>,
    kernels: BTreeMap<(i64, i64), Vec<(i64, i64)>>,
    annotations: Vec<Collective>,
    on_streams: Vec<Collective>,
    words: BTreeMap<Vec<u8>, Arc<str>>,
    events: u64,
}

impl Kept {
    fn word(&mut self, text: &[u8]) -> Arc<str> {
        if let Some(word) = self.words.get(text) {
            return Arc::clone(word);
        }
        let word: Arc<str> = String::from_utf8_lossy(text).into();
        self.words.insert(text.to_vec(), Arc::clone(&word));
        word
    }

    fn group_of(&mut self, arguments: &[u8]) -> (Option<Arc<str>>, Arc<str>, u64) {
        let (mut name, mut group, mut ranks) = (None, Vec::new(), Vec::new());
        let mut size = Vec::new();
        for (key, value) in json::members(arguments).into_iter().flatten() {
            match key {
                b"Collective name" => name = json::string(value).map(|text| text.as_bytes().to_vec()),
                b"Process Group Name" => group = value.trim_ascii().to_vec(),
                b"Process Group Ranks" => {
                    ranks = value.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
                }
                b"Input Dims" | b"In msg nelems" | b"dtype" => size.extend_from_slice(value),
                _ => {}
            }
        }
        group.retain(|&byte| byte != b'"');
        ranks.retain(|&byte| byte != b'"');
        if group.is_empty() || group == b"0" || group == b"default_pg" {
            group = b"world".to_vec();
        }
        if group != b"world" && !ranks.is_empty() {
            group.extend_from_slice(&ranks);
        }
        let name = name.map(|name| self.word(&name));
        let size = if size.is_empty() { 0 } else { fingerprint(&size) };
        (name, self.word(&group), size)
    }
}

/// Returns the operation of a kernel such as `ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)`.
fn nccl_operation(name: &[u8]) -> Option<&[u8]> {
    let rest = [&b"ncclDevKernel_"[..], b"ncclKernel_", b"ncclDevKernel", b"ncclKernel"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    let end = rest.iter().position(|&byte| matches!(byte, b'_' | b'(' | b'<')).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn wrong(at: u64, field: &str, value: &[u8], permitted: &str) -> ReadError {
    let value = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
    ReadError { place: format!("event at byte {at}"), problem: format!("{field} is {value}; it must be {permitted}") }
}

impl Sink for Kept {
    type Error = ReadError;

    fn member(&mut self, name: &[u8], value: &[u8]) -> Result<(), ReadError> {
        match name {
            b"baseTimeNanoseconds" => {
                self.base = json::scaled(value, 0).ok_or_else(|| ReadError {
                    place: "baseTimeNanoseconds".into(),
                    problem: "it must be a whole number of nanoseconds".into(),
                })?;
            }
            b"distributedInfo" => {
                for (key, value) in json::members(value).into_iter().flatten() {
                    let number = json::scaled(value, 0).filter(|&number| (0..i64::from(MOST_RANKS)).contains(&number));
                    match key {
                        b"rank" => self.profile.rank = number.map(|number| number as u32),
                        b"world_size" => self.profile.world = number.map(|number| number as u32),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn element(&mut self, element: &[u8], at: u64) -> Result<(), ReadError> {
        let Some(mut members) = json::members(element) else {
            return Err(self.broken(at, "an event must be an object"));
        };
        let none: &[u8] = b"";
        let (mut phase, mut category, mut name, mut thread, mut process) = (none, none, none, none, none);
        let (mut start, mut duration, mut arguments) = (none, none, none);
        for (key, value) in members.by_ref() {
            match key {
                b"ph" => phase = value,
                b"cat" => category = value,
                b"name" => name = value,
                b"tid" => thread = value,
                b"pid" => process = value,
                b"ts" => start = value,
                b"dur" => duration = value,
                b"args" => arguments = value,
                _ => {}
            }
        }
        if members.is_broken() {
            return Err(self.broken(at, "the event is not a JSON object"));
        }
        self.events += 1;
        if phase != b"\"X\"" {
            return Ok(());
        }
        let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
        let operator = category == b"\"cpu_op\"";
        let kernel = category == b"\"kernel\"";
        if !operator && !kernel && category != b"\"user_annotation\"" {
            return Ok(());
        }
        let begin = json::scaled(start, 3).filter(|begin| begin.abs() < 1 << 61);
        let begin = begin.ok_or_else(|| wrong(at, "ts", start, "a number of microseconds"))?;
        let length = json::scaled(duration, 3).filter(|length| (0..1 << 58).contains(length));
        let length = length.ok_or_else(|| wrong(at, "dur", duration, "a number of microseconds, 0 or more"))?;
        let (begin, end) = (begin, begin + length);
        let lane = fingerprint(thread) as i64;
        if kernel {
            let Some(operation) = nccl_operation(name) else {
                self.kernels.entry((fingerprint(process) as i64, lane)).or_default().push((begin, end));
                return Ok(());
            };
            let operation = operation.to_vec();
            let (called, group, size) = self.group_of(arguments);
            let name = called.unwrap_or_else(|| self.word(&operation));
            if operation == b"SendRecv" && !name.contains("all") {
                self.profile.unmatched = self.profile.unmatched.saturating_add(length);
                return Ok(());
            }
            self.on_streams.push(Collective { start: begin, end, name, group, size });
        } else if operator {
            if name == b"record_param_comms" {
                return Ok(());
            }
            if name == b"torch.distributed.ddp.reducer::copy_bucket_to_grad" {
                self.profile.after_waits.push(begin);
            }
            self.operators.entry(lane).or_default().push((begin, end));
        } else if name.starts_with(b"ProfilerStep#") {
            self.profile.steps.push((begin, end));
        } else if [&b"gloo:"[..], b"mpi:", b"nccl:"].iter().any(|prefix| name.starts_with(prefix)) {
            let operation = name.split(|&byte| byte == b':').nth(1).unwrap_or(name).to_vec();
            let (_, group, size) = self.group_of(arguments);
            let name = self.word(&operation);
            self.annotations.push(Collective { start: begin, end, name, group, size });
        }
        Ok(())
    }

    fn broken(&self, at: u64, problem: &str) -> ReadError {
        ReadError { place: format!("byte {at}"), problem: problem.into() }
    }
}

pub struct ProfileReader {
    document: Document,
    kept: Kept,
}

impl ProfileReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        let kept = Kept { profile: Profile { source: source.into(), ..Profile::default() }, ..Kept::default() };
        Self { document: Document::new(b"traceEvents"), kept }
    }

    /// # Errors
    /// The document is wrong.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.document.feed(bytes, &mut self.kept)
    }

    /// # Errors
    /// The document is not whole, or holds no operators.
    pub fn finish(self) -> Result<Profile, ReadError> {
        self.document.finish(&self.kept)?;
        let Kept { mut profile, base, operators, kernels, annotations, on_streams, events, .. } = self.kept;
        if events == 0 {
            return Err(ReadError::file("there are no traceEvents; it must be a trace of PyTorch's profiler"));
        }
        profile.on_gpu = !kernels.is_empty();
        let total = |lane: &[(i64, i64)]| -> i128 { lane.iter().map(|&(begin, end)| i128::from(end - begin)).sum() };
        // On a GPU the stream that is busy longest; on a CPU the thread with most operators, since they nest.
        let lane = if profile.on_gpu {
            kernels.into_values().max_by_key(|lane| total(lane))
        } else {
            operators.into_values().max_by_key(Vec::len)
        };
        let Some(mut busy) = lane else {
            return Err(ReadError::file("there are no operators; record with activities=[ProfilerActivity.CPU]"));
        };
        let mut collectives = if profile.on_gpu && !on_streams.is_empty() { on_streams } else { annotations };
        // Far from any overflow, and as far from any clock.
        let shift = |time: &mut i64| *time = time.saturating_add(base).clamp(-(1 << 61), 1 << 61);
        for (begin, end) in busy.iter_mut().chain(&mut profile.steps) {
            shift(begin);
            shift(end);
        }
        profile.after_waits.iter_mut().for_each(shift);
        for one in &mut collectives {
            shift(&mut one.start);
            shift(&mut one.end);
        }
        busy.sort_unstable();
        profile.steps.sort_unstable();
        profile.after_waits.sort_unstable();
        collectives.sort_by_key(|one| (one.start, one.end));
        (profile.busy, profile.collectives) = (busy, collectives);
        Ok(profile)
    }
}
