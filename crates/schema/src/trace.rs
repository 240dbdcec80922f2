//! Trace: the header of a `trace.parquet`.
//!
//! The activities themselves are the Parquet file's columns (docs/reference/files.md). This header, as JSON in the
//! file's metadata under the key `crosswind.trace`, describes their run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::DescriptionError;
use crate::platform::Platform;
use crate::read;
use crate::run::Run;

/// The run of the activities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Version of this file's schema.
    pub schema_version: u64,
    pub experiment: String,
    /// Where it ran: sim, or local.
    pub on: String,
    pub platform: Platform,
    pub run: Run,
}

/// Kind of an activity: the values of the column `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// The node computes the task.
    Compute,
    /// `node` sends `task` to `child`.
    Send,
    /// `child` sends the result of `task` up to `node`.
    Result,
}

impl Trace {
    /// Parses and checks a header.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |header: &Self| read::version(header.schema_version))
    }
}
