//! Overlap: the cost of a program that only communicates and of programs that only compute to each other, on the same
//! processors (`overlap.json`).
//!
//! Written by `crosswind overlap`, live or from the simulator's processors; quadrics-overlap, tables 1 to 4. Times are
//! absolute, alone and together, because the two ends do not coincide.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{DescriptionError, Problem, Warning};
use crate::measurement::Host;
use crate::read;
use crate::simulated_overlap::Wait;

/// How a real process waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Blocks until the kernel wakes it.
    Event,
    /// Polls and never blocks in the kernel.
    Poll,
    /// Polls for about the cost of a wake-up, and then blocks.
    SpinBlock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverlapKind {
    #[default]
    Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverlapOn {
    /// Measured with real processes on this machine.
    Live,
    /// Run in virtual time by the simulator.
    Sim,
}

/// The simulated scheduler of the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Priorities that decay with use, as in Unix and in Linux before 2.6.23.
    Decay,
    /// Fair shares weighted by nice levels, as in Linux since.
    Fair,
}

/// The other end of the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlapPeer {
    /// Host name that it reported.
    pub host: String,
    /// Whether it ran on this same machine.
    pub loopback: bool,
    /// Median round-trip time of a small message at the start, s.
    pub rtt_s: f64,
}

/// One cell: a way of waiting, a nice level and a kind of message, with the times of both, alone and together.
/// Medians over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlapCell {
    /// How both ends of the messages wait.
    pub wait: Wait,
    /// Nice level of the burners, -20 to 19; the messages' is 0.
    pub burn_nice: i32,
    /// Number of timed round trips.
    pub messages: u64,
    /// Bytes of each message, each way.
    pub message_bytes: u64,
    /// Time from the start to the last answer, without burners, s.
    pub ping_alone_s: f64,
    /// Time from the start to the end of the last burner, without messages, s.
    pub burn_alone_s: f64,
    /// As `ping_alone_s`, beside the burners, s.
    pub ping_s: f64,
    /// As `burn_alone_s`, beside the messages, s.
    pub burn_s: f64,
    /// CPU time of both ends of the messages, alone, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping_cpu_s: Option<f64>,
    /// Time from the start to the end of the last burner at the peer, beside the messages, s; absent: no burners
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_there_s: Option<f64>,
    /// The verdict, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdict, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Recommended change; absent: no other cell of this matrix is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// Verdict on communication and computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both took about as long as alone.
    Overlapped,
    /// One waited for most of the other's time.
    Serialised,
    /// The messages took longer, the computation did not.
    PingDelayed,
    /// The computation took longer, the messages did not.
    BurnDelayed,
    /// The messages and the computation took longer.
    BothDamaged,
}

/// The programs of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverlapWhat {
    /// Only the program that exchanges messages.
    PingAlone,
    /// Only the programs that compute.
    BurnAlone,
    /// The message program and the burners together.
    Together,
}

/// One measured run of real processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlapRun {
    /// The programs of the run.
    pub what: OverlapWhat,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// How both ends of the messages waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Waiting>,
    /// Nice level of the burners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_nice: Option<i32>,
    /// Number of timed round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Bytes of each message, each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Time from the start to the last answer, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping_s: Option<f64>,
    /// Time from the start to the end of the last burner, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_s: Option<f64>,
    /// Time from the start to the end of the first burner, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_first_s: Option<f64>,
    /// Time from the start to the end of the last burner at the peer, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_there_s: Option<f64>,
    /// CPU time of both ends of the messages, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping_cpu_s: Option<f64>,
    /// CPU time of the burners here, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_cpu_s: Option<f64>,
    /// Delay after the common start until the last process got a processor, s.
    pub late_s: f64,
    /// Mean number of CPUs that other processes used meanwhile.
    pub others_cpus: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    /// Version of this file's schema.
    pub schema_version: u64,
    pub kind: OverlapKind,
    /// Real processes or the simulator.
    pub on: OverlapOn,
    /// Number of processors that all programs share.
    pub cpus: u32,
    /// Number of processes that only compute.
    pub burners: u32,
    /// Requested time of a burner alone, s.
    pub asked_burn_s: f64,
    /// The cells that have all four times.
    pub cells: Vec<OverlapCell>,
    /// Requested runs of each kind.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Seed of the order of the runs, and of the simulator.
    #[serde(default)]
    pub seed: u64,
    /// Iterations of x += sin x of each burner (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Time that spin-block polls before it blocks, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_s: Option<f64>,
    /// Scheduler of the processors; simulated matrices only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// The network between the two ends (sim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Value>,
    /// Overheads of the simulated machine (sim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Value>,
    /// Host at the other end; measured matrices only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<OverlapPeer>,
    /// The measured machine; measured matrices only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The request, which must be the same to resume (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// Conclusions from the whole matrix, in sentences.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Every run, in order of execution (live).
    #[serde(default)]
    pub runs: Vec<OverlapRun>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

