//! Unchecked settings of a recording.

use std::time::Duration;

use serde::Deserialize;

use super::RecordConfig;
use super::outcome::Means;
use crate::DisturbError;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordOptions {
    pub seconds: f64,
    pub cpus: Vec<usize>,
    /// Shorter gaps are dropped, us.
    pub threshold_us: f64,
    /// Means of finding causes, by name; `None`: the kernel's trace if available.
    pub how: Option<String>,
}

fn value(field: &str, value: impl ToString, permitted: &str) -> DisturbError {
    DisturbError::Value { field: field.into(), value: value.to_string(), permitted: permitted.into() }
}

impl RecordOptions {
    /// Checks the settings.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn checked(self) -> Result<RecordConfig, DisturbError> {
        let length = Duration::try_from_secs_f64(self.seconds).ok().filter(|length| !length.is_zero());
        let threshold = Duration::try_from_secs_f64(self.threshold_us * 1e-6).ok().filter(|one| !one.is_zero());
        let means = match self.how.as_deref() {
            None => None,
            Some("trace") => Some(Means::Trace),
            Some("loop") => Some(Means::Loop),
            Some(other) => return Err(value("how", format!("{other:?}"), "trace or loop")),
        };
        Ok(RecordConfig {
            length: length.ok_or_else(|| value("seconds", self.seconds, "greater than 0 s and finite"))?,
            threshold: threshold.ok_or_else(|| value("threshold_us", self.threshold_us, "at least 0.001 us"))?,
            cpus: self.cpus,
            means,
        })
    }
}
