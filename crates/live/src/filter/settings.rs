//! Settings of a filter: its peers, what it forwards, and how its queues are served.

use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::Class;
use serde::{Deserialize, Serialize};

use super::pace::Rate;
use super::wire::{HEAD, LARGEST, LARGEST_TEXT};
use crate::error::LiveError;

/// Bytes of one connection that may be under way, where nothing else is said.
pub const WINDOW: u32 = 512 << 10;
/// Most connections of applications at a time, where nothing else is said. With [`WINDOW`], what bounds the memory: 128 MiB.
pub const CONNECTIONS: usize = 256;
/// Most connections that a filter may be told to have at a time.
pub(super) const MOST_CONNECTIONS: usize = 100_000;
/// Most peers that may connect to one filter.
pub const PEERS: usize = 64;

/// A port whose connections go to a target that a peer reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// Whose messages its connections carry.
    pub class: Class,
    /// HOST:PORT here; port 0 takes a free one.
    pub listen: String,
    /// HOST:PORT as the peer reaches it.
    pub target: String,
    /// Place in [`FilterSettings::peers`].
    pub peer: usize,
}

/// What a filter is told.
#[derive(Clone, Debug)]
pub struct FilterSettings {
    /// HOST:PORT where peers connect; none: no listener.
    pub listen: Option<String>,
    /// HOST:PORT of the peers that are dialled, again and again.
    pub peers: Vec<String>,
    pub forwards: Vec<Forward>,
    pub queue: QueueSettings,
    /// Whether, and how, this end limits local senders.
    pub credits: Option<CreditSettings>,
    /// The link that frames leave through; none: as fast as the peer takes them.
    pub rate_out: Option<Rate>,
    /// The link that frames come through.
    pub rate_in: Option<Rate>,
    /// Bytes of one connection that may be under way to here.
    pub window: u32,
    /// Most connections of applications at a time.
    pub connections: usize,
}

impl FilterSettings {
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

    /// Bytes that a peer's socket may hold beyond those on their way: the frame under way, and the next.
    pub(super) fn unsent(&self) -> i32 {
        2 * (self.queue.frame_bytes as i32 + HEAD as i32)
    }
}

/// Whether something is HOST:PORT.
pub(super) fn is_target(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty()
        && text.len() <= LARGEST_TEXT
        && !text.chars().any(|sign| sign.is_whitespace() || sign.is_control())
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// What a sender must know of a receiver that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// Frames of each class that it holds.
    pub receive_frames: u32,
    /// Whether it grants as the paper prints it.
    pub literal: bool,
}

impl Limits {
    pub fn of(settings: &CreditSettings) -> Self {
        Self { receive_frames: settings.receive_frames, literal: settings.literal }
    }

    /// As the sender obeys them.
    pub fn obeyed(self) -> CreditSettings {
        CreditSettings { receive_frames: self.receive_frames, receive_threshold: 1, idle_ns: 0, literal: self.literal }
    }
}

/// What one filter tells another when they meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// Version of the frames; both ends must speak the same.
    pub version: u32,
    /// Bytes of each connection that it takes ahead.
    pub window: u32,
    /// How it limits senders; none: it does not.
    pub limits: Option<Limits>,
    /// The mark with which the other end's first packet arrived.
    pub tos: Option<u8>,
}

impl About {
    /// Version of the frames, and of what may follow what.
    pub const VERSION: u32 = 2;

    /// What the other end says, where it may be said.
    pub fn heard(text: &[u8]) -> Result<Self, String> {
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
