//! Settings of a probe, validated before anything starts.

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::protocol::ChannelSpec;
pub use crosswind_schema::measurement::{Direction, PacedBy, Wait};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelConfig {
    /// diagonals, burn, triad, command or callable.
    pub name: String,
    /// Side of the matrix (diagonals).
    #[serde(default = "default_matrix")]
    pub matrix: u32,
    /// Diagonals in a unit of work; kernel `diagonals` only.
    #[serde(default = "default_diagonals")]
    pub diagonals: u32,
    /// Command line; kernel `command` only.
    #[serde(default)]
    pub task: Option<String>,
    /// External process that computes and moves the bytes in place of this crate's threads.
    #[serde(default)]
    pub foreign: Option<ForeignConfig>,
}

fn default_matrix() -> u32 {
    crate::kernel::MATRIX
}

fn default_diagonals() -> u32 {
    crate::kernel::DIAGONALS
}

/// One direction of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelConfig {
    pub peer: usize,
    /// Seen from the measured host.
    pub direction: Direction,
}

/// All settings of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub kernel: KernelConfig,
    pub peers: Vec<String>,
    /// Measured directions, at most [`CHANNELS`].
    pub channels: Vec<ChannelConfig>,
    /// HOST:PORT of servers that load the peers (contention); empty: each peer loads itself.
    #[serde(default)]
    pub loaders: Vec<String>,
    /// Bytes per message, 1 KB to 64 MB.
    pub message_bytes: u64,
    pub streams: u32,
    /// The measured host's way to wait.
    pub wait: Wait,
    /// End that paces the traffic.
    pub paced_by: PacedBy,
    /// Granularity of the pacing, bytes.
    pub pacing_chunk_bytes: u64,
    /// Socket buffers, bytes; `None`: the kernel's autotuning.
    pub socket_buffer_bytes: Option<u64>,
    /// Congestion control; `None`: the system's default.
    pub congestion_control: Option<String>,
    #[serde(default)]
    pub placement: Placement,
}

/// An external process, in any language, that implements the probe protocol (docs/reference/probe-protocol.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignConfig {
    pub command: Vec<String>,
    /// Variables added to its environment.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// When it is pinned to its CPUs.
    #[serde(default)]
    pub pin: Pin,
    /// Whether it computes its own work in place of the kernel.
    #[serde(default)]
    pub own_work: bool,
}

/// When a foreign process is pinned to its CPUs. Runtimes read their CPU set once, at startup: on one CPU a JVM picks
/// the serial collector and one carrier thread, and Go sets GOMAXPROCS to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    #[default]
    Process,
    /// After its start: all its threads, and those that they start.
    Threads,
}

/// CPU affinity and nice levels of the threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Placement {
    /// CPUs of the computing thread; empty: any.
    pub compute_cpus: Vec<u32>,
    /// CPUs of the threads that move bytes; empty: any.
    pub traffic_cpus: Vec<u32>,
    /// CPUs of the sampler; empty: any.
    pub sampler_cpus: Vec<u32>,
    /// Nice level of the computing thread.
    pub compute_nice: i32,
    /// Nice level of the threads that move bytes.
    pub traffic_nice: i32,
}

/// Least and most bytes of a message.
pub const MESSAGE_BYTES: (u64, u64) = (1_000, 64_000_000);
/// Least and most bytes of a pacing chunk.
pub const CHUNK_BYTES: (u64, u64) = (1_000, 64_000_000);
/// Least and most bytes of a socket buffer.
pub const BUFFER_BYTES: (u64, u64) = (4_096, 1 << 30);
pub const STREAMS: u32 = 64;
/// Most channels of one probe.
pub const CHANNELS: usize = 16;

/// Refuses a value outside a range, naming field, value, range and unit.
pub fn within(field: &str, value: u64, (least, most): (u64, u64), unit: &str) -> Result<(), MeasureError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(MeasureError::value(field, format!("{value} {unit}"), format!("{least} to {most} {unit}")))
}

impl Config {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first invalid setting, with its value and range.
    pub fn from_json(text: &str) -> Result<Self, MeasureError> {
        let config: Self =
            serde_json::from_str(text).map_err(|error| MeasureError::value("config", error, "a probe's settings"))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), MeasureError> {
        within("message_bytes", self.message_bytes, MESSAGE_BYTES, "bytes")?;
        within("pacing_chunk_bytes", self.pacing_chunk_bytes, CHUNK_BYTES, "bytes")?;
        within("streams", self.streams.into(), (1, STREAMS.into()), "connections")?;
        if let Some(bytes) = self.socket_buffer_bytes {
            within("socket_buffer_bytes", bytes, BUFFER_BYTES, "bytes")?;
        }
        for (field, nice) in [("nice", self.placement.compute_nice), ("traffic_nice", self.placement.traffic_nice)] {
            if !(-20..=19).contains(&nice) {
                return Err(MeasureError::value(field, nice, "-20 to 19"));
            }
        }
        if self.channels.is_empty() || self.channels.len() > CHANNELS {
            return Err(MeasureError::value("channels", self.channels.len(), format!("1 to {CHANNELS} channels")));
        }
        if let Some(lost) = self.channels.iter().find(|channel| channel.peer >= self.peers.len()) {
            return Err(MeasureError::value("channels", lost.peer, "the index of a peer"));
        }
        if let Some(foreign) = &self.kernel.foreign {
            if foreign.command.is_empty() {
                return Err(MeasureError::value("runtime", "empty", "a command"));
            }
            if self.paced_by != PacedBy::Peer {
                return Err(MeasureError::value("paced_by", "not the peer", "peer, for a process that keeps no rates"));
            }
        }
        if self.kernel.name == "diagonals" {
            within("matrix", self.kernel.matrix.into(), (8, 4096), "rows")?;
            within("diagonals", self.kernel.diagonals.into(), (1, self.kernel.matrix.into()), "diagonals")?;
        }
        Ok(())
    }

    /// Whether this host paces a channel; otherwise the peer does.
    #[must_use]
    pub fn paced_here(&self, direction: Direction) -> bool {
        matches!(
            (self.paced_by, direction),
            (PacedBy::Sender, Direction::Send) | (PacedBy::Receiver, Direction::Receive)
        )
    }

    /// Returns the description of a channel that its peer needs.
    #[must_use]
    pub fn channel_spec(&self, direction: Direction) -> ChannelSpec {
        ChannelSpec {
            direction,
            streams: self.streams,
            message_bytes: self.message_bytes,
            pacing_chunk_bytes: self.pacing_chunk_bytes,
            paced_there: !self.paced_here(direction),
            socket_buffer_bytes: self.socket_buffer_bytes,
            congestion_control: self.congestion_control.clone(),
        }
    }
}
