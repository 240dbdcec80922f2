//! Recordings of noise by other tools, read as a disturbance: netgauge's `noise` (method selfish) and LogGOPSim's noise
//! traces, and what the Linux tracers `osnoise` and `hwlat` print.

mod pairs;
mod trace;

use std::collections::{BTreeMap, HashMap};

use super::{Disturbance, Recorded, RecordedCpu, RecordedInterval, Source};
use crate::SCHEMA_VERSION;
use crate::error::{DescriptionError, Problem};
use crate::read;
use crate::units::{PositiveSeconds, Seconds};

/// Most intervals of a recording.
const MOST_INTERVALS: usize = 2_500_000;
const MOST_CAUSES: usize = 60_000;
/// The rest of a longer line is not shown.
const SHOWN: usize = 60;

/// A tool's form of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Lines of start and duration.
    Pairs,
    /// The text of a trace in tracefs.
    Trace,
    /// A table of `rtla osnoise`.
    Table,
}

/// Reads a disturbance from another tool's recording. `None`: the text is none.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn read(bytes: &[u8], file: &str) -> Option<Result<Disturbance, DescriptionError>> {
    let form = form(bytes)?;
    let read = || {
        let text = read::text(bytes)?;
        let noise = match form {
            Form::Pairs => pairs::read(text)?,
            Form::Trace => trace::read(text)?,
            Form::Table => {
                let sentence = "is a table of rtla osnoise, which has sums but no single interval; \
                                `rtla osnoise top -t FILE` writes a trace that has them";
                return Err(Problem::Value(sentence.into()).at_line(1, 1));
            }
        };
        let disturbance = noise.disturbance(file)?;
        disturbance.check()?;
        Ok(disturbance)
    };
    Some(read().map_err(|error: DescriptionError| error.in_file(file)))
}

/// Returns the form that the first lines have.
fn form(bytes: &[u8]) -> Option<Form> {
    for line in bytes.split(|&byte| byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { return None };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            let comment = comment.trim_start();
            if comment.starts_with("tracer:") {
                return Some(Form::Trace);
            }
            if comment.starts_with("RTLA osnoise") {
                return Some(Form::Table);
            }
            if pairs::is_of_quanta(comment) {
                return Some(Form::Pairs);
            }
            continue;
        }
        if line == "Operating System Noise" {
            return Some(Form::Table);
        }
        if trace::event(line).is_some() {
            return Some(Form::Trace);
        }
        return pairs::numbers(line).is_some().then_some(Form::Pairs);
    }
    None
}

fn wrong(line: usize, sentence: impl Into<String>) -> DescriptionError {
    Problem::Value(sentence.into()).at_line(line, 1)
}

/// Returns the beginning of a line, as messages quote it.
fn shown(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= SHOWN { line.into() } else { line.chars().take(SHOWN).chain("...".chars()).collect() }
}

/// The intervals of a recording, ns.
#[derive(Default)]
struct Noise {
    causes: Vec<String>,
    places: HashMap<String, u16>,
    /// Start, duration and cause of each interval of a CPU, in the order of the file.
    cpus: BTreeMap<u32, Vec<(u64, u64, u16)>>,
    count: usize,
    /// From when to when it was recorded; `None`: from the first interval to the last.
    window: Option<(u64, u64)>,
    warnings: Vec<String>,
}

impl Noise {
    fn cause(&mut self, name: &str, line: usize) -> Result<u16, DescriptionError> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        if self.causes.len() == MOST_CAUSES {
            return Err(wrong(line, format!("has one cause more than {MOST_CAUSES}; it must have at most as many")));
        }
        let place = self.causes.len() as u16;
        self.causes.push(name.into());
        self.places.insert(name.into(), place);
        Ok(place)
    }

    fn add(&mut self, line: usize, cpu: u32, start: u64, duration: u64, cause: u16) -> Result<(), DescriptionError> {
        if start.checked_add(duration).is_none() {
            return Err(wrong(line, "ends after the largest time in ns, 2^64; is the time in ns?"));
        }
        if duration == 0 {
            return Ok(());
        }
        self.count += 1;
        if self.count > MOST_INTERVALS {
            return Err(wrong(line, format!("is interval {}; at most {MOST_INTERVALS} are read", self.count)));
        }
        self.cpus.entry(cpu).or_default().push((start, duration, cause));
        Ok(())
    }

    /// Extends the time in which it was recorded.
    fn saw(&mut self, cpu: u32, from: u64, to: u64) {
        self.cpus.entry(cpu).or_default();
        let (first, last) = self.window.unwrap_or((from, to));
        self.window = Some((first.min(from), last.max(to)));
    }

    /// Returns the disturbance. An interval that begins within another one of its CPU begins at its end: tools give net
    /// durations, so that all take as long together.
    fn disturbance(mut self, file: &str) -> Result<Disturbance, DescriptionError> {
        if self.count == 0 {
            return Err(wrong(1, "has no noise: there is no interval longer than 0 in it"));
        }
        let mut last = 0;
        for intervals in self.cpus.values_mut() {
            intervals.sort_by_key(|&(start, ..)| start);
            let mut free = 0;
            for (start, duration, _) in intervals.iter_mut() {
                *start = (*start).max(free);
                free = start.saturating_add(*duration);
            }
            last = last.max(free);
        }
        let starts = self.cpus.values().filter_map(|intervals| intervals.first()).map(|&(start, ..)| start);
        let mut first = starts.min().unwrap_or_default();
        if let Some((from, to)) = self.window {
            (first, last) = (first.min(from), last.max(to));
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let cpu = |(cpu, intervals): (u32, Vec<(u64, u64, u16)>)| RecordedCpu {
            cpu,
            intervals: intervals
                .into_iter()
                .map(|(start, duration, cause)| RecordedInterval(seconds(start - first), seconds(duration), cause))
                .collect(),
        };
        let length_s =
            PositiveSeconds::new(seconds(last - first)).map_err(|why| Problem::Value(why).at("length_s".into()))?;
        let recorded = Recorded {
            length_s,
            causes: self.causes,
            aligned: false,
            warnings: self.warnings,
            cpu: self.cpus.into_iter().map(cpu).collect(),
        };
        Ok(Disturbance {
            schema_version: SCHEMA_VERSION,
            name: file.rsplit('/').next().unwrap_or(file).into(),
            switch_cost_s: Seconds::fixed(0.0),
            cache_cost_s: Seconds::fixed(0.0),
            sources: vec![Source::Recorded(recorded)],
        })
    }
}
