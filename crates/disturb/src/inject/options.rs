//! Unchecked settings of an injection.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crosswind_schema::Disturbance;
use serde::Deserialize;

use super::InjectConfig;
use super::outcome::How;
use super::script::Described;
use crate::DisturbError;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectOptions {
    pub command: Vec<OsString>,
    /// Ranks that the command will have; `None`: every rank that is found.
    pub ranks: Option<u32>,
    /// Seed of the random numbers.
    pub seed: u64,
    pub limit_s: f64,
    /// Method for every interval, by name; `None`: the one that suits its cause.
    pub how: Option<String>,
    pub pin: bool,
    pub busy: bool,
    pub keep_running: bool,
    pub start_file: Option<PathBuf>,
    pub stdout_to_stderr: bool,
}

fn value(field: &str, value: String, permitted: &str) -> DisturbError {
    DisturbError::Value { field: field.into(), value, permitted: permitted.into() }
}

impl InjectOptions {
    /// Checks the settings and parses the disturbance: JSON if the name of its file ends in `.json`, otherwise TOML.
    /// Returns the checked settings, the script and the disturbance's name.
    ///
    /// # Errors
    /// When the disturbance is invalid, or a value is out of its range.
    pub fn checked(self, disturbance: &[u8], file: &str) -> Result<(InjectConfig, Described, String), DisturbError> {
        let read = if file.ends_with(".json") { Disturbance::from_json } else { Disturbance::from_toml };
        let disturbance = read(disturbance, file)?;
        let script = Described::new(&disturbance, self.ranks, self.seed)?;
        let how = self.how()?;
        let limit = Duration::try_from_secs_f64(self.limit_s).ok().filter(|limit| !limit.is_zero());
        let limit =
            limit.ok_or_else(|| value("limit_s", format!("{} s", self.limit_s), "greater than 0 s and finite"))?;
        let config = InjectConfig {
            command: self.command,
            ranks: self.ranks,
            limit,
            how,
            pin: self.pin,
            busy: self.busy,
            keep_running: self.keep_running,
            start_file: self.start_file,
            stdout_to_stderr: self.stdout_to_stderr,
        };
        Ok((config, script, disturbance.name))
    }

    fn how(&self) -> Result<Option<How>, DisturbError> {
        let ways = [How::Stop, How::Freeze, How::Burn];
        let Some(name) = self.how.as_deref() else { return Ok(None) };
        let way = ways.into_iter().find(|way| way.name() == name);
        way.map(Some).ok_or_else(|| value("how", format!("{name:?}"), "stop, freeze or burn"))
    }
}
