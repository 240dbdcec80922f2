//! Network: the cost of a message to a parallel program, in terms of LogGP, packet by packet.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::parameters::Whole;
use super::window::{AwayRule, Credit, WindowPolicy, WindowRule};
use crate::disturbance::{Disturbance, Source};
use crate::error::{DescriptionError, Problem};
use crate::source::{known, string_or_table};
use crate::units::{PositiveSeconds, Quantity, Seconds};

/// Costs of messages. A packet takes `overhead_s` of the sender's processor, then `gap_s` of the interface and
/// `gap_per_byte_s` for each byte after its first, then `latency_s`. At the receiver, the interface and the processor
/// take the same times again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// L: time from the sender's interface to the receiver's, s.
    pub latency_s: PositiveSeconds,
    /// o: processor time for each packet, at both ends, s.
    pub overhead_s: Seconds,
    /// g: time between two packets at an interface, s.
    pub gap_s: Seconds,
    /// G: time between two bytes of a packet, s.
    #[serde(default)]
    pub gap_per_byte_s: Seconds,
    /// Most bytes in a packet.
    pub packet_bytes: Whole<1, 1_000_000_000>,
    /// Processor time for each acknowledgement that returns credits, at both ends, s; absent: `overhead_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement_s: Option<Seconds>,
    /// Time of a barrier from the arrival of the last rank until all continue, s; absent: `latency_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_s: Option<PositiveSeconds>,
    /// Switches with finite buffers; absent: the network buffers everything that is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fat_tree: Option<FatTree>,
}

/// A fat tree of switches with finite buffers for requests, and another for replies and acknowledgements. Each switch
/// has four children and two parents, as in the CM-5. The latency is that of the longest path, divided equally among
/// its links; a packet takes one such part on each link, whatever its size. Simulated only, up to 1024 ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Packets that the buffer at each input of a switch holds.
    #[serde(default = "switch_packets")]
    pub buffer_packets: Whole<1, 1_000_000>,
    /// Arrived packets that a node's interface holds, for each network.
    #[serde(default = "received_packets")]
    pub receive_packets: Whole<1, 1_000_000>,
    /// Outgoing packets that a node's interface holds, for each network.
    #[serde(default = "sent_packets")]
    pub send_packets: Whole<1, 1_000_000>,
    /// Requests that a processor takes from its interface between two packets of its own while it could send. 0 takes
    /// them only when it is blocked; a large number takes all that have arrived.
    #[serde(default = "polls")]
    pub polls_per_send: Whole<0, 1_000_000>,
}

/// Most ranks of a simulated fat tree: a table of numbers is stored for each pair. The largest CM-5 had as many
/// nodes.
const MOST_RANKS: u64 = 1024;

impl FatTree {
    /// Refuses settings that are decided outside of the ranks' processors: they are not simulated with it.
    pub(super) fn check(
        ranks: Option<u64>,
        policy: &WindowPolicy,
        disturbance: Option<&Disturbance>,
    ) -> Result<(), DescriptionError> {
        let refuse = |path: &str, what: String| Err(Problem::Value(what).at(path.into()));
        let with = "cannot be simulated with network.fat_tree; leave one of the two away";
        if let Some(ranks) = ranks.filter(|&ranks| ranks > MOST_RANKS) {
            return refuse("workload.ranks", format!("is {ranks}; with network.fat_tree it must be 1 to {MOST_RANKS}"));
        }
        if policy.away == AwayRule::Discard {
            return refuse("policy.away", format!("is \"discard\", which {with}"));
        }
        if policy.window == WindowRule::Follow {
            return refuse("policy.window", format!("is \"follow\", which {with}"));
        }
        if policy.credit == Credit::Extracted {
            return refuse("policy.credit", format!("is \"extracted\", which {with}"));
        }
        if disturbance.is_some_and(|disturbance| disturbance.sources.iter().any(Source::polls)) {
            return refuse("disturbance", format!("has a source that polls, which {with}"));
        }
        Ok(())
    }
}

const fn switch_packets() -> Whole<1, 1_000_000> {
    Whole::fixed(2)
}

