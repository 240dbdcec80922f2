//! Measurement: the header of a `measurement.parquet`.
//!
//! The samples themselves are the Parquet file's columns (docs/reference/files.md). This header, as JSON in the
//! file's metadata under the key `crosswind`, describes how they were taken and whether to trust them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem, Warning};
use crate::read;

/// How the samples were taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Version of this file's schema.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Start time as in RFC 3339, UTC.
    pub started: String,
    /// The command line or call that made it.
    pub command: Vec<String>,
    /// Seed of the shuffled design.
    pub seed: u64,
    /// The host that was measured.
    pub host: Host,
    pub kernel: Kernel,
    pub placement: Placement,
    pub traffic: Traffic,
    /// The external process, in another language, that computed and moved the bytes; absent: Crosswind's own threads
    /// did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// How the transfer rate was varied.
    pub variation: Variation,
    /// The hosts at the other end of the traffic.
    pub peers: Vec<Peer>,
    /// Each direction of each peer: column `channel{i}_mb` belongs to entry i.
    pub channels: Vec<Channel>,
    /// Length of a block at one level, settling included, s.
    pub block_s: f64,
    /// Time at the start of each block that is not used, s.
    pub settle_s: f64,
    /// Length of a sampling interval, s.
    pub interval_s: f64,
    /// Seconds from start to end.
    pub elapsed_s: f64,
    pub ended: Ended,
    pub warnings: Vec<Warning>,
}

/// The measured host, and every setting of it that is known to affect interference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Release of the operating system's kernel.
    pub kernel: String,
    /// Settings by name: congestion control, offloads, softirq placement, socket buffers, autogroup, CPU quota,
    /// governor, pre-emption, versions. "unknown" where it could not be read.
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// diagonals, burn, triad, command or callable.
    pub name: String,
    /// Description of one unit of its work.
    pub unit: String,
    /// Side of the matrix (diagonals only).
    pub matrix: Option<u32>,
    /// Diagonals per unit of work (diagonals only).
    pub diagonals: Option<u32>,
    /// The command or the callable's name.
    pub task: Option<String>,
}

/// Placement of the threads, which decides the result.
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
    /// Blocks in the kernel until a socket is ready.
    Event,
    /// Polls the sockets and never blocks.
    Poll,
}

/// Which end paces the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    Sender,
    Receiver,
    /// The peer, in both directions, so that pacing costs the measured host nothing.
    Peer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub message_bytes: u64,
    /// Number of connections of each channel.
    pub streams: u32,
    /// How the measured host waits.
    pub wait: Wait,
    /// Which end paces the traffic.
    pub paced_by: PacedBy,
    /// Granularity of the pacing, bytes.
    pub pacing_chunk_bytes: u64,
    /// Congestion control of the data connections.
    pub congestion_control: String,
    /// Requested socket buffers, bytes; absent: the kernel's autotuning.
    pub socket_buffer_bytes: Option<u64>,
}

/// An external process that computed and moved the bytes, by the probe protocol (docs/reference/probe-protocol.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// Name that it reported, such as java.
    pub name: String,
    pub version: String,
    /// Command line of the measurement.
    pub command: Vec<String>,
    /// Further facts that it reported, by key.
    pub facts: BTreeMap<String, String>,
    /// When it was pinned to its CPUs.
    pub pin: Pin,
    /// Number of its starts: column `fork` counts them from 0. Confidence intervals resample them.
    pub forks: u32,
    /// Whether the names of its threads distinguish task and traffic.
    pub split: bool,
    /// Whether its sockets' buffers and congestion control were those of `traffic`.
    pub sockets_set: bool,
    /// Whether it computed its own work in place of the kernel.
    pub own_work: bool,
}

/// When a runtime is pinned to its CPUs: it reads its CPU set once, at startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// The process is pinned before its program starts.
    Process,
    /// After its start, thread by thread.
    Threads,
}

/// How the transfer rate was varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// The pacing end gets the rate of each block.
    Paced,
    /// Other senders load the peer (the papers' way).
    Contention,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// HOST:PORT as given by the user.
    pub address: String,
    /// Host name reported by the peer.
    pub host: String,
    /// Whether it is this same machine.
    pub loopback: bool,
    /// Median round-trip time of the control connection, s.
    pub rtt_s: f64,
}

/// Direction, as seen from the measured host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Traffic that the measured host receives.
    Receive,
    /// Traffic that the measured host sends.
    Send,
}

/// One direction of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Index into the list `peers`.
    pub peer: u32,
    /// Direction, as seen from the measured host.
    pub direction: Direction,
    /// Rate reached without pacing, with no other channel, MB/s.
    pub unpaced_mb_per_s: f64,
    pub top_mb_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every interference rate reached the requested precision.
    Settled,
    /// The time limit was reached first.
    TimeLimit,
    /// Ctrl-C or a signal: the measurement is partial.
    Interrupted,
    /// A peer disconnected: the measurement is partial.
    PeerLost,
}

impl Measurement {
    /// Parses and checks a header.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, |header: &Self| {
            read::version(header.schema_version)?;
            header.check_peers()
        })
    }

    fn check_peers(&self) -> Result<(), DescriptionError> {
        let count = self.peers.len();
        for (number, channel) in self.channels.iter().enumerate() {
            if channel.peer as usize >= count {
                let sentence = format!("is {}; the file names {count} peers, the first with number 0", channel.peer);
                return Err(Problem::Value(sentence).at(format!("channels[{number}].peer")));
            }
        }
        Ok(())
    }
}
