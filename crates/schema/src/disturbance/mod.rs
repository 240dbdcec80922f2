//! Disturbance: when each rank's processor is taken away, by what (`disturbance.toml`).
//!
//! One file serves simulation, injection, recording and blame. The file describes sources; [`Timelines`] turns them into
//! intervals per rank, lazily, the same for the same seed.
//!
//! How sources meet on one processor: a daemon or recorded interval that begins while another one runs waits for it and
//! then runs whole, so that noise within the time that noise added counts again. Time slices (coscheduled, local, job)
//! are time that belongs to others: what a daemon does in them costs this program nothing, unless it lasts beyond.
//!
//! | question | module |
//! |---|---|
//! | what sources are there, with which fields? | `source` |
//! | which are refused? | `check` |
//! | what if a cause were not there, or all were aligned? | `altered` |
//! | when does one source take the processor? | `stream` |
//! | when is a rank's work done? | `timeline` |

mod altered;
mod check;
mod random;
mod source;
mod stream;
mod timeline;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::random::Random;
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
    /// What people call it.
    pub name: String,
    /// Switching back to the program at each of its returns, s: the end of every interval is later by this.
    #[serde(default)]
    pub switch_cost_s: Seconds,
    /// Filling the cache again at each return, s: the end of every interval is later by this.
    #[serde(default)]
    pub cache_cost_s: Seconds,
    /// What takes the processor away.
    #[serde(default, rename = "source", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Disturbance {
    /// Parses and checks a `disturbance.toml`.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        // No TOML begins with a brace. A recording whose intervals stood in a table arrives as JSON.
        if text.trim_ascii_start().starts_with(b"{") {
            return Self::from_json(text, file);
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

    /// The disturbance as TOML.
    ///
    /// # Errors
    /// When it holds what TOML cannot say.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// The names of all causes, in the order of the file. Their places are what [`Interval::cause`] counts.
    #[must_use]
    pub fn causes(&self) -> Vec<&str> {
        self.sources.iter().flat_map(Source::causes).map(String::as_str).collect()
    }

    /// How many times longer undisturbed programs take by the sharing of processors between parallel jobs alone:
    /// the product of the sources' `jobs`.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.sources.iter().map(|source| u64::from(source.jobs())).product()
    }

    /// What the end of every interval is later by, s.
    #[must_use]
    pub fn return_cost_s(&self) -> f64 {
        use crate::units::Quantity;
        self.switch_cost_s.get() + self.cache_cost_s.get()
    }
}
