//! Settings of a filter: its peers, what it forwards, and how its queues are served.

use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::Class;
use serde::{Deserialize, Serialize};

use super::pace::Rate;
use super::wire::{HEAD, LARGEST, LARGEST_TEXT};
use crate::error::LiveError;

/// Default window of one connection, bytes.
pub const WINDOW: u32 = 512 << 10;
/// Default maximum of simultaneous application connections. Together with [`WINDOW`] it limits memory to 128 MiB.
pub const CONNECTIONS: usize = 256;
/// Largest permitted value of [`FilterSettings::connections`].
pub(super) const MOST_CONNECTIONS: usize = 100_000;
/// Maximum number of peers connected to one filter.
pub const PEERS: usize = 64;

/// A port whose connections go to a target that a peer reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// Class of the messages on its connections.
    pub class: Class,
    /// HOST:PORT on this host. Port 0 chooses a free one.
    pub listen: String,
    /// HOST:PORT as the peer reaches it.
    pub target: String,
    pub peer: usize,
}

#[derive(Clone, Debug)]
pub struct FilterSettings {
    /// HOST:PORT where peers connect. `None` means no listener.
    pub listen: Option<String>,
    /// HOST:PORT of the peers to dial, again after each lost connection.
    pub peers: Vec<String>,
    pub forwards: Vec<Forward>,
    pub queue: QueueSettings,
    /// Credits with which this end limits senders. `None` means no limit.
    pub credits: Option<CreditSettings>,
    /// The link through which frames leave. `None` sends as fast as the peer accepts them.
    pub rate_out: Option<Rate>,
    /// The link through which frames arrive. `None` adds no delay.
    pub rate_in: Option<Rate>,
    /// Maximum bytes of one connection in flight to this filter.
    pub window: u32,
    /// Maximum number of simultaneous application connections.
    pub connections: usize,
}

impl FilterSettings {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub(super) fn check(&self, has_entrance: bool) -> Result<(), LiveError> {
        let refused = |field: &str, value: String, permitted: String| {
            Err(LiveError::Value { field: field.into(), value, permitted })
        };
        let frame = self.queue.frame_bytes as usize;
        if !(1..=LARGEST).contains(&frame) {
            return refused("frame_bytes", frame.to_string(), format!("1 to {LARGEST}"));
        }
        if (self.window as usize) < frame || self.window > 64 << 20 {
            return refused("window", self.window.to_string(), format!("frame_bytes, {frame}, to {}", 64 << 20));
        }
        if !(1..=MOST_CONNECTIONS).contains(&self.connections) {
            return refused("connections", self.connections.to_string(), format!("1 to {MOST_CONNECTIONS}"));
        }
        for (field, rate) in [("rate", self.rate_out), ("rate_in", self.rate_in)] {
            if let Some(rate) = rate.filter(|rate| !(1e-3..=1e6).contains(&rate.mb_per_s)) {
                return refused(field, format!("{} MB/s", rate.mb_per_s), "0.001 to 1000000 MB/s".into());
            }
        }
        if let Some(credits) = &self.credits {
            let (frames, threshold) = (credits.receive_frames, credits.receive_threshold);
            if frames == 0 {
                return refused("receive_frames", frames.to_string(), "at least 1".into());
            }
            if threshold > frames || (threshold == 0 && !credits.literal) {
                let permitted = format!("1 to receive_frames, {frames}; 0 only with literal, which starves");
                return refused("receive_threshold", threshold.to_string(), permitted);
            }
        }
        for forward in &self.forwards {
            let target = &forward.target;
            if !is_target(target) {
                return refused("target", format!("{target:?}"), "HOST:PORT, the port 1 to 65535".into());
            }
            if forward.peer >= self.peers.len() {
                return refused("peer", forward.peer.to_string(), format!("one of the {} named", self.peers.len()));
            }
        }
        if !has_entrance && self.peers.is_empty() {
            return refused("peers", "empty".into(), "at least one, or `listen` given".into());
        }
        Ok(())
    }

    /// Returns the bytes that a peer's socket may hold beyond those in flight: the current frame and the next.
    pub(super) fn unsent(&self) -> i32 {
        2 * (self.queue.frame_bytes as i32 + HEAD as i32)
    }
}

/// Returns whether a text is a valid HOST:PORT.
pub(super) fn is_target(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty()
        && text.len() <= LARGEST_TEXT
        && !text.chars().any(|sign| sign.is_whitespace() || sign.is_control())
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// What a sender must know about the limits of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// Receive queue capacity for each class, frames.
    pub receive_frames: u32,
    /// Whether it grants credits exactly as printed in the paper.
    pub literal: bool,
}

impl Limits {
    pub fn of(settings: &CreditSettings) -> Self {
        Self { receive_frames: settings.receive_frames, literal: settings.literal }
    }

    /// Returns the settings that a sender applies.
    pub fn obeyed(self) -> CreditSettings {
        CreditSettings { receive_frames: self.receive_frames, receive_threshold: 1, idle_ns: 0, literal: self.literal }
    }
}

/// Description that each filter sends to the other in the handshake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// Version of the frame format, which must be the same at both ends.
    pub version: u32,
    /// Initial window of each connection, bytes.
    pub window: u32,
    /// Limits for senders. `None` means no limit.
    pub limits: Option<Limits>,
    /// Type-of-service byte with which the other end's first packet arrived. `None` if unknown.
    pub tos: Option<u8>,
}

impl About {
    /// Version of the frame format, and of the permitted order of frames.
    pub const VERSION: u32 = 2;

    /// Encodes the description for the other end.
    pub fn to_json(&self) -> Result<String, LiveError> {
        serde_json::to_string(self).map_err(|error| LiveError::Setup(format!("the filter's description: {error}")))
    }

    /// Decodes and checks the other end's description.
    pub fn decode(text: &[u8]) -> Result<Self, String> {
        let about: Self = serde_json::from_slice(text).map_err(|_| "does not say what it is".to_owned())?;
        if about.version != Self::VERSION {
            return Err(format!("speaks version {} of the filter's frames, not {}", about.version, Self::VERSION));
        }
        if about.window == 0 || about.limits.is_some_and(|limits| limits.receive_frames == 0) {
            return Err("takes nothing".into());
        }
        Ok(about)
    }
}