const fn received_packets() -> Whole<1, 1_000_000> {
    Whole::fixed(16)
}

const fn sent_packets() -> Whole<1, 1_000_000> {
    Whole::fixed(2)
}

const fn polls() -> Whole<0, 1_000_000> {
    Whole::fixed(1)
}

/// A network whose costs are predefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownNetwork {
    /// The Thinking Machines CM-5 of scheduling-and-communication, which gives no figures for it: L 6 us, o 2.2 us, g
    /// 4 us, 16 bytes of data in a packet (Culler and others, "LogP", 1993), and a control network of 5 us. Bytes
    /// cost nothing beside their packet: 4 us per 16 bytes.
    #[default]
    Cm5,
    /// A cluster with 200 Gb/s InfiniBand. Adapters of the ConnectX-6 generation reach 0.6 us, 215 million packets/s
    /// and 25 GB/s on paper (docs.nvidia.com, ConnectX-6 manual). With one or two switches L is 1 us. o is 0.27 us,
    /// as Netgauge prints it for small MPI messages (htor.inf.ethz.ch, LogGPS pattern). g is 0.1 us, which one
    /// process reaches; G is 0.04 ns. Packets have 4096 bytes. A barrier in software among a few hundred ranks takes
    /// 10 us.
    Cluster,
}

const NAMES: [(&str, KnownNetwork); 2] = [("cm5", KnownNetwork::Cm5), ("cluster", KnownNetwork::Cluster)];

impl KnownNetwork {
    #[must_use]
    pub fn network(self) -> Network {
        let (latency, overhead, gap, gap_per_byte, packet_bytes, control) = match self {
            Self::Cm5 => (6e-6, 2.2e-6, 4e-6, 0.0, Whole::fixed(16), 5e-6),
            Self::Cluster => (1e-6, 0.27e-6, 0.1e-6, 0.04e-9, Whole::fixed(4096), 10e-6),
        };
        Network {
            latency_s: PositiveSeconds::fixed(latency),
            overhead_s: Seconds::fixed(overhead),
            gap_s: Seconds::fixed(gap),
            gap_per_byte_s: Seconds::fixed(gap_per_byte),
            packet_bytes,
            acknowledgement_s: None,
            control_s: Some(PositiveSeconds::fixed(control)),
            fat_tree: None,
        }
    }
}

/// A name, or an inline table of costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NetworkSource {
    Known(KnownNetwork),
    /// An inline `[network]` table of costs.
    Inline(Network),
}

impl Default for NetworkSource {
    fn default() -> Self {
        Self::Known(KnownNetwork::default())
    }
}

impl NetworkSource {
    #[must_use]
    pub fn network(&self) -> Network {
        match self {
            Self::Known(known) => known.network(),
            Self::Inline(network) => network.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for NetworkSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the name of a network (cm5, cluster) or a table of its costs";
        string_or_table(deserializer, expected, |name| known(name, &NAMES).map(Self::Known), Self::Inline)
    }
}

/// A day, s: far beyond every network, and far below overflow.
const SLOWEST_S: f64 = 86_400.0;
/// The resolution of time, s.
const FASTEST_S: f64 = 1e-9;

impl Network {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let within = |field: &str, value: f64, low: f64| {
            if (low..=SLOWEST_S).contains(&value) {
                return Ok(());
            }
            let sentence = format!("is {value} s; it must be {low} to {SLOWEST_S} s");
            Err(Problem::Value(sentence).at(format!("network.{field}")))
        };
        within("latency_s", self.latency_s.get(), FASTEST_S)?;
        within("overhead_s", self.overhead_s.get(), 0.0)?;
        within("gap_s", self.gap_s.get(), 0.0)?;
        within("gap_per_byte_s", self.gap_per_byte_s.get(), 0.0)?;
        within("acknowledgement_s", self.acknowledgement_s.unwrap_or_default().get(), 0.0)?;
        self.control_s.map_or(Ok(()), |control| within("control_s", control.get(), FASTEST_S))
    }
}
