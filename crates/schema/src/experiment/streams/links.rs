//! Links: what frames go through from host to host, one switch, full duplex.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::experiment::parameters::Whole;
use crate::source::{known, string_or_table};
use crate::units::{MegabytesPerSecond, Quantity, Seconds};

/// How senders react to full buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// They wait: a frame leaves only when there is room for it.
    #[default]
    Reliable,
    /// Frames that find no room are lost; each flow doubles what it sends at a time until then, and begins with one frame again.
    SlowStart,
    /// Frames that find no room are lost; after slow start each flow halves what it has under way at a loss, and otherwise has
    /// one frame more under way with each round trip.
    CongestionAvoidance,
}

/// What frames go through. Each host has a link to the switch and one back. A frame goes through a free port of the switch as
/// it comes in, so that it takes its time on the links once, and the latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// Rate of every link, each way.
    pub link_mb_per_s: MegabytesPerSecond,
    /// From interface to interface through the switch, without the frame's own time on the links, s.
    #[serde(default = "ten_microseconds")]
    pub latency_s: Seconds,
    /// Most bytes of a message in a frame.
    #[serde(default = "kibibyte")]
    pub frame_bytes: Whole<1, 16_777_216>,
    /// Whether each frame takes a whole frame's time on a link; otherwise that of its own bytes.
    #[serde(default = "yes")]
    pub pad: bool,
    /// What a host's processor takes for each frame, sending and receiving, s.
    #[serde(default)]
    pub host_s_per_frame: Seconds,
    /// Frames that an output port of the switch holds, and each queue of an interface.
    #[serde(default = "sixty_four")]
    pub buffer_frames: Whole<1, 1_000_000_000>,
    /// What senders do when a buffer is full.
    #[serde(default)]
    pub transport: Transport,
}

const fn ten_microseconds() -> Seconds {
    Seconds::fixed(10e-6)
}

const fn kibibyte() -> Whole<1, 16_777_216> {
    Whole::fixed(1024)
}

const fn sixty_four() -> Whole<1, 1_000_000_000> {
    Whole::fixed(64)
}

const fn yes() -> bool {
    true
}

/// Links that are known by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownLinks {
    /// The ATM network of communication-interactions: 155 Mb/s a link, frames of 1 KiB that all take the same time.
    #[default]
    Atm155,
    /// Gigabit Ethernet: 125 MB/s a link, frames of up to 1500 bytes.
    Gigabit,
}

const NAMES: [(&str, KnownLinks); 2] = [("atm155", KnownLinks::Atm155), ("gigabit", KnownLinks::Gigabit)];

impl KnownLinks {
    /// What they are.
    #[must_use]
    pub fn links(self) -> Links {
        let (link_mb_per_s, frame_bytes, pad) = match self {
            Self::Atm155 => (19.375, kibibyte(), true),
            Self::Gigabit => (125.0, Whole::fixed(1500), false),
        };
        Links {
            link_mb_per_s: MegabytesPerSecond::fixed(link_mb_per_s),
            latency_s: ten_microseconds(),
            frame_bytes,
            pad,
            host_s_per_frame: Seconds::default(),
            buffer_frames: sixty_four(),
            transport: Transport::default(),
        }
    }
}

/// A name, or the links themselves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LinksSource {
    /// Links that are known by name.
    Known(KnownLinks),
    /// What they are.
    Inline(Links),
}

impl Default for LinksSource {
    fn default() -> Self {
        Self::Known(KnownLinks::default())
    }
}

impl LinksSource {
    /// What they are.
    #[must_use]
    pub fn links(&self) -> Links {
        match self {
            Self::Known(known) => known.links(),
            Self::Inline(links) => links.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for LinksSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the name of a network (atm155, gigabit) or a table of its links";
        string_or_table(deserializer, expected, |name| known(name, &NAMES).map(Self::Known), Self::Inline)
    }
}

/// Rates between a modem's and far beyond every link: a frame's time fits in nanoseconds.
const RATE_MB_PER_S: (f64, f64) = (1e-3, 1e6);
/// A minute on the way, or in a processor, is a slip.
const SLOWEST_S: f64 = 60.0;

impl Links {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let refused = |field: &str, sentence: String| Err(Problem::Value(sentence).at(format!("network.{field}")));
        let rate = self.link_mb_per_s.get();
        if !(RATE_MB_PER_S.0..=RATE_MB_PER_S.1).contains(&rate) {
            let (low, high) = RATE_MB_PER_S;
            return refused("link_mb_per_s", format!("is {rate} MB/s; it must be {low} to {high} MB/s"));
        }
        for (field, value) in [("latency_s", self.latency_s.get()), ("host_s_per_frame", self.host_s_per_frame.get())] {
            if value > SLOWEST_S {
                return refused(field, format!("is {value} s; it must be at most {SLOWEST_S} s"));
            }
        }
        Ok(())
    }

    /// How long a frame with so many bytes of a message takes on a link, ns, at least 1.
    #[must_use]
    pub fn frame_ns(&self, bytes: u32) -> u64 {
        let bytes = if self.pad { self.frame_bytes.get() } else { u64::from(bytes) };
        ((bytes as f64 * 1e3 / self.link_mb_per_s.get()).round() as u64).max(1)
    }
}
