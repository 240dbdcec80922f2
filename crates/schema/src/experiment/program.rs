//! Experiments of kind program: a parallel program, its network, its disturbance and its window.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::execution::ProgramExecution;
use super::network::{FatTree, NetworkSource};
use super::parameters::{
    BspParameters, CholeskyParameters, ColumnParameters, ConnectParameters, Em3dParameters, EpParameters, FtParameters,
    GoalParameters, IsParameters, MgParameters, NasParameters, RecordedParameters, SampleParameters, Transfers,
};
use super::sweep::{Grid, Sweep, shared_fields};
use super::window::WindowPolicy;
use crate::disturbance::Disturbance;
use crate::error::{DescriptionError, Problem};
use crate::read;
use crate::source::string_or_table;

/// A parallel program, with its network, disturbance and policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramExperiment {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Seed of everything drawn at random.
    #[serde(default = "super::one")]
    pub seed: u64,
    /// Runs of each point, each with its own seed.
    #[serde(default = "super::one")]
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    /// Costs of messages between ranks.
    #[serde(default)]
    pub network: NetworkSource,
    /// Path of a disturbance file, relative to this file, or the disturbance itself; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<DisturbanceSource>,
    pub workload: ProgramWorkload,
    /// Window: limit on packets in flight.
    #[serde(default)]
    pub policy: WindowPolicy,
    /// How a live run computes; simulations ignore it.
    #[serde(default)]
    pub execution: ProgramExecution,
    /// Dotted path -> values, in the order of the file; the grid is their product, the last path varying fastest.
    #[serde(default, skip_serializing_if = "Sweep::is_empty")]
    pub sweep: Sweep,
}

/// A path, or the disturbance itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DisturbanceSource {
    /// Path of a disturbance file, relative to the experiment's file.
    Path(String),
    /// A disturbance in an inline `[disturbance]` table.
    Inline(Disturbance),
}

impl<'de> Deserialize<'de> for DisturbanceSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the path of a disturbance file or a disturbance table";
        string_or_table(deserializer, expected, |path| Ok(Self::Path(path.to_owned())), Self::Inline)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramWorkloadKind {
    /// Ranks that compute and communicate.
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramName {
    /// Sparse Cholesky factorisation.
    Cholesky,
    /// Connected components of a random graph.
    Connect,
    /// Column sort.
    Column,
    /// Electromagnetic waves on an irregular graph.
    Em3d,
    /// Sample sort.
    Sample,
    /// Supersteps of any shape: bulk-synchronous parallel.
    Bsp,
    /// A schedule in LogGOPSim's format.
    Goal,
    /// A program that was recorded.
    Recorded,
    /// Communication skeleton of NAS MG: multigrid.
    Mg,
    /// Communication skeleton of NAS FT: Fourier transforms.
    Ft,
    /// Communication skeleton of NAS EP: embarrassingly parallel.
    Ep,
    /// Communication skeleton of NAS IS: integer sort.
    Is,
}

impl ProgramName {
    /// Every program, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::Cholesky,
        Self::Connect,
        Self::Column,
        Self::Em3d,
        Self::Sample,
        Self::Bsp,
        Self::Goal,
        Self::Recorded,
        Self::Mg,
        Self::Ft,
        Self::Ep,
        Self::Is,
    ];

    /// Returns its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cholesky => "cholesky",
            Self::Connect => "connect",
            Self::Column => "column",
            Self::Em3d => "em3d",
            Self::Sample => "sample",
            Self::Bsp => "bsp",
            Self::Goal => "goal",
            Self::Recorded => "recorded",
            Self::Mg => "mg",
            Self::Ft => "ft",
            Self::Ep => "ep",
            Self::Is => "is",
        }
    }
}

/// The parameters of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    Cholesky(CholeskyParameters),
    Connect(ConnectParameters),
    Column(ColumnParameters),
    Em3d(Em3dParameters),
    Sample(SampleParameters),
    Bsp(BspParameters),
    Goal(GoalParameters),
    Recorded(RecordedParameters),
    Nas(NasParameters),
}

/// The workload: a parallel program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramWorkload {
    pub kind: ProgramWorkloadKind,
    pub program: ProgramName,
    /// Number of ranks; absent for a GOAL file and for a recording, which contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u64>,
    /// Seed of the program's data; absent: the experiment's seed, so that runs with other seeds have other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Parameters as written; [`ProgramWorkload::parameters`] parses them.
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

