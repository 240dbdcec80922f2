//! An experiment of any kind, selected by `workload.kind`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Experiment, Grid, ProgramExperiment, StreamsExperiment};
use crate::error::{DescriptionError, Problem, nearest};
use crate::read;

/// An experiment of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // only one exists at a time
pub enum AnyExperiment {
    Farm(Experiment),
    Program(ProgramExperiment),
    /// Streams of messages of two classes.
    Streams(StreamsExperiment),
}

/// The kinds, in the order of the documentation.
#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    Farm,
    Program,
    Streams,
}

const KINDS: [(&str, Kind); 3] = [("farm", Kind::Farm), ("program", Kind::Program), ("streams", Kind::Streams)];

/// The field that selects the kind. Other errors in the file show when it is read as that kind.
#[derive(Deserialize)]
struct Head {
    workload: Option<HeadWorkload>,
}

#[derive(Deserialize)]
struct HeadWorkload {
    kind: Option<Value>,
}

impl Head {
    /// Returns the kind. If the field cannot be read, returns a farm, which explains best what is wrong.
    fn kind(&self) -> Result<Kind, DescriptionError> {
        let Some(workload) = &self.workload else { return Ok(Kind::default()) };
        match &workload.kind {
            Some(Value::String(found)) => {
                if let Some((_, kind)) = KINDS.iter().find(|(name, _)| name == found) {
                    return Ok(*kind);
                }
                let names = KINDS.map(|(name, _)| name);
                let (nearest, known) = (nearest(found, names.into_iter()), names.map(str::to_owned).to_vec());
                Err(Problem::Choice { found: found.clone(), nearest, known }.at("workload.kind".into()))
            }
            Some(_) => Ok(Kind::default()),
            None => Err(Problem::Missing.at("workload.kind".into())),
        }
    }
}

impl AnyExperiment {
    /// Parses and checks an `experiment.toml`. Files that it refers to are not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        // Text that is not TOML, or not a table, is explained by reading it as the most common kind.
        let head: Option<Head> = read::toml(text, file).ok();
        let kind = head.map_or(Ok(Kind::default()), |head| head.kind());
        match kind.map_err(|error| read::placed(error, text, file))? {
            Kind::Farm => Experiment::from_toml(text, file).map(Self::Farm),
            Kind::Program => ProgramExperiment::from_toml(text, file).map(Self::Program),
            Kind::Streams => StreamsExperiment::from_toml(text, file).map(Self::Streams),
        }
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`AnyExperiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let head: Option<Head> = read::json(text, file).ok();
        let kind = head.map_or(Ok(Kind::default()), |head| head.kind());
        match kind.map_err(|error| error.in_file(file))? {
            Kind::Farm => Experiment::from_json(text, file).map(Self::Farm),
            Kind::Program => ProgramExperiment::from_json(text, file).map(Self::Program),
            Kind::Streams => StreamsExperiment::from_json(text, file).map(Self::Streams),
        }
    }

    /// Returns the number of runs of the sweep and its repetitions; `None` beyond 2^64.
    #[must_use]
    pub fn runs(&self) -> Option<u64> {
        match self {
            Self::Farm(farm) => farm.runs(),
            Self::Program(program) => program.runs(),
            Self::Streams(streams) => streams.runs(),
        }
    }

    /// Returns the experiment with a field set for every run. Swept values of the field, or of a part of it, are
    /// dropped.
    ///
    /// # Errors
    /// When the field does not exist, or the value is not permitted.
    pub fn fixed(&self, path: &str, value: &Value) -> Result<Self, DescriptionError> {
        match self {
            Self::Farm(farm) => farm.fixed(path, value).map(Self::Farm),
            Self::Program(program) => program.fixed(path, value).map(Self::Program),
            Self::Streams(streams) => streams.fixed(path, value).map(Self::Streams),
        }
    }

    /// Returns the run of a number below [`AnyExperiment::runs`]: the values that the sweep set, and the experiment
    /// without a sweep.
    ///
    /// # Errors
    /// When values that are valid alone are invalid together.
    pub fn point(&self, number: u64) -> Result<(Vec<(String, Value)>, Self), DescriptionError> {
        match self {
            Self::Farm(farm) => farm.point(number).map(|point| (point.params, Self::Farm(point.experiment))),
            Self::Program(program) => {
                program.point(number).map(|point| (point.params, Self::Program(point.experiment)))
            }
            Self::Streams(streams) => {
                streams.point(number).map(|point| (point.params, Self::Streams(point.experiment)))
            }
        }
    }
}