fn one() -> u32 {
    1
}

impl Overlap {
    /// Parses and checks an `overlap.json`.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        let wrong = |field: String, value: &dyn std::fmt::Display, permitted: &str| {
            Err(Problem::Value(format!("is {value}; it must be {permitted}")).at(field))
        };
        if self.cpus == 0 {
            return wrong("cpus".into(), &self.cpus, "at least 1");
        }
        let mut known = BTreeSet::new();
        for (k, cell) in self.cells.iter().enumerate() {
            let at = |field: &str| format!("cells[{k}].{field}");
            if self.on == OverlapOn::Live && cell.wait == Wait::Buffered {
                return wrong(at("wait"), &"buffered", "event, poll or spin-block where on is live");
            }
            if !(-20..=19).contains(&cell.burn_nice) {
                return wrong(at("burn_nice"), &cell.burn_nice, "-20 to 19");
            }
            let times = [
                ("ping_alone_s", cell.ping_alone_s),
                ("burn_alone_s", cell.burn_alone_s),
                ("ping_s", cell.ping_s),
                ("burn_s", cell.burn_s),
            ];
            for (field, seconds) in times {
                if !(seconds > 0.0 && seconds.is_finite()) {
                    return wrong(at(field), &seconds, "greater than 0 s");
                }
            }
            if !known.insert((cell.wait, cell.burn_nice, cell.messages, cell.message_bytes)) {
                return Err(Problem::Value("is the cell of an earlier one again".into()).at(format!("cells[{k}]")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = r#"{"wait": "poll", "burn_nice": -20, "messages": 6400, "message_bytes": 1000000,
        "ping_alone_s": 41.7, "burn_alone_s": 63.1, "ping_s": 83.6, "burn_s": 90.5}"#;

    fn matrix(cells: &str) -> String {
        format!(
            r#"{{"schema_version": 1, "kind": "overlap", "on": "sim", "cpus": 2, "burners": 2, "asked_burn_s": 63.1,
            "cells": [{cells}]}}"#
        )
    }

    #[test]
    fn a_matrix_of_the_paper_is_read() {
        let found = Overlap::from_json(matrix(CELL).as_bytes(), "overlap.json").expect("whole");
        assert_eq!((found.cells[0].wait, found.repetitions), (Wait::Poll, 1));
    }

    #[test]
    fn a_wrong_cell_is_named() {
        let errors = [
            (CELL.replace("-20", "20"), "cells[0].burn_nice is 20; it must be -20 to 19"),
            (CELL.replace("83.6", "0"), "cells[0].ping_s is 0; it must be greater than 0 s"),
            (format!("{CELL}, {CELL}"), "cells[1] is the cell of an earlier one again"),
        ];
        let live = matrix(&CELL.replace("poll", "buffered")).replace("\"sim\"", "\"live\"");
        let error = Overlap::from_json(live.as_bytes(), "overlap.json").expect_err("only simulated").to_string();
        assert!(error.ends_with("cells[0].wait is buffered; it must be event, poll or spin-block where on is live"));
        for (cells, message) in errors {
            let error = Overlap::from_json(matrix(&cells).as_bytes(), "overlap.json").expect_err("wrong").to_string();
            assert!(error.ends_with(message), "{error}");
        }
    }
}
