//! Runs of parallel programs: the results of an experiment of kind program (`runs.json` with `kind = "program"`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::ComputedBy;
use crate::error::{DescriptionError, Warning};
use crate::experiment::Params;
use crate::experiment::parameters::Transfers;
use crate::provenance::Provenance;
use crate::read;

/// The runs of an experiment of kind program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramRuns {
    /// Version of this file's schema.
    pub schema_version: u64,
    pub kind: ProgramKind,
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment and all files that it refers to; it must be the same to resume into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<ProgramRun>,
    /// Experiment, files and versions that they were made from; runs of `map` do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// Runs of a parallel program.
    #[default]
    Program,
}

/// Result of one run of a parallel program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramRun {
    /// Values set by the sweep: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    pub program: String,
    pub ranks: u32,
    /// Name of the disturbance; null if there was none.
    #[serde(default)]
    pub disturbance: Option<String>,
    /// How the computation was performed: not at all (simulated), or by real ranks that waited (emulated) or kept
    /// CPUs busy (burn).
    #[serde(default = "simulated")]
    pub compute: ComputedBy,
    /// Time from the start to the end of the last rank, s.
    pub makespan_s: f64,
    /// Makespan of the same program with the same seed without a disturbance, s.
    pub dedicated_s: f64,
    /// Time of the program if all its ranks were always away together, s: `dedicated_s` times the number of jobs that
    /// share the machine.
    pub coscheduled_s: f64,
    /// The makespan over `coscheduled_s`: 1 is no slowdown.
    pub slowdown: f64,
    /// The makespan over `dedicated_s`: 1 is no slowdown.
    pub slowdown_dedicated: f64,
    /// Messages sent, including answers but not acknowledgements.
    pub messages: u64,
    pub packets: u64,
    /// Time waiting for credits, summed over ranks, s.
    pub stalled_s: f64,
    /// Applicable closed forms of `slowdown`, by name.
    #[serde(default)]
    pub bounds: BTreeMap<String, f64>,
    /// Time that the ranks' processors worked on the program, s.
    pub busy_s: Spread,
    /// Time that they were taken away, until the end of the run, s.
    pub away_s: Spread,
    /// Of a recorded program: what is known of its recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedTimes>,
    /// Of jobs that take turns on this machine: how exactly they were switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Measured switches from one job to another, until the first job was done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switches {
    /// Number of switches; those of several processors at the same planned time are one.
    pub count: u64,
    /// Time from the first rank that continues at a switch to the last one, s; 0 where only one does.
    pub skew_mean_s: f64,
    pub skew_max_s: f64,
    /// Time from the planned switch until its last rank continues, s.
    pub late_mean_s: f64,
    pub late_max_s: f64,
    /// Length of a quantum, s.
    pub quantum_s: f64,
}

/// Times of a recording, and of its undisturbed replay with transfers as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedTimes {
    /// Time of the recorded run, s.
    pub recorded_s: f64,
    /// Time of its undisturbed replay, s; the difference is not explained.
    pub replayed_s: f64,
    /// Most that a rank could run and did not while it was recorded, s; it counts as computing.
    pub away_s: f64,
    /// Whether transfers took as long as recorded, or as long as on the network.
    pub transfers: Transfers,
}

fn simulated() -> ComputedBy {
    ComputedBy::Simulated
}

/// Statistics of a quantity over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

impl Spread {
    /// Returns the statistics of some values; zeros if there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut spread, mut count) = (Self { min: f64::INFINITY, mean: 0.0, max: f64::NEG_INFINITY }, 0_u64);
        for value in values {
            spread = Self { min: spread.min.min(value), mean: spread.mean + value, max: spread.max.max(value) };
            count += 1;
        }
        if count == 0 { Self::default() } else { Self { mean: spread.mean / count as f64, ..spread } }
    }
}

impl ProgramRuns {
    /// Parses and checks such a `runs.json`.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }

    /// Whether a file is declared to hold runs of a program. Other errors in it show when it is read.
    #[must_use]
    pub fn is_one(text: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Head {
            kind: ProgramKind,
        }
        serde_json::from_slice::<Head>(text).is_ok_and(|head| head.kind == ProgramKind::Program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_least_the_mean_and_the_most() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { min: 1.0, mean: 2.0, max: 3.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn runs_of_a_farm_are_not_runs_of_a_program() {
        assert!(ProgramRuns::is_one(br#"{"kind": "program", "runs": 7}"#));
        assert!(!ProgramRuns::is_one(br#"{"runs": []}"#));
        assert!(!ProgramRuns::is_one(b"{"));
    }
}
