//! Links: what frames go through from host to host, one switch, full duplex.

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
    /// Most bytes of a connection that are under way and not acknowledged, in whole frames; absent: no limit, or 65,536 with
    /// `processor`. With `transport = "reliable"` it bounds the queue of an interface, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<Whole<1, 1_000_000_000>>,
    /// What messages take of a host's processor, and of the job on it; absent: nothing, and a job computes undisturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Processor>,
}

/// What a host's processor takes for messages: for each frame, and for each MB of it, in a platform's terms. It deals with what has
/// arrived first, acknowledgements among it, then with what is to be sent; a job computes with what is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processor {
    /// A `platform.toml` from which `ir_send_s_per_mb` and `ir_receive_s_per_mb` are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The node of that platform below the root: what it loses as it receives, and its parent as it sends to it; absent: the only
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// For each frame that is sent, s.
    pub send_s: Seconds,
    /// For each MB that is sent, s.
    pub ir_send_s_per_mb: SecondsPerMegabyte,
    /// For each frame that is received, s.
    pub receive_s: Seconds,
    /// For each MB that is received, s.
    pub ir_receive_s_per_mb: SecondsPerMegabyte,
    /// For each acknowledgement that comes back, s.
    pub acknowledgement_s: Seconds,
    /// Which of several messages it deals with first.
    pub order: ProcessorOrder,
}

/// Which message a host's processor deals with first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorOrder {
    /// What has arrived, then what is to be sent, each in the order in which it came: a kernel's.
    #[default]
    ArrivedFirst,
    /// As the queues of `[policy]` say, those of T2 with one: what is sent and what has arrived wait in the same queues, as before
    /// a filter that is one process of the host.
    Queues,
}

/// The window of a socket, where a processor needs one and none is given.
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
            window_bytes: None,
            processor: None,
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
        let Some(processor) = &self.processor else { return Ok(()) };
        if self.host_s_per_frame.get() > 0.0 {
            let why =
                "is there beside host_s_per_frame, which is send_s and receive_s of it; leave one of the two away";
            return refused("processor", why.into());
        }
        processor.check()
    }

    /// Most frames of a connection under way, where there is a limit; at least 1.
    #[must_use]
    pub fn window_frames(&self) -> Option<u32> {
        let given = self.window_bytes.map(Whole::get);
        let bytes = given.or(self.processor.as_ref().map(|_| SOCKET_BYTES))?;
        Some((bytes / self.frame_bytes.get()).clamp(1, u64::from(u32::MAX)) as u32)
    }

    /// How long a frame with so many bytes of a message takes on a link, ns, at least 1.
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
