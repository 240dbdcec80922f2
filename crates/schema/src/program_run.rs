//! Runs of parallel programs: what the runs of an experiment of kind program came to (`runs.json` with `kind = "program"`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::ComputedBy;
use crate::error::{DescriptionError, Warning};
use crate::experiment::Params;
use crate::read;

/// The runs of an experiment of kind program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramRuns {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// What tells these from the runs of a farm.
    pub kind: ProgramKind,
    /// Name of the experiment.
    pub experiment: String,
    /// Where they ran: sim, or local.
    pub on: String,
    /// Digest of the experiment and all that it names: what may be resumed into this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// One entry per run, in the order of the grid.
    pub runs: Vec<ProgramRun>,
}

/// The kind of such runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// Runs of a parallel program.
    #[default]
    Program,
}

/// What one run of a parallel program came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramRun {
    /// What the sweep set: dotted path -> value, in the order of the experiment's file.
    #[serde(default)]
    pub params: Params,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// The program.
    pub program: String,
    /// How many ranks it had.
    pub ranks: u32,
    /// Name of the disturbance; null where there was none.
    #[serde(default)]
    pub disturbance: Option<String>,
    /// What did the computing: nothing (simulated), or real ranks that waited (emulated) or kept CPUs busy (burn).
    #[serde(default = "simulated")]
    pub compute: ComputedBy,
    /// From the start to the end of the last rank, s.
    pub makespan_s: f64,
    /// Makespan of the same program with the same seed and nothing that disturbs it, s.
    pub dedicated_s: f64,
    /// What the program would take if all its ranks were always away together: `dedicated_s` times the jobs that share the
    /// machine, s.
    pub coscheduled_s: f64,
    /// `makespan_s` / `coscheduled_s`.
    pub slowdown: f64,
    /// `makespan_s` / `dedicated_s`.
    pub slowdown_dedicated: f64,
    /// Messages sent, answers among them; acknowledgements are not.
    pub messages: u64,
    /// Packets sent.
    pub packets: u64,
    /// Waiting for credits, summed over ranks, s.
    pub stalled_s: f64,
    /// Closed forms of the slowdown (of `slowdown`), by name; those that apply.
    #[serde(default)]
    pub bounds: BTreeMap<String, f64>,
    /// How long the ranks' processors worked on the program, s.
    pub busy_s: Spread,
    /// How long they were taken away, until the end of the run, s.
    pub away_s: Spread,
    /// What to keep in mind when trusting the figures.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

fn simulated() -> ComputedBy {
    ComputedBy::Simulated
}

/// A quantity over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of some values; zeros where there are none.
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
    /// What is wrong, with its place.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |runs: &Self| read::version(runs.schema_version))
    }

    /// Whether a file says that it holds runs of a program; whatever else is wrong with it shows when it is read.
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
