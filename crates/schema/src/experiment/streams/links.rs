//! Links: the path of frames from host to host, through one switch, full duplex.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::experiment::parameters::Whole;
use crate::source::{known, string_or_table};
use crate::units::{MegabytesPerSecond, Quantity, Seconds, SecondsPerMegabyte};

/// How senders react to full buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// They wait: a frame is sent only when the next buffer has room for it.
    #[default]
    Reliable,
    /// Frames that find no room are lost. Each flow doubles its window until a loss and then starts again with one
    /// frame.
    SlowStart,
    /// Frames that find no room are lost. After slow start, each flow halves its window at a loss and otherwise adds
    /// one frame per round trip.
    CongestionAvoidance,
}

/// The path of frames. Each host has a link to the switch and one back. A frame passes through a free port of the
/// switch while it arrives, so it takes its time on the links once, plus the latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// Rate of every link, in each direction.
    pub link_mb_per_s: MegabytesPerSecond,
    /// Time from interface to interface through the switch, without the frame's own time on the links, s.
    #[serde(default = "ten_microseconds")]
    pub latency_s: Seconds,
    /// Most message bytes in a frame.
    #[serde(default = "kibibyte")]
    pub frame_bytes: Whole<1, 16_777_216>,
    /// Whether each frame takes the time of a full frame on a link; otherwise that of its own bytes.
    #[serde(default = "yes")]
    pub pad: bool,
    /// Time of a host's processor for each frame, sending and receiving, s.
    #[serde(default)]
    pub host_s_per_frame: Seconds,
    /// Frames that an output port of the switch holds, and those that each queue of an interface holds.
    #[serde(default = "sixty_four")]
    pub buffer_frames: Whole<1, 1_000_000_000>,
    /// How senders react to full buffers.
    #[serde(default)]
    pub transport: Transport,
    /// Most unacknowledged bytes of a connection, in whole frames; absent: no limit, or 65,536 with `processor`. With
    /// `transport = "reliable"` it limits the queue of an interface too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<Whole<1, 1_000_000_000>>,
    /// Processor time of messages, taken from the job on the host; absent: none, and a job computes undisturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Processor>,
}

/// Processor time of a host for messages: for each frame, and for each MB of it, as in a platform. It handles arrived
/// messages first, including acknowledgements, then outgoing ones; a job computes in the remaining time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processor {
    /// A `platform.toml` from which `ir_send_s_per_mb` and `ir_receive_s_per_mb` are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The node of that platform below the root whose losses are used: its own when it receives, and its parent's
    /// when the parent sends to it; absent: the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Time for each sent frame, s.
    pub send_s: Seconds,
    /// Time for each sent MB, s.
    pub ir_send_s_per_mb: SecondsPerMegabyte,
    /// Time for each received frame, s.
    pub receive_s: Seconds,
    /// Time for each received MB, s.
    pub ir_receive_s_per_mb: SecondsPerMegabyte,
    /// Time for each returned acknowledgement, s.
    pub acknowledgement_s: Seconds,
    /// Which of several messages it handles first.
    pub order: ProcessorOrder,
}

/// Which message a host's processor handles first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorOrder {
    /// Arrived messages, then outgoing ones, each in order of arrival: as a kernel does.
    #[default]
    ArrivedFirst,
    /// By the queues of `[policy]`, in T2 by one queue. Outgoing and arrived messages wait in the same queues, as
    /// with a filter that is one process of the host.
    Queues,
}

/// The default window of a socket with `processor`, bytes.
const SOCKET_BYTES: u64 = 65_536;

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

/// Links whose values are predefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownLinks {
    /// The ATM network of communication-interactions: 155 Mb/s per link, frames of 1 KiB that all take the same time.
    #[default]
    Atm155,
    /// Gigabit Ethernet: 125 MB/s per link, frames of up to 1500 bytes.
    Gigabit,
}

const NAMES: [(&str, KnownLinks); 2] = [("atm155", KnownLinks::Atm155), ("gigabit", KnownLinks::Gigabit)];

impl KnownLinks {
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
            window_bytes: None,
            processor: None,
        }
    }
}

/// A name, or an inline table of links.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LinksSource {
    Known(KnownLinks),
    /// An inline `[network]` table of links.
    Inline(Links),
}

impl Default for LinksSource {
    fn default() -> Self {
        Self::Known(KnownLinks::default())
    }
}

impl LinksSource {
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

/// Permitted rates, from a modem's to far beyond every link: a frame's time fits in nanoseconds.
const RATE_MB_PER_S: (f64, f64) = (1e-3, 1e6);
/// Longest latency or processor time, s; more is surely a mistake.
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
        let Some(processor) = &self.processor else { return Ok(()) };
        if self.host_s_per_frame.get() > 0.0 {
            let why =
                "is there beside host_s_per_frame, which is send_s and receive_s of it; leave one of the two away";
            return refused("processor", why.into());
        }
        processor.check()
    }

    /// Returns the most frames in flight on a connection, at least 1; `None`: no limit.
    #[must_use]
    pub fn window_frames(&self) -> Option<u32> {
        let given = self.window_bytes.map(Whole::get);
        let bytes = given.or(self.processor.as_ref().map(|_| SOCKET_BYTES))?;
        Some((bytes / self.frame_bytes.get()).clamp(1, u64::from(u32::MAX)) as u32)
    }

    /// Returns the time on a link of a frame with `bytes` message bytes, ns, at least 1.
    #[must_use]
    pub fn frame_ns(&self, bytes: u32) -> u64 {
        let bytes = if self.pad { self.frame_bytes.get() } else { u64::from(bytes) };
        ((bytes as f64 * 1e3 / self.link_mb_per_s.get()).round() as u64).max(1)
    }
}

impl Processor {
    fn check(&self) -> Result<(), DescriptionError> {
        let refused =
            |field: &str, sentence: String| Err(Problem::Value(sentence).at(format!("network.processor.{field}")));
        let seconds = [
            ("send_s", self.send_s.get()),
            ("ir_send_s_per_mb", self.ir_send_s_per_mb.get()),
            ("receive_s", self.receive_s.get()),
            ("ir_receive_s_per_mb", self.ir_receive_s_per_mb.get()),
            ("acknowledgement_s", self.acknowledgement_s.get()),
        ];
        for (field, value) in seconds {
            if value > SLOWEST_S {
                return refused(field, format!("is {value}; it must be at most {SLOWEST_S}"));
            }
        }
        let given = self.ir_send_s_per_mb.get() > 0.0 || self.ir_receive_s_per_mb.get() > 0.0;
        match (&self.platform, &self.node) {
            (Some(path), _) if path.is_empty() => {
                refused("platform", "is empty; it must be the path of a platform.toml".into())
            }
            (Some(_), _) if given => {
                refused("platform", "is there beside ir_send_s_per_mb or ir_receive_s_per_mb; leave one away".into())
            }
            (None, Some(node)) => refused("node", format!("is {node:?}, but there is no network.processor.platform")),
            _ => Ok(()),
        }
    }
}
