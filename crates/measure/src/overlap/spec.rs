//! Request of a ping to its other end, and the result it returns.

use crosswind_schema::overlap::Waiting;
use serde::{Deserialize, Serialize};

use crate::config::within;
use crate::error::MeasureError;

/// Least and most bytes of a message; the upper limit is the paper's 64 MB, as a power of two.
pub const MESSAGE_BYTES: (u64, u64) = (1, 64 << 20);
/// Least and most round trips; 0: only burners run.
pub const MESSAGES: (u64, u64) = (0, 100_000_000);
/// Most iterations of a burner: hours.
pub const ITERATIONS: (u64, u64) = (1, 1_000_000_000_000);
/// Limits of the time spent spinning, ns.
pub const SPIN_NS: (u64, u64) = (0, 1_000_000_000);

/// Burners beside the messages at the other end: one for each CPU that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurnThere {
    pub iterations: u64,
    /// Nice level, -20 to 19.
    pub nice: i32,
}

/// First frame of a ping connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingSpec {
    pub messages: u64,
    /// Bytes of each message, each way.
    pub message_bytes: u64,
    pub wait: Waiting,
    /// Time that spin-block polls before it blocks, ns.
    pub spin_ns: u64,
    /// Burners at the other end; `None`: it only echoes.
    pub burn: Option<BurnThere>,
}

impl PingSpec {
    /// Checks that every setting is in its range.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self) -> Result<(), MeasureError> {
        within("messages", self.messages, MESSAGES, "messages")?;
        within("message_bytes", self.message_bytes, MESSAGE_BYTES, "bytes")?;
        within("spin_ns", self.spin_ns, SPIN_NS, "ns")?;
        if let Some(burn) = self.burn {
            within("iterations", burn.iterations, ITERATIONS, "iterations")?;
            if !(-20..=19).contains(&burn.nice) {
                return Err(MeasureError::value("burn_nice", burn.nice, "-20 to 19"));
            }
        }
        Ok(())
    }
}

/// Result of the other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoDone {
    /// CPU time of the thread that answered, ns.
    pub cpu_ns: u64,
    /// Time from the start to the end of each burner, ns.
    pub burn_ns: Vec<u64>,
}
