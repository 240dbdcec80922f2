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

    /// Adds the step times of another file.
    ///
    /// # Errors
    /// A step of a rank is in both, or the forms differ.
    pub fn join(&mut self, other: Self) -> Result<(), ReadError> {
        self.world = self.world.max(other.world);
        if other.dated.is_some_and(|dated| *self.dated.get_or_insert(dated) != dated) {
            return Err(ReadError::file("some files have seconds, others start_s and end_s; use one form"));
        }
        for (rank, steps) in other.rows {
            let own = self.rows.entry(rank).or_default();
            for (step, times) in steps {
                if own.insert(step, times).is_some() {
                    return Err(ReadError::file(format!("step {step} of rank {rank} is given in two files")));
                }
            }
        }
        Ok(())
    }

    /// Makes a trace of each rank: computing, then a meeting of all ranks at the end of each step.
    #[must_use]
    pub fn traces(self, source: &str) -> Vec<Trace> {
        let dated = self.dated == Some(true);
        // Where only lengths are known, a step begins when the one before it is over on all ranks.
        let mut lasts: BTreeMap<i64, i64> = BTreeMap::new();
        for (&step, &(_, length)) in self.rows.values().flatten() {
            lasts.entry(step).and_modify(|last| *last = length.max(*last)).or_insert(length);
        }
        let mut begins = BTreeMap::new();
        let mut clock = 0i64;
        for (&step, &last) in &lasts {
            begins.insert(step, clock);
            clock = clock.saturating_add(last).min(LATEST);
        }
        let one = |(rank, steps): (u32, BTreeMap<i64, (i64, i64)>)| {
            let mut trace = Trace { source: source.into(), rank: Some(rank), world: self.world, ..Trace::default() };
            let rows: Vec<(i64, i64, i64)> = steps.into_iter().map(|(step, (begin, end))| (step, begin, end)).collect();
            trace.began = if dated { rows[0].1 } else { begins[&rows[0].0] };
            trace.ended = trace.began;
            let mut pauses = 0i64;
            for (at, &(step, _, end)) in rows.iter().enumerate() {
                let (done, over) = if dated {
                    // The wait lasts until the next step begins.
                    (end, rows.get(at + 1).map_or(end, |next| next.1.max(end)))
                } else {
                    let begin = begins[&step];
                    (begin.saturating_add(end).min(LATEST), begin.saturating_add(lasts[&step]).min(LATEST))
                };
                pauses = pauses.saturating_add(over - done);
                let key = Key::Collective { comm: "steps".into(), number: at as u32 };
                let name = "end of the step".into();
                let (start, since, end) = (done, done, over);
                let event = Event { key, part: Part::All, name, size: step as u64, start, since, end, together: None };
                trace.push_blocking(event, -1);
                trace.push(Kind::Step, 0, over, over, -1);
            }
            if !dated {
                trace.notes.push(LENGTHS.into());
            } else if pauses.saturating_mul(100) < trace.ended - trace.began {
                trace.refusals.push(HIDDEN.into());
            }
            trace
        };
        self.rows.into_iter().map(one).collect()
    }
}

/// Latest time that a step may end, ns.
const LATEST: i64 = 1 << 61;
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
#[derive(Default)]
pub struct StepsReader {
    columns: Option<Vec<Vec<u8>>>,
    times: StepTimes,
}

impl StepsReader {
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

    #[must_use]
    pub fn finish(self) -> StepTimes {
        self.times
    }
}
