//! What was really injected.

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Recorded, RecordedCpu, RecordedInterval, Source};
use crosswind_schema::units::{PositiveSeconds, Seconds};

use super::priority::Urgency;
use super::script::Cause;

/// How a processor is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum How {
    /// All processes of the rank, stopped by tracing them (where that is not permitted, by SIGSTOP and SIGCONT).
    Stop = 0,
    /// All processes of the rank frozen in a control group of their own.
    Freeze = 1,
    /// A thread of higher priority computes on the rank's only CPU.
    Burn = 2,
}

impl How {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Freeze => "freeze",
            Self::Burn => "burn",
        }
    }

    /// The shortest interval that is worth it, ns: below, the signals or the changes of context themselves take longer.
    #[must_use]
    pub fn shortest_ns(self) -> u64 {
        match self {
            Self::Stop | Self::Freeze => 100_000,
            Self::Burn => 20_000,
        }
    }
}

/// One interval as it was; ns since time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// When it was to begin.
    pub asked_ns: u64,
    /// How long it was to take.
    pub asked_for_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Place of its cause.
    pub cause: u16,
    pub how: How,
}

/// What was done to one rank.
#[derive(Clone, Debug, Default)]
pub struct RankDone {
    pub rank: u32,
    /// Its processes when it was seen last.
    pub processes: Vec<i32>,
    /// CPUs that they were bound to then.
    pub cpus: Vec<usize>,
    /// CPUs that were kept busy while it was held.
    pub busy: Vec<usize>,
    pub done: Vec<Done>,
    /// Intervals that were too short to be injected, and their sum in ns.
    pub too_short: (u64, u64),
    /// Intervals that passed before the rank was there, or while the interval before was late, and their sum in ns.
    pub missed: (u64, u64),
    /// Whether something of it was held that only a watchdog would have given back.
    pub exposed: bool,
    /// What went wrong with it, once each.
    pub complaints: Vec<String>,
}

impl RankDone {
    /// Notes what went wrong, once.
    pub fn complain(&mut self, complaint: String) {
        if !self.complaints.contains(&complaint) {
            self.complaints.push(complaint);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited,
    /// The time limit was reached.
    Limit,
    Asked(i32),
    /// The watchdog is gone: without it nothing may be held.
    Unwatched,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the start of the command to its end, s.
    pub elapsed_s: f64,
    /// Time 0 of the disturbance, after the command's start, s; none: the command never said that it began.
    pub start_s: Option<f64>,
    /// What the command and the processes that it has waited for used: user and system, s.
    pub cpu_s: (f64, f64),
    /// Its exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub ending: Ending,
    /// Each rank that was there.
    pub ranks: Vec<RankDone>,
    /// The variable by which ranks were told; none: the whole command was rank 0.
    pub told_by: Option<&'static str>,
    /// Priority of the threads that inject.
    pub urgency: Urgency,
}

impl Outcome {
    /// What was really injected as a disturbance that replays it: rank r is its CPU r. None where the command took no time.
    #[must_use]
    pub fn recorded(&self, name: &str, causes: &[Cause]) -> Option<Disturbance> {
        let ranks = self.ranks.iter().map(|done| done.rank + 1).max().unwrap_or(1);
        let cpu = (0..ranks).map(|rank| RecordedCpu {
            cpu: rank,
            intervals: self.ranks.iter().find(|done| done.rank == rank).map_or_else(Vec::new, |done| {
                done.done
                    .iter()
                    .filter(|one| one.end_ns > one.start_ns)
                    .map(|one| RecordedInterval(seconds(one.start_ns), seconds(one.end_ns - one.start_ns), one.cause))
                    .collect()
            }),
        });
        let causes: Vec<String> = causes.iter().map(|cause| cause.name.clone()).collect();
        let recorded = Recorded {
            length_s: PositiveSeconds::new(self.length_s()).ok()?,
            causes: if causes.is_empty() { vec!["nothing".into()] } else { causes },
            aligned: true,
            warnings: Vec::new(),
            cpu: cpu.collect(),
        };
        Some(Disturbance {
            schema_version: 1,
            name: name.into(),
            switch_cost_s: Seconds::default(),
            cache_cost_s: Seconds::default(),
            sources: vec![Source::Recorded(recorded)],
        })
    }

    /// The command's time from time 0 on, or the end of the last interval, which may be a moment later.
    fn length_s(&self) -> f64 {
        let last = self.ranks.iter().filter_map(|done| done.done.last()).map(|done| seconds(done.end_ns));
        last.fold(self.elapsed_s - self.start_s.unwrap_or_default(), f64::max)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
