//! Readers. Bytes are handed in as they come, and memory grows with what is kept of them, not with the file.
//!
//! | question | module |
//! |---|---|
//! | PyTorch's profiler (Kineto) | [`profile`], and where a rank waits for a collective: [`lanes`] |
//! | lines of JSON: calls, or step times | [`lines`] |
//! | step times as CSV | [`steps`] |
//! | our own recording (`app.trace`) | [`app`], [`app_calls`], [`app_rank`], [`windows`] |
//! | liballprof's text (LogGOPSim, ATLAHS) | [`allprof`] |
//! | lines of NCCL's Inspector | [`inspector`] |
//! | GOAL schedules | [`goal`] |
//! | JSON without a tree | [`json`] |

pub mod allprof;
pub mod app;
mod app_calls;
mod app_rank;
pub mod goal;
pub mod inspector;
pub mod json;
pub mod lanes;
pub mod lines;
pub mod profile;
pub mod steps;
mod windows;

use std::fmt;

use crate::trace::Trace;
use profile::Profile;

/// Longest recording, ns: about 9 years.
const LONGEST_NS: i64 = 1 << 58;
/// Longest line of a text file, bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes after which the format must be known.
const HEAD: usize = 1 << 16;

/// An error in a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Such as `line 3` or `byte 120`; empty for the whole file.
    pub place: String,
    pub problem: String,
}

impl ReadError {
    fn line(line: u64, problem: impl Into<String>) -> Self {
        Self { place: format!("line {line}"), problem: problem.into() }
    }

    fn file(problem: impl Into<String>) -> Self {
        Self { place: String::new(), problem: problem.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "{}: {}", self.place, self.problem)
        }
    }
}

impl std::error::Error for ReadError {}

/// What a file holds: ranks, or a profile whose waits are found by comparing it with those of the other ranks.
pub enum Found {
    Trace(Box<Trace>),
    Profile(Box<Profile>),
    /// Step times, which belong together with those of other files.
    Steps(Box<steps::StepTimes>),
}

enum Format {
    Unknown(Vec<u8>),
    Profile(Box<profile::ProfileReader>),
    App(Box<app::AppReader>),
    Goal(goal::GoalReader),
    Text(Text),
}

/// A text file, line by line.
struct Text {
    partial: Vec<u8>,
    line: u64,
    kind: Kind,
}

enum Kind {
    Lines(Box<lines::LinesReader>),
    Steps(Box<steps::StepsReader>),
    Allprof(Box<allprof::AllprofReader>),
    Inspector(Box<inspector::InspectorReader>),
}

impl Text {
    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ReadError> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.line += 1;
            if self.partial.is_empty() {
                self.take(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.take(&whole)?;
            }
        }
        if self.partial.len() + bytes.len() > LONGEST_LINE {
            return Err(ReadError::line(self.line + 1, "the line is longer than 1 MiB"));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn take(&mut self, line: &[u8]) -> Result<(), ReadError> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        match &mut self.kind {
            Kind::Lines(reader) => reader.line(line, self.line),
            Kind::Steps(reader) => reader.line(line, self.line),
            Kind::Allprof(reader) => reader.line(line, self.line),
            Kind::Inspector(reader) => reader.line(line, self.line),
        }
    }

    fn finish(mut self) -> Result<Found, ReadError> {
        if !self.partial.is_empty() {
            self.line += 1;
            let whole = std::mem::take(&mut self.partial);
            self.take(&whole)?;
        }
        Ok(match self.kind {
            Kind::Lines(reader) => reader.finish()?,
            Kind::Allprof(reader) => Found::Trace(Box::new(reader.finish()?)),
            Kind::Inspector(reader) => Found::Trace(Box::new(reader.finish()?)),
            Kind::Steps(reader) => {
                let times = reader.finish();
                if times.is_empty() {
                    return Err(ReadError::file("there are no rows"));
                }
                Found::Steps(Box::new(times))
            }
        })
    }
}

/// Reads one file, whose format it finds out by itself.
pub struct Reader {
    source: String,
    format: Format,
}

