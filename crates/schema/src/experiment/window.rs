//! Window: flow control of a parallel program, `[policy]` of experiments of kind program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::Whole;
use crate::error::{DescriptionError, Problem};
use crate::units::{PositiveSeconds, Quantity};

/// When the credit of a packet returns to its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    /// When the receiving program has handled the packet.
    #[default]
    Handled,
    /// When the packet has left the network for a buffer.
    Extracted,
}

/// How the size of the window is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRule {
    /// The size stays the same.
    #[default]
    Fixed,
    /// `window_packets` to a destination that runs, `away_packets` to one that is away.
    Follow,
}

/// What happens to a packet whose receiver is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AwayRule {
    /// The receiver's host buffers the packet.
    #[default]
    Buffer,
    /// It is discarded; the sender resends it after `resend_s`.
    Discard,
}

/// Limit on packets in flight, the same for all ranks.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowPolicy {
    /// Packets in flight to one destination; absent: no limit, and credits cost nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_packets: Option<Whole<1, 1_000_000_000>>,
    /// When the credit of a packet returns.
    pub credit: Credit,
    pub window: WindowRule,
    /// With `window = "follow"`: packets in flight to a destination that is away; absent: 1. Fewer than
    /// `window_packets` spare its buffers; more keep its senders from waiting, which is what the paper would have
    /// tried (sections 6 and 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away_packets: Option<Whole<1, 1_000_000_000>>,
    /// What happens to a packet whose receiver is away.
    pub away: AwayRule,
    /// With `away = "discard"`: time from one transmission of a packet to the next, s; absent: 1 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resend_s: Option<PositiveSeconds>,
}

/// Permitted range, s: more than an hour, or less than a microsecond, is surely a mistake.
const RESEND_S: (f64, f64) = (1e-6, 3600.0);

impl WindowPolicy {
    /// Returns the window for destinations that are away; `None` if it is the same as for others.
    #[must_use]
    pub fn packets_away(&self) -> Option<u64> {
        (self.window == WindowRule::Follow).then(|| self.away_packets.map_or(1, Whole::get))
    }

    /// Returns the time after which a packet is resent, s; `None` if packets are not discarded.
    #[must_use]
    pub fn resent_after_s(&self) -> Option<f64> {
        (self.away == AwayRule::Discard).then(|| self.resend_s.map_or(1e-3, Quantity::get))
    }

    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let refused = |field: &str, sentence: String| Err(Problem::Value(sentence).at(format!("policy.{field}")));
        match (self.window, self.window_packets, self.away_packets) {
            (WindowRule::Fixed, _, Some(packets)) => {
                return refused("away_packets", format!("is {}, but policy.window is not \"follow\"", packets.get()));
            }
            (WindowRule::Follow, None, _) => {
                return refused("window", "is \"follow\", but there is no policy.window_packets to follow".into());
            }
            _ => {}
        }
        match self.resend_s.map(Quantity::get) {
            Some(after) if self.away != AwayRule::Discard => {
                refused("resend_s", format!("is {after} s, but policy.away is not \"discard\""))
            }
            Some(after) if !(RESEND_S.0..=RESEND_S.1).contains(&after) => {
                refused("resend_s", format!("is {after} s; it must be {:e} to {} s", RESEND_S.0, RESEND_S.1))
            }
            _ => Ok(()),
        }
    }
}
