//! Disturbance: when each rank's processor is taken away, and by what (`disturbance.toml`).
//!
//! One file serves simulation, injection, recording and blame. The file describes sources. [`Timelines`] lazily turns
//! them into intervals per rank, the same for the same seed.
//!
//! Sources combine on one processor as follows. A daemon or recorded interval that begins while another one runs
//! waits for it and then runs in full, so that noise during the time added by noise counts again. Time slices
//! (coscheduled, local, job) belong to other programs: a daemon within them costs this program nothing, unless it
//! lasts longer.
//!
//! | question | module |
//! |---|---|
//! | what kinds of sources exist, with which fields? | `source` |
//! | which are refused? | `check` |
//! | how are recordings of other tools read? | `foreign` |
//! | how would it be without a cause, or with all aligned? | `variants` |
//! | when does one source take the processor? | `stream` |
//! | when is a rank's work done? | `timeline` |

mod check;
mod foreign;
mod source;
mod stream;
mod timeline;
mod variants;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::source::{
    Coscheduled, Daemon, Job, Local, Phases, Recorded, RecordedCpu, RecordedInterval, SkewDrawn, Source,
};
pub use self::timeline::{Interval, NEVER, Timeline, Timelines};

use crate::error::DescriptionError;
use crate::read;
use crate::units::Seconds;

/// When each rank's processor is taken away, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Cost of switching back to the program at each return, s: every interval ends later by this.
    #[serde(default)]
    pub switch_cost_s: Seconds,
    /// Cost of refilling the cache at each return, s: every interval ends later by this.
    #[serde(default)]
    pub cache_cost_s: Seconds,
    /// Sources that take the processor away.
    #[serde(default, rename = "source", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Disturbance {
    /// Parses and checks a `disturbance.toml`, or a recording of noise by netgauge, LogGOPSim, `osnoise` or `hwlat`.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        // No TOML begins with a brace. A recording whose intervals were in a table arrives as JSON.
        if text.trim_ascii_start().starts_with(b"{") {
            return Self::from_json(text, file);
        }
        if let Some(recording) = foreign::read(text, file) {
            return recording;
        }
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON, which is read faster and may be larger.
    ///
    /// # Errors
    /// As [`Disturbance::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }

    /// Converts the disturbance to TOML.
    ///
    /// # Errors
    /// When it contains a value that TOML cannot express.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Returns the names of all causes, in the order of the file. [`Interval::cause`] is an index into this list.
    #[must_use]
    pub fn causes(&self) -> Vec<&str> {
        self.sources.iter().flat_map(Source::causes).map(String::as_str).collect()
    }

    /// Returns the factor by which sharing of processors between parallel jobs alone slows undisturbed programs: the
    /// product of the sources' `jobs`.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.sources.iter().map(|source| u64::from(source.jobs())).product()
    }

    /// Returns the time by which every interval ends later, s.
    #[must_use]
    pub fn return_cost_s(&self) -> f64 {
        use crate::units::Quantity;
        self.switch_cost_s.get() + self.cache_cost_s.get()
    }
}
