//! Outcome of a live run of a parallel program.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankReport {
    pub rank: u32,
    pub pid: u32,
    /// When the rank was done, from time 0, s.
    pub done_s: f64,
    /// Requested computation, including that of handlers, s.
    pub busy_s: f64,
    /// Time by which computations took longer than requested, plus other waits for the processor, s.
    pub away_s: f64,
    /// Time spent waiting for credits, s.
    pub stalled_s: f64,
    /// Time spent waiting for anything else, s.
    pub waited_s: f64,
    /// CPU time of the rank's thread, s.
    pub cpu_s: f64,
    /// Messages sent, including answers and messages to itself, without credits.
    pub messages: u64,
    /// Packets of the messages to other ranks.
    pub packets: u64,
}

/// The outcome of a run whose result equals that of a plain computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time from time 0 until the last rank was done, s.
    pub makespan_s: f64,
    pub ranks: Vec<RankReport>,
}
