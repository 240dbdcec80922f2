//! Runs of streams: what the runs of an experiment of kind streams came to (`runs.json` with `kind = "streams"`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Warning};
use crate::experiment::Params;
use crate::experiment::streams::{Class, Discipline, JobProgram};
use crate::read;

/// The runs of an experiment of kind streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsRuns {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// What tells these from other runs.
    pub kind: StreamsKind,
    /// Name of the experiment.
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment: what may be resumed into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<StreamsRun>,
}

/// The kind of such runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamsKind {
    /// Runs of streams of messages.
    #[default]
    Streams,
}

/// What one run came to, measured three times: each stream and each job by itself (alone, T1), all of them through one queue
/// (fifo, T2), and all of them through the queues of the policy (queued, T3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamsRun {
    /// What the sweep set: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// How many hosts.
    pub hosts: u32,
    /// The queues of T3.
    pub queue: Discipline,
    /// T3: from the start until the last stream had its timed messages and the last job its end, s.
    pub makespan_s: f64,
    /// One entry per stream, in the order of the file.
    #[serde(default)]
    pub streams: Vec<StreamOutcome>,
    /// One entry per job, in the order of the file.
    #[serde(default)]
    pub jobs: Vec<JobOutcome>,
    /// Closed forms, by name; those that apply.
    #[serde(default)]
    pub bounds: BTreeMap<String, f64>,
    /// Frames that arrived in T3, of everything.
    pub frames: u64,
    /// Frames lost in T3, of everything: there was no room for them.
    pub dropped: u64,
    /// What to keep in mind when trusting the figures.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// What one stream came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamOutcome {
    /// Its name.
    pub name: String,
    /// Class of its messages.
    pub class: Class,
    /// Operations that were timed.
    pub messages: u64,
    /// Bytes of them, answers among them.
    pub bytes: u64,
    /// T1: from the start until the last timed operation was done, nothing else there, s.
    pub alone_s: f64,
    /// T2: beside all others, one queue, s.
    pub fifo_s: f64,
    /// T3: beside all others, the queues of the policy, s.
    pub queued_s: f64,
    /// T2 / T1.
    pub slowdown_fifo: f64,
    /// T3 / T1.
    pub slowdown_queued: f64,
    /// From an operation's beginning until it was done, s.
    pub latency_s: Latencies,
}

/// Latencies of the timed operations, three times measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// T1.
    pub alone: Latency,
    /// T2.
    pub fifo: Latency,
    /// T3.
    pub queued: Latency,
}

/// A latency over all timed operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The mean, s.
    pub mean: f64,
    /// Half are at most so long, s.
    pub p50: f64,
    /// 99 of 100 are at most so long, s.
    pub p99: f64,
}

impl Latency {
    /// Of some latencies, s, which are sorted in place; zeros where there are none. A percentile is the least latency that so
    /// many do not exceed.
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

/// What one job came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// The program.
    pub program: JobProgram,
    /// How many hosts it ran on.
    pub hosts: u32,
    /// Messages sent.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// T1: from the start to the end of its last process, nothing else there, s.
    pub alone_s: f64,
    /// T2: beside all others, one queue, s.
    pub fifo_s: f64,
    /// T3: beside all others, the queues of the policy, s.
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
    /// What is wrong, with its place.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }

    /// Whether a file says that it holds runs of streams; whatever else is wrong with it shows when it is read.
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
