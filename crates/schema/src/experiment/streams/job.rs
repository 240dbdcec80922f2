//! Job: a parallel program whose messages go through the interfaces, timed as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::stream::distinct_hosts;
use crate::error::{DescriptionError, Problem};
use crate::experiment::parameters::NasParameters;

/// The programs: communication skeletons of NAS kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobProgram {
    /// Multigrid.
    Mg,
    /// Fourier transform.
    Ft,
    /// Embarrassingly parallel.
    Ep,
    /// Integer sort.
    Is,
}

impl JobProgram {
    /// Returns its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mg => "mg",
            Self::Ft => "ft",
            Self::Ep => "ep",
            Self::Is => "is",
        }
    }
}

/// Messages of a parallel program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name, for people; absent: the program's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    pub program: JobProgram,
    /// The hosts that it runs on, one process on each.
    #[schemars(length(min = 1))]
    pub hosts: Vec<u32>,
    /// Parameters of the program, as in experiments of kind program.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl Job {
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.program.name())
    }

    /// Returns the program's parameters, with defaults filled in.
    ///
    /// # Errors
    /// The first field that is unknown or out of range, as a field of the job.
    pub fn parameters(&self) -> Result<NasParameters, DescriptionError> {
        NasParameters::read(self.program.name(), &self.parameters)
    }

    /// Checks the job; errors name a field of it.
    pub(super) fn check(&self, hosts: u32) -> Result<(), DescriptionError> {
        if self.name().is_empty() {
            return Err(Problem::Empty.at("name".into()));
        }
        if self.hosts.is_empty() {
            return Err(Problem::Value("is empty; it must name at least one host".into()).at("hosts".into()));
        }
        distinct_hosts("hosts", &self.hosts, hosts)?;
        self.parameters().map(drop)
    }
}
