//! Record of what was actually injected.

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Recorded, RecordedCpu, RecordedInterval, Source};
use crosswind_schema::units::{PositiveSeconds, Seconds};

use super::priority::Urgency;
use super::script::Cause;

/// Method by which a processor is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum How {
    /// Stop all processes of the rank by tracing, or by SIGSTOP and SIGCONT where tracing is not permitted.
    Stop = 0,
    /// Freeze all processes of the rank in a control group of their own.
    Freeze = 1,
    /// Compute on the rank's only CPU, in a thread of higher priority.
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

    /// Returns the shortest useful interval, ns: below it, the signals or context switches themselves take longer.
    #[must_use]
    pub fn shortest_ns(self) -> u64 {
        match self {
            Self::Stop | Self::Freeze => 100_000,
            Self::Burn => 20_000,
        }
    }
}

/// One interval as injected; times in ns since time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub asked_ns: u64,
    pub asked_for_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub cause: u16,
    pub how: How,
}

#[derive(Clone, Debug, Default)]
pub struct RankDone {
    pub rank: u32,
    /// Its processes when last seen.
    pub processes: Vec<i32>,
    /// CPUs that they were bound to at that time.
    pub cpus: Vec<usize>,
    /// CPUs that were kept busy while it was held.
    pub busy: Vec<usize>,
    pub done: Vec<Done>,
    /// Intervals that were too short to be injected: count and sum, ns.
    pub too_short: (u64, u64),
    /// Intervals that passed before the rank started, or while an earlier interval was late: count and sum, ns.
    pub missed: (u64, u64),
    /// Whether any of it was held such that only a watchdog would have released it.
    pub exposed: bool,
    pub complaints: Vec<String>,
}

impl RankDone {
    /// Records a failure, unless it is already recorded.
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
    /// The watchdog has ended, and without it nothing may be held.
    Unwatched,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the start of the command to its end, s.
    pub elapsed_s: f64,
    /// Time 0 of the disturbance, s after the command's start; `None`: the command never signalled its start.
    pub start_s: Option<f64>,
    /// CPU time of the command and of the processes that it has waited for: user and system, s.
    pub cpu_s: (f64, f64),
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub ending: Ending,
    /// Each rank that was found.
    pub ranks: Vec<RankDone>,
    /// The environment variable that identified the ranks; `None`: the whole command was rank 0.
    pub identified_by: Option<&'static str>,
    /// Priority of the threads that inject.
    pub urgency: Urgency,
}

impl Outcome {
    /// Returns the injections as a disturbance that replays them, with rank r as its CPU r. `None` if the command
    /// took no time.
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

    /// Time from time 0 to the end of the command, or of the last interval, which may end a moment later, s.
    fn length_s(&self) -> f64 {
        let last = self.ranks.iter().filter_map(|done| done.done.last()).map(|done| seconds(done.end_ns));
        last.fold(self.elapsed_s - self.start_s.unwrap_or_default(), f64::max)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