/// Most ranks: more do not fit into the memory of any machine that runs them.
const MOST_RANKS: u64 = 10_000_000;

impl ProgramWorkload {
    /// Returns the program's parameters, with defaults filled in.
    ///
    /// # Errors
    /// The first field that is unknown, missing or out of range.
    pub fn parameters(&self) -> Result<Parameters, DescriptionError> {
        Ok(match self.program {
            ProgramName::Cholesky => Parameters::Cholesky(self.read()?),
            ProgramName::Connect => Parameters::Connect(self.read()?),
            ProgramName::Column => Parameters::Column(self.read()?),
            ProgramName::Em3d => Parameters::Em3d(self.read()?),
            ProgramName::Sample => Parameters::Sample(self.read()?),
            ProgramName::Bsp => Parameters::Bsp(self.read()?),
            ProgramName::Goal => Parameters::Goal(self.read()?),
            ProgramName::Recorded => Parameters::Recorded(self.read()?),
            nas @ (ProgramName::Mg | ProgramName::Ft | ProgramName::Ep | ProgramName::Is) => {
                let read = NasParameters::read(nas.name(), &self.parameters);
                Parameters::Nas(read.map_err(|error| error.below("workload"))?)
            }
        })
    }

    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, DescriptionError> {
        read::value(&Value::Object(self.parameters.clone())).map_err(|error| error.below("workload.parameters"))
    }

    /// Returns the seed of the program's data, given the experiment's seed.
    #[must_use]
    pub fn data_seed(&self, experiment: u64) -> u64 {
        self.seed.unwrap_or(experiment)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        let parameters = self.parameters()?;
        let field = || "workload.ranks".to_owned();
        match (self.ranks, &parameters) {
            (Some(ranks), Parameters::Goal(_)) => {
                return Err(Problem::Value(format!("is {ranks}; a GOAL file says so itself")).at(field()));
            }
            (Some(ranks), Parameters::Recorded(_)) => {
                return Err(Problem::Value(format!("is {ranks}; a recording says so itself")).at(field()));
            }
            (
                None,
                Parameters::Goal(GoalParameters { file, .. }) | Parameters::Recorded(RecordedParameters { file, .. }),
            ) => {
                if file.is_empty() {
                    return Err(Problem::Empty.at("workload.parameters.file".into()));
                }
            }
            (None, _) => return Err(Problem::Missing.at(field())),
            (Some(ranks), _) if !(1..=MOST_RANKS).contains(&ranks) => {
                return Err(Problem::Value(format!("is {ranks}; it must be 1 to {MOST_RANKS}")).at(field()));
            }
            (Some(_), Parameters::Cholesky(cholesky)) => cholesky.check()?,
            (Some(ranks), Parameters::Column(column)) => column.check(ranks as u32)?,
            (Some(_), _) => {}
        }
        Ok(())
    }
}

impl JsonSchema for ProgramWorkload {
    fn schema_name() -> Cow<'static, str> {
        "ProgramWorkload".into()
    }

    // Implemented by hand: the parameters depend on the program.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kind = generator.subschema_for::<ProgramWorkloadKind>();
        let programs: Vec<Value> = ProgramName::ALL
            .into_iter()
            .map(|program| {
                let parameters = match program {
                    ProgramName::Cholesky => generator.subschema_for::<CholeskyParameters>(),
                    ProgramName::Connect => generator.subschema_for::<ConnectParameters>(),
                    ProgramName::Column => generator.subschema_for::<ColumnParameters>(),
                    ProgramName::Em3d => generator.subschema_for::<Em3dParameters>(),
                    ProgramName::Sample => generator.subschema_for::<SampleParameters>(),
                    ProgramName::Bsp => generator.subschema_for::<BspParameters>(),
                    ProgramName::Goal => generator.subschema_for::<GoalParameters>(),
                    ProgramName::Recorded => generator.subschema_for::<RecordedParameters>(),
                    ProgramName::Mg => generator.subschema_for::<MgParameters>(),
                    ProgramName::Ft => generator.subschema_for::<FtParameters>(),
                    ProgramName::Ep => generator.subschema_for::<EpParameters>(),
                    ProgramName::Is => generator.subschema_for::<IsParameters>(),
                };
                let ranks = json_schema!({ "type": "integer", "minimum": 1, "maximum": MOST_RANKS });
                let name = json_schema!({ "const": program.name() });
                let seed = generator.subschema_for::<Option<u64>>();
                let (properties, required) = if matches!(program, ProgramName::Goal | ProgramName::Recorded) {
                    (
                        serde_json::json!({ "kind": kind, "program": name, "seed": seed, "parameters": parameters }),
                        ["kind", "program", "parameters"],
                    )
                } else {
                    (
                        serde_json::json!({ "kind": kind, "program": name, "ranks": ranks, "seed": seed, "parameters": parameters }),
                        ["kind", "program", "ranks"],
                    )
                };
                serde_json::json!({
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false
                })
            })
            .collect();
        json_schema!({ "description": "What there is to do: a parallel program.", "oneOf": programs })
    }
}

