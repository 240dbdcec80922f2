//! A recording as it is asked for.

use std::time::Duration;

use serde::Deserialize;

use super::RecordConfig;
use super::outcome::Means;
use crate::DisturbError;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// For how long, s.
    pub seconds: f64,
    pub cpus: Vec<usize>,
    /// Shorter gaps are not kept, us.
    pub threshold_us: f64,
    /// How causes are to become known, by name; none: by the trace where it can be had.
    pub how: Option<String>,
}

fn value(field: &str, value: impl ToString, permitted: &str) -> DisturbError {
    DisturbError::Value { field: field.into(), value: value.to_string(), permitted: permitted.into() }
}

impl Asked {
    /// The recording that it asks for.
    ///
    /// # Errors
    /// A value out of its range.
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
