//! Result of a recording: pieces of noise per CPU, as a disturbance file and in numbers.

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Recorded, RecordedCpu, RecordedInterval, Source};
use crosswind_schema::units::{PositiveSeconds, Seconds};

use super::blame::{Piece, is_own};
use super::events::{CauseId, LOST, UNKNOWN, WITHHELD};

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
    /// Names of causes, by index.
    pub names: Vec<String>,
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
        let mut used: Vec<(CauseId, u64)> = Vec::new();
        for piece in self.noise() {
            let cause = self.known(piece.cause);
            match used.iter_mut().find(|(other, _)| *other == cause) {
                Some((_, sum)) => *sum += piece.end_ns - piece.start_ns,
                None => used.push((cause, piece.end_ns - piece.start_ns)),
            }
        }
        used.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum)); // the largest first
        let place = |cause: CauseId| used.iter().position(|(other, _)| *other == self.known(cause)).unwrap_or(0) as u16;
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
        let mut causes: Vec<String> = used.iter().map(|(cause, _)| self.name(*cause).to_owned()).collect();
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

    /// Maps every cause without a name to one.
    fn known(&self, cause: CauseId) -> CauseId {
        let is_idle = || self.names.iter().position(|name| name == IDLE_NAME).map(|place| place as CauseId);
        match cause {
            WITHHELD if self.throttled == 0 => is_idle().unwrap_or(WITHHELD),
            LOST | WITHHELD => cause,
            _ if usize::from(cause) < self.names.len() => cause,
            _ => UNKNOWN,
        }
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
