//! What a live run of a parallel program is about, as every rank must know it: what the conductor says when it lets one in.

use crosswind_policy::window::WindowSettings;
use crosswind_schema::RankCompute;
use crosswind_schema::disturbance::{Disturbance, Timelines};
use crosswind_schema::experiment::{AwayRule, WindowPolicy};
use serde::{Deserialize, Serialize};

use crate::error::LiveError;

/// Most ranks on one machine: each has a connection with every other one.
pub const MOST_RANKS: u32 = 64;

/// What a run is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RanksSettings {
    /// How many, 1 to [`MOST_RANKS`].
    pub ranks: u32,
    #[serde(default)]
    pub compute: RankCompute,
    /// Bytes of a packet: what the window counts.
    #[serde(default = "packet")]
    pub packet_bytes: u32,
    /// The window: packets that may be under way.
    #[serde(default)]
    pub policy: WindowPolicy,
    /// What takes processors away. Emulated ranks keep to it themselves; for burning ones it is only informative.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    /// Seed of the disturbance.
    #[serde(default)]
    pub seed: u64,
    /// Whether the result is gathered and checked.
    #[serde(default = "yes")]
    pub check: bool,
    /// How long ranks are waited for before time 0, s.
    #[serde(default = "start")]
    pub start_s: f64,
    /// How often all are asked whether anything moves, s: a deadlock is found after two to three times as long.
    #[serde(default = "quiet")]
    pub quiet_s: f64,
    /// A rank that does not answer for so long is lost, s; no pause that a disturbance makes may be as long.
    #[serde(default = "silence")]
    pub silence_s: f64,
    /// The run is ended after so long, s; none: never.
    #[serde(default)]
    pub limit_s: Option<f64>,
    /// What the ranks make their program of: a text for the code that started them.
    #[serde(default)]
    pub about: String,
}

fn yes() -> bool {
    true
}
fn packet() -> u32 {
    16
}
fn start() -> f64 {
    30.0
}
fn quiet() -> f64 {
    1.0
}
fn silence() -> f64 {
    30.0
}

impl RanksSettings {
    /// Checks what types alone can't tell.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn check(&self) -> Result<(), LiveError> {
        let value = |field: &str, value: String, permitted: &str| {
            Err(LiveError::Value { field: field.into(), value, permitted: permitted.into() })
        };
        if !(1..=MOST_RANKS).contains(&self.ranks) {
            return value("ranks", self.ranks.to_string(), "between 1 and 64 where they are processes of this machine");
        }
        if !(1..=1 << 20).contains(&self.packet_bytes) {
            return value("packet_bytes", self.packet_bytes.to_string(), "between 1 and 1048576");
        }
        let limit = ("limit_s", self.limit_s.unwrap_or(1.0));
        for (field, time) in
            [("start_s", self.start_s), ("quiet_s", self.quiet_s), ("silence_s", self.silence_s), limit]
        {
            if !(time.is_finite() && time > 0.0) {
                return value(field, time.to_string(), "finite and greater than 0");
            }
        }
        if self.policy.away == AwayRule::Discard {
            let permitted = "\"buffer\" where ranks are processes: the kernel keeps what comes for one that is away";
            return value("policy.away", "\"discard\"".into(), permitted);
        }
        self.timelines()?;
        if self.silence_s < 2.0 * self.quiet_s {
            return value("silence_s", self.silence_s.to_string(), "at least twice quiet_s");
        }
        Ok(())
    }

    /// When each rank's processor is away; none: never.
    ///
    /// # Errors
    /// When the disturbance names a rank that is not there.
    pub fn timelines(&self) -> Result<Option<Timelines>, LiveError> {
        let Some(disturbance) = &self.disturbance else { return Ok(None) };
        let timelines = Timelines::new(disturbance, self.ranks, self.seed);
        timelines.map(Some).map_err(|error| LiveError::Setup(error.to_string()))
    }

    /// What the window code is told.
    #[must_use]
    pub fn window(&self) -> WindowSettings {
        WindowSettings::from_policy(&self.policy)
    }

    /// How many packets so many bytes are.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.packet_bytes.into()).max(1)
    }
}

/// What the conductor says to a rank that it lets in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admission {
    pub run: RanksSettings,
    /// HOST:PORT of every rank.
    pub peers: Vec<String>,
}
