//! An experiment of either kind, told apart by `workload.kind`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Experiment, Grid, ProgramExperiment};
use crate::error::{DescriptionError, Problem, nearest};
use crate::read;

/// An experiment of either kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // there is one of them at a time
pub enum AnyExperiment {
    /// A farm of tasks.
    Farm(Experiment),
    /// A parallel program.
    Program(ProgramExperiment),
}

const KINDS: [&str; 2] = ["farm", "program"];

/// What tells the kinds apart; whatever else is wrong with the file shows when it is read as one of them.
#[derive(Deserialize)]
struct Head {
    workload: Option<HeadWorkload>,
}

#[derive(Deserialize)]
struct HeadWorkload {
    kind: Option<Value>,
}

impl Head {
    /// Whether it is a program's.
    fn is_program(&self) -> Result<bool, DescriptionError> {
        match self.workload.as_ref().and_then(|workload| workload.kind.as_ref()) {
            Some(Value::String(kind)) if !KINDS.contains(&kind.as_str()) => {
                let (nearest, known) = (nearest(kind, KINDS.into_iter()), KINDS.map(str::to_owned).to_vec());
                Err(Problem::Choice { found: kind.clone(), nearest, known }.at("workload.kind".into()))
            }
            None if self.workload.is_some() => Err(Problem::Missing.at("workload.kind".into())),
            kind => Ok(kind.and_then(Value::as_str) == Some("program")),
        }
    }
}

impl AnyExperiment {
    /// Parses and checks an `experiment.toml`. Files that it names are not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        // What is no TOML, or no table, is explained by reading it as what it most often is.
        let head: Option<Head> = read::toml(text, file).ok();
        let is_program = head.map_or(Ok(false), |head| head.is_program());
        if is_program.map_err(|error| read::placed(error, text, file))? {
            ProgramExperiment::from_toml(text, file).map(Self::Program)
        } else {
            Experiment::from_toml(text, file).map(Self::Farm)
        }
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`AnyExperiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let head: Option<Head> = read::json(text, file).ok();
        if head.map_or(Ok(false), |head| head.is_program()).map_err(|error| error.in_file(file))? {
            ProgramExperiment::from_json(text, file).map(Self::Program)
        } else {
            Experiment::from_json(text, file).map(Self::Farm)
        }
    }

    /// How many runs the sweep and the repetitions make; `None` beyond 2^64.
    #[must_use]
    pub fn runs(&self) -> Option<u64> {
        match self {
            Self::Farm(farm) => farm.runs(),
            Self::Program(program) => program.runs(),
        }
    }

    /// The experiment with a field set for every run: what the sweep says about it, or about a part of it, is dropped.
    ///
    /// # Errors
    /// When there is no such field, or the value is not permitted.
    pub fn fixed(&self, path: &str, value: &Value) -> Result<Self, DescriptionError> {
        match self {
            Self::Farm(farm) => farm.fixed(path, value).map(Self::Farm),
            Self::Program(program) => program.fixed(path, value).map(Self::Program),
        }
    }

    /// The run of a number below [`AnyExperiment::runs`]: what the sweep set, and the experiment without a sweep.
    ///
    /// # Errors
    /// When values that are right alone are wrong together.
    pub fn point(&self, number: u64) -> Result<(Vec<(String, Value)>, Self), DescriptionError> {
        match self {
            Self::Farm(farm) => farm.point(number).map(|point| (point.params, Self::Farm(point.experiment))),
            Self::Program(program) => {
                program.point(number).map(|point| (point.params, Self::Program(point.experiment)))
            }
        }
    }
}
