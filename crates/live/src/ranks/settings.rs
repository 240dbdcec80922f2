//! Settings of a live run of a parallel program. The conductor sends them to every rank that it accepts.

use crosswind_policy::window::WindowSettings;
use crosswind_schema::RankCompute;
use crosswind_schema::disturbance::{Disturbance, Timelines};
use crosswind_schema::experiment::{AwayRule, WindowPolicy};
use serde::{Deserialize, Serialize};

use crate::error::LiveError;

/// Maximum number of ranks on one machine, since each is connected to every other one.
pub const MOST_RANKS: u32 = 64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RanksSettings {
    /// Number of ranks, 1 to [`MOST_RANKS`].
    pub ranks: u32,
    #[serde(default)]
    pub compute: RankCompute,
    /// Packet size in bytes; the window counts packets.
    #[serde(default = "packet")]
    pub packet_bytes: u32,
    /// The window, which limits the packets in flight.
    #[serde(default)]
    pub policy: WindowPolicy,
    /// What takes processors away. Emulated ranks apply it themselves, burning ranks do not. Windows that follow
    /// receivers use it in both cases.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    #[serde(default)]
    pub seed: u64,
    /// How long a waiting rank polls for messages before it blocks, s. Each message that arrives starts it anew.
    #[serde(default)]
    pub spin_s: f64,
    /// Time limit for all ranks to connect before time 0, s.
    #[serde(default = "start")]
    pub start_s: f64,
    /// Interval of the checks for a deadlock, s. A deadlock is detected after two to three intervals.
    #[serde(default = "quiet")]
    pub quiet_s: f64,
    /// A rank that does not answer within this time is lost, s. It must exceed any pause that a disturbance causes.
    #[serde(default = "silence")]
    pub silence_s: f64,
    /// Time limit of the run, s. `None` means no limit.
    #[serde(default)]
    pub limit_s: Option<f64>,
    /// Description of the program, for the code that starts the ranks.
    #[serde(default)]
    pub about: String,
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
    /// Checks what the types cannot express.
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
        if !(self.spin_s.is_finite() && self.spin_s >= 0.0) {
            return value("spin_s", self.spin_s.to_string(), "finite and at least 0");
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

    /// Returns when each rank's processor is away. `None` if there is no disturbance.
    ///
    /// # Errors
    /// When the disturbance is invalid for these ranks, for example names a rank that does not exist.
    pub fn timelines(&self) -> Result<Option<Timelines>, LiveError> {
        let Some(disturbance) = &self.disturbance else { return Ok(None) };
        let timelines = Timelines::new(disturbance, self.ranks, self.seed);
        timelines.map(Some).map_err(|error| LiveError::Setup(error.to_string()))
    }

    /// Returns the settings of the window.
    #[must_use]
    pub fn window(&self) -> WindowSettings {
        WindowSettings::from_policy(&self.policy)
    }

    /// Returns the number of packets of a message with `bytes` bytes, at least 1.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.packet_bytes.into()).max(1)
    }
}

/// Payload of the welcome that the conductor sends to a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admission {
    pub run: RanksSettings,
    pub peers: Vec<String>,
}
