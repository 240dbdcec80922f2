//! Step times: the smallest input. A row per rank and step: its computing (`seconds`), or its beginning and end.

use std::collections::BTreeMap;

use super::{MOST_RANKS, ReadError, json};
use crate::trace::{Event, Key, Kind, Part, Trace};

/// Step times of several ranks.
#[derive(Default)]
pub struct StepTimes {
    /// Of each rank and step: beginning and end; the beginning is 0 where only the length is known.
    rows: BTreeMap<u32, BTreeMap<i64, (i64, i64)>>,
    pub world: Option<u32>,
    /// The rows have beginnings and ends.
    dated: Option<bool>,
}

impl StepTimes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes a row.
    ///
    /// # Errors
    /// It has neither form, another form than the rows before it, or is given twice.
    pub fn add(
        &mut self,
        rank: u32,
        step: i64,
        seconds: Option<i64>,
        dates: Option<(i64, i64)>,
        line: u64,
    ) -> Result<(), ReadError> {
        let (begin, end) = match (seconds, dates) {
            (Some(seconds), None) => (0, seconds),
            (_, Some(dates)) => dates,
            (None, None) => return Err(ReadError::line(line, "seconds is missing, or start_s and end_s")),
        };
        if end < begin {
            return Err(ReadError::line(
                line,
                format!("the step lasts {:.9} s; it must last 0 or more", (end - begin) as f64 * 1e-9),
            ));
        }
        if *self.dated.get_or_insert(dates.is_some()) != dates.is_some() {
            return Err(ReadError::line(line, "some rows have seconds, others start_s and end_s; use one form"));
        }
        if self.rows.entry(rank).or_default().insert(step, (begin, end)).is_some() {
            return Err(ReadError::line(line, format!("step {step} of rank {rank} is given twice")));
        }
        Ok(())
    }

    /// Makes a trace of each rank: computing, then a meeting of all ranks at the end of each step.
    ///
    /// # Errors
    /// There are no rows.
    pub fn traces(self, source: &str) -> Result<Vec<Trace>, ReadError> {
        if self.rows.is_empty() {
            return Err(ReadError::file("there are no rows"));
        }
        let dated = self.dated == Some(true);
        let world = self.world;
        let one = |(rank, steps): (u32, BTreeMap<i64, (i64, i64)>)| {
            let mut trace = Trace { source: source.into(), rank: Some(rank), world, ..Trace::default() };
            let mut rows: Vec<(i64, i64, i64)> =
                steps.into_iter().map(|(step, (begin, end))| (step, begin, end)).collect();
            rows.sort_by_key(|&(step, ..)| step);
            trace.began = if dated { rows[0].1 } else { 0 };
            trace.ended = trace.began;
            let mut pauses = 0i64;
            let mut clock = trace.began;
            for (at, &(step, begin, end)) in rows.iter().enumerate() {
                let done = if dated { end } else { clock.saturating_add(end) };
                // The wait lasts until the next step begins.
                let over = if dated { rows.get(at + 1).map_or(done, |next| next.1.max(done)) } else { done };
                pauses = pauses.saturating_add(if dated { over - done } else { 0 });
                let (done, over) = (done.min(1 << 61), over.min(1 << 61));
                let key = Key::Collective { comm: "steps".into(), number: at as u32 };
                let name = "end of the step".into();
                let event = Event {
                    key,
                    part: Part::All,
                    name,
                    size: step as u64,
                    start: done,
                    since: done,
                    end: over,
                    together: None,
                };
                let _ = begin;
                trace.push_blocking(event, -1);
                trace.push(Kind::Step, 0, over, over, -1);
                clock = over;
            }
            let all = trace.ended - trace.began;
            if dated && pauses.saturating_mul(100) < all {
                trace.refusals.push(HIDDEN.into());
            } else if !dated {
                trace.notes.push(LENGTHS.into());
            }
            trace
        };
        Ok(self.rows.into_iter().map(one).collect())
    }
}

/// Refusal of steps that follow each other without a pause.
pub const HIDDEN: &str = "the step times include the waiting, so all ranks seem alike; record the computing of each step \
                          (seconds), or where it ends and the waiting begins";
/// Note of a trace that has lengths only.
pub const LENGTHS: &str = "step times are taken as computing, after which all ranks wait for each other";

/// Whether a line is the head of such a CSV.
#[must_use]
pub fn is_head(line: &[u8]) -> bool {
    let names: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    names.contains(&&b"rank"[..]) && names.contains(&&b"step"[..])
}

/// Reads a CSV with a head: `rank,step,seconds` or `rank,step,start_s,end_s`, in any order.
pub struct StepsReader {
    source: String,
    columns: Option<Vec<Vec<u8>>>,
    times: StepTimes,
}

impl StepsReader {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), columns: None, times: StepTimes::default() }
    }

    /// # Errors
    /// The line is wrong.
    pub fn line(&mut self, line: &[u8], number: u64) -> Result<(), ReadError> {
        let cells: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
        let Some(columns) = &self.columns else {
            self.columns = Some(cells.iter().map(|cell| cell.to_vec()).collect());
            return Ok(());
        };
        if cells.len() != columns.len() {
            return Err(ReadError::line(number, format!("{} cells; the head has {}", cells.len(), columns.len())));
        }
        let (mut rank, mut step, mut seconds, mut start, mut end) = (None, None, None, None, None);
        for (name, &cell) in columns.iter().zip(&cells) {
            let wrong = |permitted: &str| {
                let (name, cell) =
                    (String::from_utf8_lossy(name), String::from_utf8_lossy(&cell[..cell.len().min(40)]));
                ReadError::line(number, format!("{name} is {cell:?}; it must be {permitted}"))
            };
            let time = || {
                json::scaled(cell, 9).filter(|time| time.abs() < 1 << 61).ok_or_else(|| wrong("a number of seconds"))
            };
            match &name[..] {
                b"rank" => {
                    let found = json::scaled(cell, 0).filter(|rank| (0..i64::from(MOST_RANKS)).contains(rank));
                    rank = Some(found.ok_or_else(|| wrong("a whole number from 0 to 999999"))? as u32);
                }
                b"step" => step = Some(json::scaled(cell, 0).ok_or_else(|| wrong("a whole number"))?),
                b"seconds" => seconds = Some(time()?),
                b"start_s" => start = Some(time()?),
                b"end_s" => end = Some(time()?),
                _ => {}
            }
        }
        match (rank, step) {
            (Some(rank), Some(step)) => self.times.add(rank, step, seconds, start.zip(end), number),
            _ => Err(ReadError::line(number, "rank and step are needed")),
        }
    }

    /// # Errors
    /// There are no rows.
    pub fn finish(self) -> Result<Vec<Trace>, ReadError> {
        self.times.traces(&self.source)
    }
}
