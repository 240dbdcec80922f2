//! Result of a recording: pieces of noise per CPU, as a disturbance file and in numbers.

use std::collections::HashMap;

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Recorded, RecordedCpu, RecordedInterval, Source};
use crosswind_schema::units::{PositiveSeconds, Seconds};

use super::blame::{Piece, is_own};
use super::events::{CauseId, LOST, WITHHELD};
use crate::process::Process;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By the scheduling events that the kernel's trace has.
    Trace,
    /// By checking after each gap whether another thread had the CPU.
    Loop,
}

impl Means {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Loop => "loop",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct CpuNoise {
    pub cpu: usize,
    /// Pieces of gaps, in order, ns since the start, including the recorder's own.
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub struct Recording {
    pub length_ns: u64,
    pub cpus: Vec<CpuNoise>,
    /// Names of causes, by index; several may have the same.
    pub names: Vec<String>,
    /// Process of each cause; `None`: an interrupt, a thread of the kernel, or not known.
    pub processes: Vec<Option<Process>>,
    pub means: Means,
    /// Reason why the kernel's trace was not used, if so.
    pub no_trace: Option<String>,
    /// Events that the kernel lost; if any, some causes are wrong or unknown.
    pub lost_events: u64,
    /// Periods in which a quota of CPU time was used up.
    pub throttled: u64,
    /// Whether it ended early on request.
    pub interrupted: bool,
    /// Whether it ended early because there was more noise than is kept.
    pub full: bool,
}

/// Name, in the file, of gaps without a recorded cause.
pub const UNKNOWN_NAME: &str = "unknown";
/// Name of gaps whose events the kernel lost.
pub const LOST_NAME: &str = "lost events";
/// Name of gaps in which a quota of CPU time was used up.
pub const QUOTA_NAME: &str = "quota";
/// Name of gaps in which the CPU was idle and no quota was used up.
const IDLE_NAME: &str = "thread:swapper";

impl Recording {
    #[must_use]
    pub fn name(&self, cause: CauseId) -> &str {
        match cause {
            LOST => LOST_NAME,
            WITHHELD if self.throttled > 0 => QUOTA_NAME,
            WITHHELD => IDLE_NAME,
            _ => self.names.get(usize::from(cause)).map_or(UNKNOWN_NAME, String::as_str),
        }
    }

    /// Returns the recording as a disturbance; `None` if its length is zero.
    #[must_use]
    pub fn disturbance(&self, name: &str) -> Option<Disturbance> {
        let length_s = seconds(self.length_ns);
        let mut lengths: HashMap<&str, u64> = HashMap::new();
        for piece in self.noise() {
            *lengths.entry(self.name(piece.cause)).or_default() += piece.end_ns - piece.start_ns;
        }
        let mut used: Vec<(&str, u64)> = lengths.into_iter().collect();
        used.sort_by_key(|(name, sum)| (std::cmp::Reverse(*sum), *name)); // the largest first
        let places: HashMap<&str, u16> = used.iter().enumerate().map(|(at, (name, _))| (*name, at as u16)).collect();
        let place = |cause: CauseId| places.get(self.name(cause)).copied().unwrap_or(0);
        let cpu = self.cpus.iter().map(|cpu| RecordedCpu {
            cpu: cpu.cpu as u32,
            intervals: cpu
                .pieces
                .iter()
                .filter(|piece| !is_own(piece.cause))
                .map(|piece| {
                    RecordedInterval(
                        seconds(piece.start_ns),
                        seconds(piece.end_ns - piece.start_ns),
                        place(piece.cause),
                    )
                })
                .collect(),
        });
        let mut causes: Vec<String> = used.iter().map(|(name, _)| (*name).to_owned()).collect();
        if causes.is_empty() {
            causes.push(UNKNOWN_NAME.to_owned());
        }
        Some(Disturbance {
            schema_version: 1,
            name: name.into(),
            switch_cost_s: Seconds::default(),
            cache_cost_s: Seconds::default(),
            sources: vec![Source::Recorded(Recorded {
                length_s: PositiveSeconds::new(length_s).ok()?,
                causes,
                aligned: false,
                warnings: Vec::new(),
                cpu: cpu.collect(),
            })],
        })
    }

    /// Returns the process of a cause.
    #[must_use]
    pub fn process(&self, cause: CauseId) -> Option<&Process> {
        self.processes.get(usize::from(cause))?.as_ref()
    }

    /// Returns the pieces of all CPUs, except the recorder's own.
    pub fn noise(&self) -> impl Iterator<Item = &Piece> {
        self.cpus.iter().flat_map(|cpu| &cpu.pieces).filter(|piece| !is_own(piece.cause))
    }
}

/// Converts whole ns to the nearest number of seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
