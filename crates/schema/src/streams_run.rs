//! Runs of streams: the results of an experiment of kind streams (`runs.json` with `kind = "streams"`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Warning};
use crate::experiment::Params;
use crate::experiment::streams::{Class, Discipline, JobProgram};
use crate::provenance::Provenance;
use crate::read;

/// The runs of an experiment of kind streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsRuns {
    /// Version of this file's schema.
    pub schema_version: u64,
    pub kind: StreamsKind,
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment; it must be the same to resume into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<StreamsRun>,
    /// Experiment, files and versions that they were made from; runs of `map` do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamsKind {
    /// Runs of streams of messages.
    #[default]
    Streams,
}

/// Result of one run, measured three times: each stream and each job alone (T1), all of them through one queue (fifo,
/// T2), and all of them through the queues of the policy (queued, T3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsRun {
    /// Values set by the sweep: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    pub hosts: u32,
    /// Queue discipline of the third measurement, T3.
    pub queue: Discipline,
    /// T3: time from the start until the last stream has its timed messages and the last job has ended, s.
    pub makespan_s: f64,
    /// One entry per stream, in the order of the file.
    #[serde(default)]
    pub streams: Vec<StreamOutcome>,
    /// One entry per job, in the order of the file.
    #[serde(default)]
    pub jobs: Vec<JobOutcome>,
    /// Applicable closed forms, by name.
    #[serde(default)]
    pub bounds: BTreeMap<String, f64>,
    /// Frames that arrived in T3, of all streams and jobs.
    pub frames: u64,
    /// Frames lost in T3 for lack of room, of all streams and jobs.
    pub dropped: u64,
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamOutcome {
    pub name: String,
    pub class: Class,
    /// Number of messages that were timed.
    pub messages: u64,
    /// Bytes of these messages, including their answers.
    pub bytes: u64,
    /// T1: time from the start until the last timed operation is done, alone, s.
    pub alone_s: f64,
    /// T2: the same beside all others, through one queue, s.
    pub fifo_s: f64,
    /// T3: the same beside all others, through the queues of the policy, s.
    pub queued_s: f64,
    /// Slowdown in a plain queue: T2 / T1.
    pub slowdown_fifo: f64,
    /// Slowdown under the queue discipline: T3 / T1.
    pub slowdown_queued: f64,
    /// Time from the start of an operation until it is done, s.
    pub latency_s: Latencies,
}

/// Latencies of the timed operations in the three measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// T1: the stream alone on the links.
    pub alone: Latency,
    /// T2: all streams in a plain queue.
    pub fifo: Latency,
    /// T3: all streams under the queue discipline.
    pub queued: Latency,
}

/// A latency over all timed operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    pub mean: f64,
    /// Median, s: half of the operations take at most this.
    pub p50: f64,
    /// 99th percentile, s: 99 of 100 operations take at most this.
    pub p99: f64,
}

impl Latency {
    /// Returns the statistics of some latencies, s, which are sorted in place; zeros if there are none. A percentile
    /// is the smallest latency that this fraction does not exceed.
    #[must_use]
    pub fn of(latencies_s: &mut [f64]) -> Self {
        latencies_s.sort_unstable_by(f64::total_cmp);
        let count = latencies_s.len();
        let at_most = |part: f64| {
            let place = ((count as f64 * part).ceil() as usize).clamp(1, count.max(1)) - 1;
            latencies_s.get(place).copied().unwrap_or_default()
        };
        let mean = if count == 0 { 0.0 } else { latencies_s.iter().sum::<f64>() / count as f64 };
        Self { mean, p50: at_most(0.5), p99: at_most(0.99) }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobOutcome {
    pub name: String,
    pub program: JobProgram,
    /// Number of hosts that it ran on.
    pub hosts: u32,
    pub messages: u64,
    pub bytes: u64,
    /// T1: time from the start to the end of its last process, alone, s.
    pub alone_s: f64,
    /// T2: the same beside all others, through one queue, s.
    pub fifo_s: f64,
    /// T3: the same beside all others, through the queues of the policy, s.
    pub queued_s: f64,
    /// (T2 - T1) / T1.
    pub eta_fifo: f64,
    /// (T3 - T1) / T1.
    pub eta_queued: f64,
}

impl StreamsRuns {
    /// Parses and checks such a `runs.json`.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }

    /// Whether a file is declared to hold runs of streams. Other errors in it show when it is read.
    #[must_use]
    pub fn is_one(text: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Head {
            kind: StreamsKind,
        }
        serde_json::from_slice::<Head>(text).is_ok_and(|head| head.kind == StreamsKind::Streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_latency_that_so_many_do_not_exceed() {
        let mut hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(Latency::of(&mut hundred), Latency { mean: 50.5, p50: 50.0, p99: 99.0 });
        assert_eq!(Latency::of(&mut [7.0]), Latency { mean: 7.0, p50: 7.0, p99: 7.0 });
        assert_eq!(Latency::of(&mut []), Latency::default());
    }

    #[test]
    fn runs_of_other_kinds_are_not_runs_of_streams() {
        assert!(StreamsRuns::is_one(br#"{"kind": "streams", "runs": 7}"#));
        assert!(!StreamsRuns::is_one(br#"{"kind": "program"}"#));
        assert!(!StreamsRuns::is_one(br#"{"runs": []}"#));
    }
}