impl ProgramExperiment {
    /// Refuses what has no effect on a recorded program whose transfers take as long as recorded.
    fn check_transfers(&self) -> Result<(), DescriptionError> {
        let Parameters::Recorded(RecordedParameters { transfers: Transfers::Recorded, .. }) =
            self.workload.parameters()?
        else {
            return Ok(());
        };
        let field = if self.network != NetworkSource::default() {
            "network"
        } else if self.policy != WindowPolicy::default() {
            "policy"
        } else {
            return Ok(());
        };
        let sentence = "has no effect on transfers that take as long as recorded; set workload.parameters.transfers to \
                        \"network\"";
        Err(Problem::Value(sentence.into()).at(field.into()))
    }

    /// Parses and checks an `experiment.toml` of kind program. Files that it refers to are not read here.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`ProgramExperiment::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }
}

/// Paths that a sweep may vary; a star stands for any field.
const SWEPT: [&str; 17] = [
    "disturbance",
    "disturbance.*",
    "execution.compute",
    "network",
    "network.*",
    "policy.away",
    "policy.away_packets",
    "policy.credit",
    "policy.resend_s",
    "policy.window",
    "policy.window_packets",
    "seed",
    "workload.program",
    "workload.ranks",
    "workload.seed",
    "workload.parameters",
    "workload.parameters.*",
];
const SWEPT_BELOW: [&str; 3] = ["disturbance.", "network.", "workload.parameters."];

impl Grid for ProgramExperiment {
    const SWEPT: &'static [&'static str] = &SWEPT;
    const SWEPT_BELOW: &'static [&'static str] = &SWEPT_BELOW;

    shared_fields!();

    fn set(&mut self, path: &str, value: &Value) -> Result<(), DescriptionError> {
        use super::sweep::{parsed, with};
        let (section, rest) = path.split_once('.').unwrap_or((path, ""));
        match (section, rest) {
            ("seed", _) => self.seed = parsed(value, path)?,
            ("network", "") => self.network = parsed(value, path)?,
            ("network", field) => {
                self.network = NetworkSource::Inline(with(&self.network.network(), field, value, path)?);
            }
            ("disturbance", "") => self.disturbance = parsed(value, path)?,
            ("disturbance", field) => match &mut self.disturbance {
                Some(DisturbanceSource::Inline(inline)) => *inline = with(inline, field, value, path)?,
                _ => {
                    let sentence = "is inside an inline [disturbance] table, which this experiment does not have";
                    return Err(Problem::Value(sentence.into()).at(format!("sweep.{path}")));
                }
            },
            ("execution", field) => self.execution = with(&self.execution, field, value, path)?,
            ("policy", field) => self.policy = with(&self.policy, field, value, path)?,
            ("workload", field) => self.workload = with(&self.workload, field, value, path)?,
            _ => return Err(Self::unknown(path)),
        }
        Ok(())
    }

    fn check_head(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)
    }

    fn check_point(&self) -> Result<(), DescriptionError> {
        self.workload.check()?;
        self.policy.check()?;
        let network = self.network.network();
        network.check()?;
        self.check_transfers()?;
        if network.fat_tree.is_some() {
            let inline = match &self.disturbance {
                Some(DisturbanceSource::Inline(inline)) => Some(inline),
                _ => None,
            };
            FatTree::check(self.workload.ranks, &self.policy, inline)?;
        }
        match &self.disturbance {
            Some(DisturbanceSource::Path(path)) if path.is_empty() => Err(Problem::Empty.at("disturbance".into())),
            Some(DisturbanceSource::Inline(inline)) => inline
                .check()
                .and_then(|()| self.workload.ranks.map_or(Ok(()), |ranks| inline.check_ranks(ranks as u32)))
                .map_err(|error| error.below("disturbance")),
            _ => Ok(()),
        }
    }
}
