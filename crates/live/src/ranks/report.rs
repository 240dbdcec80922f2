//! What a live run of a parallel program came to.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankReport {
    pub rank: u32,
    pub pid: u32,
    /// When it was done, from time 0, s.
    pub done_s: f64,
    /// Computation that it asked for, that of handlers with it, s.
    pub busy_s: f64,
    /// How much longer than asked for computing took, and how long it waited for its processor otherwise, s.
    pub away_s: f64,
    /// Waited for credits, s.
    pub stalled_s: f64,
    /// Waited for anything else, s.
    pub waited_s: f64,
    /// CPU time of its thread, s.
    pub cpu_s: f64,
    /// Messages sent, answers and those to itself among them, credits not.
    pub messages: u64,
    /// Packets of those to others.
    pub packets: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From time 0 until the last rank was done, s.
    pub makespan_s: f64,
    pub ranks: Vec<RankReport>,
    /// Whether the result was gathered, and is right against a plain computation.
    pub checked: bool,
}