impl Reader {
    /// Starts with a file of this name, which stands in messages.
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), format: Format::Unknown(Vec::new()) }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        match &mut self.format {
            Format::Unknown(head) => {
                head.extend_from_slice(bytes);
                if head.len() < HEAD {
                    return Ok(());
                }
                self.begin()
            }
            Format::Profile(reader) => reader.feed(bytes),
            Format::App(reader) => reader.feed(bytes),
            Format::Goal(reader) => reader.feed(bytes),
            Format::Text(text) => text.feed(bytes),
        }
    }

    /// Finds out the format from what has come so far.
    fn begin(&mut self) -> Result<(), ReadError> {
        let Format::Unknown(head) = &mut self.format else { return Ok(()) };
        let head = std::mem::take(head);
        self.format = format_of(&head, &self.source)?;
        match &mut self.format {
            Format::Profile(reader) => reader.feed(&head),
            Format::App(reader) => reader.feed(&head),
            Format::Goal(reader) => reader.feed(&head),
            Format::Text(text) => text.feed(&head),
            Format::Unknown(_) => Ok(()),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn finish(mut self) -> Result<Vec<Found>, ReadError> {
        if matches!(self.format, Format::Unknown(_)) {
            self.begin()?;
        }
        match self.format {
            Format::Profile(reader) => Ok(vec![Found::Profile(Box::new(reader.finish()?))]),
            Format::App(reader) => Ok(ranks(reader.finish()?)),
            Format::Goal(reader) => Ok(ranks(reader.finish()?)),
            Format::Text(text) => Ok(vec![text.finish()?]),
            Format::Unknown(_) => Err(ReadError::file("the file is empty")),
        }
    }
}

fn ranks(traces: Vec<Trace>) -> Vec<Found> {
    traces.into_iter().map(|trace| Found::Trace(Box::new(trace))).collect()
}

fn format_of(head: &[u8], source: &str) -> Result<Format, ReadError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let text_of = |kind| Format::Text(Text { partial: Vec::new(), line: 0, kind });
    let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    if text.is_empty() {
        return Err(ReadError::file("the file is empty"));
    }
    if first.starts_with(b"{\"format\": \"crosswind-trace\"") || first.starts_with(b"{\"format\":\"crosswind-trace\"") {
        return Ok(Format::App(Box::new(app::AppReader::new(source))));
    }
    if text[0] == b'{' {
        let name = json::members(first).and_then(|mut members| members.next()).map(|(name, _)| name);
        if matches!(name, Some(b"rank" | b"op" | b"step" | b"world" | b"world_size" | b"seconds" | b"start_s" | b"t0"))
        {
            return Ok(text_of(Kind::Lines(Box::new(lines::LinesReader::new(source)))));
        }
        if name == Some(b"header") {
            return Ok(text_of(Kind::Inspector(Box::new(inspector::InspectorReader::new(source)))));
        }
        return Ok(Format::Profile(Box::new(profile::ProfileReader::new(source))));
    }
    if text[0] == b'[' {
        return Ok(Format::Profile(Box::new(profile::ProfileReader::new(source))));
    }
    if text[0] == b'#' || text.starts_with(b"MPI_") {
        return Ok(text_of(Kind::Allprof(Box::new(allprof::AllprofReader::new(source)))));
    }
    if [&b"num_ranks"[..], b"//", b"/*"].iter().any(|start| text.starts_with(start)) {
        return Ok(Format::Goal(goal::GoalReader::new(source)));
    }
    if steps::is_head(first) {
        return Ok(text_of(Kind::Steps(Box::default())));
    }
    Err(ReadError::file(
        "the format is not known; it must be a trace of PyTorch's profiler (JSON), lines of JSON, liballprof's text, lines \
         of NCCL's Inspector, a GOAL schedule, or a CSV with the columns rank, step, seconds",
    ))
}

/// Makes traces of what the files hold.
///
/// # Errors
/// Two files are of the same rank, or their times cannot be compared.
pub fn traces(found: Vec<Found>) -> Result<Vec<Trace>, ReadError> {
    let (mut traces, mut profiles, mut times) = (Vec::new(), Vec::new(), steps::StepTimes::default());
    for one in found {
        match one {
            Found::Trace(trace) => traces.push(*trace),
            Found::Profile(profile) => profiles.push(*profile),
            Found::Steps(more) => times.join(*more)?,
        }
    }
    traces.extend(times.traces("step times"));
    traces.extend(lanes::traces(profiles));
    for (at, trace) in traces.iter_mut().enumerate() {
        if trace.rank.is_none() {
            trace.rank = Some(at as u32);
            trace.notes.push(format!("{} does not say its rank; taken as rank {at}", trace.source));
        }
    }
    if let Some(trace) = traces.iter().find(|trace| trace.ended.saturating_sub(trace.began) > LONGEST_NS) {
        return Err(ReadError::file(format!(
            "{}: the recording lasts longer than 9 years; its times are damaged",
            trace.source
        )));
    }
    traces.sort_by_key(Trace::number);
    if let Some(pair) = traces.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        let (one, other) = (&pair[0], &pair[1]);
        let problem = format!(
            "{} and {} are both of rank {}; name one file of each rank",
            one.source,
            other.source,
            one.number()
        );
        return Err(ReadError::file(problem));
    }
    Ok(traces)
}

/// Returns the highest rank that a file may name.
pub(crate) const MOST_RANKS: u32 = 1_000_000;

/// Returns a hash of a few bytes, the same on every machine.
#[must_use]
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
