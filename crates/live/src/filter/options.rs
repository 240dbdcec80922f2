//! Options of a filter, as received in text form.

use std::path::PathBuf;

use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::Class;
use crosswind_schema::experiment::streams::QueuePolicy;
use serde::Deserialize;

use super::{FilterSettings, Forward, Rate};

/// A port whose connections go to a target that a peer reaches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardOptions {
    class: Class,
    listen: String,
    target: String,
    peer: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterOptions {
    listen: Option<String>,
    peers: Vec<String>,
    forwards: Vec<ForwardOptions>,
    policy: QueuePolicy,
    frame_bytes: u32,
    pad: bool,
    rate_mb_per_s: Option<f64>,
    rate_in_mb_per_s: Option<f64>,
    window_bytes: u32,
    connections: usize,
    /// Log file. `None` writes to standard error.
    pub log: Option<PathBuf>,
}

impl FilterOptions {
    /// Converts the options to settings.
    #[must_use]
    pub fn settings(self) -> FilterSettings {
        let at_least_bytes = if self.pad { self.frame_bytes } else { 0 };
        let rate = |mb_per_s| Rate { mb_per_s, at_least_bytes };
        let forward =
            |ForwardOptions { class, listen, target, peer }: ForwardOptions| Forward { class, listen, target, peer };
        FilterSettings {
            listen: self.listen,
            peers: self.peers,
            forwards: self.forwards.into_iter().map(forward).collect(),
            queue: QueueSettings::from_policy(&self.policy, self.frame_bytes, self.pad),
            credits: CreditSettings::from_policy(&self.policy),
            rate_out: self.rate_mb_per_s.map(rate),
            rate_in: self.rate_in_mb_per_s.map(rate),
            window: self.window_bytes,
            connections: self.connections,
        }
    }
}
