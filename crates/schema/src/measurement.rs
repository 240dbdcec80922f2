//! Measurement: the header of a `measurement.parquet`.
//!
//! The samples themselves are the Parquet file's columns (docs/reference/files.md); this header, as JSON in the
//! file's metadata under the key `crosswind`, says how they came about and whether to trust them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Warning};
use crate::read;

/// How the samples came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// What people call it.
    pub name: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// The command line or call that made it.
    pub command: Vec<String>,
    /// Seed of the shuffled design.
    pub seed: u64,
    /// The host that was measured.
    pub host: Host,
    /// What computed.
    pub kernel: Kernel,
    /// Where threads were put.
    pub placement: Placement,
    /// How bytes moved.
    pub traffic: Traffic,
    /// The process of another language that computed and moved the bytes; absent: Crosswind's own threads did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// How the transfer rate was varied.
    pub variation: Variation,
    /// The other ends.
    pub peers: Vec<Peer>,
    /// Each direction of each peer: column `channel{i}_mb` belongs to entry i.
    pub channels: Vec<Channel>,
    /// Length of a block at one level, settling included, s.
    pub block_s: f64,
    /// Start of each block that is not used, s.
    pub settle_s: f64,
    /// Length of a sampling interval, s.
    pub interval_s: f64,
    /// Seconds from start to end.
    pub elapsed_s: f64,
    /// Why it ended.
    pub ended: Ended,
    /// What to keep in mind when trusting the figures.
    pub warnings: Vec<Warning>,
}

/// The host that was measured, and every setting of it that is known to move interference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Processor model.
    pub cpu: String,
    /// CPUs online.
    pub cpus: u32,
    /// Operating system's release.
    pub kernel: String,
    /// Settings by name: congestion control, offloads, softirq placement, socket buffers, autogroup, CPU quota,
    /// governor, pre-emption, versions. "unknown" where it could not be read.
    pub settings: BTreeMap<String, String>,
}

/// What computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// diagonals, burn, triad, command or callable.
    pub name: String,
    /// What one unit of its work is.
    pub unit: String,
    /// Side of the matrix (diagonals only).
    pub matrix: Option<u32>,
    /// Diagonals per unit of work (diagonals only).
    pub diagonals: Option<u32>,
    /// The command or the callable's name.
    pub task: Option<String>,
}

/// Where threads were put: it decides the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// same-core, other-core, free or explicit.
    pub mode: String,
    /// CPUs of the computing thread; empty: any.
    pub compute_cpus: Vec<u32>,
    /// CPUs of the threads that move bytes; empty: any.
    pub traffic_cpus: Vec<u32>,
    /// CPUs of the sampler, and of a peer that this measurement started itself; empty: any.
    pub sampler_cpus: Vec<u32>,
    /// Nice level of the computing thread.
    pub compute_nice: i32,
    /// Nice level of the threads that move bytes.
    pub traffic_nice: i32,
}

/// How a thread waits for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Blocks in the kernel.
    Event,
    /// Asks again and again.
    Poll,
}

/// Which end keeps the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    /// The end that sends.
    Sender,
    /// The end that receives.
    Receiver,
    /// The peer, whichever way the bytes go, so that pacing costs the measured host nothing.
    Peer,
}

/// How bytes moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Bytes per message.
    pub message_bytes: u64,
    /// Connections per channel.
    pub streams: u32,
    /// How the measured host waits.
    pub wait: Wait,
    /// Which end keeps the rate.
    pub paced_by: PacedBy,
    /// Granularity of the pacing, bytes.
    pub pacing_chunk_bytes: u64,
    /// Congestion control of the data connections.
    pub congestion_control: String,
    /// Socket buffers asked for, bytes; absent: the kernel's autotuning.
    pub socket_buffer_bytes: Option<u64>,
}

/// A process that computed and moved the bytes, by the probe protocol (docs/reference/probe-protocol.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// What it calls itself, such as java.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was started.
    pub command: Vec<String>,
    /// What else it says of itself, by key.
    pub facts: BTreeMap<String, String>,
    /// When it was put on its CPUs.
    pub pin: Pin,
    /// Starts of it: column `fork` counts them from 0. They are what intervals resample.
    pub forks: u32,
    /// Whether its threads have names by which task and traffic are told apart.
    pub split: bool,
    /// Whether its sockets' buffers and congestion control were those of `traffic`.
    pub sockets_set: bool,
    /// Whether it computed work of its own in place of the kernel.
    pub own_work: bool,
}

/// When a runtime is put on its CPUs: it looks at them once, when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// Before it starts.
    Process,
    /// Once it has started, thread by thread.
    Threads,
}

/// How the transfer rate was varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// The paced end is told each block's rate.
    Paced,
    /// Other senders load the peer (the papers' way).
    Contention,
}

/// The other end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// HOST:PORT as asked for.
    pub address: String,
    /// The peer's own name for itself.
    pub host: String,
    /// Whether it is this same machine.
    pub loopback: bool,
    /// Median round-trip time of the control connection, s.
    pub rtt_s: f64,
}

/// Seen from the measured host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The measured host receives.
    Receive,
    /// The measured host sends.
    Send,
}

/// One direction of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Index into `peers`.
    pub peer: u32,
    /// Seen from the measured host.
    pub direction: Direction,
    /// Rate reached without pacing, alone, MB/s.
    pub unpaced_mb_per_s: f64,
    /// Top of the ladder, MB/s.
    pub top_mb_per_s: f64,
}

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every interference rate is known as well as was asked.
    Settled,
    /// The time was up first.
    TimeLimit,
    /// Ctrl-C or a signal: partial.
    Interrupted,
    /// A peer went away: partial.
    PeerLost,
}

impl Measurement {
    /// Parses and checks a header.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |header: &Self| read::version(header.schema_version))
    }
}
