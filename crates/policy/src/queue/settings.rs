//! Settings of an interface's queues and of receiver credits, and the bound on a local frame's wait.

use crosswind_schema::Class;
use crosswind_schema::experiment::streams::{CreditRule, Discipline, QueuePolicy};
use crosswind_schema::units::Quantity;

/// How an interface chooses among its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueSettings {
    pub discipline: Discipline,
    /// Parallel frames (threshold) or bytes (drr) per local one while both classes wait. 0 counts as 1.
    pub threshold: u32,
    /// Whether to use the printed algorithm, which keeps counting while no frame waits.
    pub literal: bool,
    /// Number of local frames that leave together (threshold), as one read of a sending program delivers them. 0 counts
    /// as 1.
    pub batch: u32,
    /// Length of the longest frame, bytes.
    pub frame_bytes: u32,
    /// Whether every frame takes the time of the longest and is counted like it.
    pub pad: bool,
}

/// Bound on what leaves before the first waiting local frame, if only the discipline delays it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LongestWait {
    /// Only frames that arrived before it.
    ItsTurn,
    Frames(u64),
    /// At most this many parallel bytes.
    Bytes(u64),
    /// Any number of parallel frames.
    Unbounded,
}

impl QueueSettings {
    /// A single queue for frames of up to `frame_bytes` bytes.
    #[must_use]
    pub const fn fifo(frame_bytes: u32) -> Self {
        Self { discipline: Discipline::Fifo, threshold: 1, literal: false, batch: 1, frame_bytes, pad: false }
    }

    /// The queues that an experiment describes, for frames of up to `frame_bytes` bytes. `pad`: each takes the time of
    /// the longest.
    #[must_use]
    pub fn from_policy(policy: &QueuePolicy, frame_bytes: u32, pad: bool) -> Self {
        Self {
            discipline: policy.queue,
            threshold: policy.threshold.get().try_into().unwrap_or(u32::MAX),
            literal: policy.literal,
            batch: policy.batch.get() as u32,
            frame_bytes,
            pad,
        }
    }

    /// What a frame of `bytes` bytes counts for.
    #[inline]
    pub(super) const fn weight(&self, bytes: u32) -> u64 {
        if self.pad { self.frame_bytes as u64 } else { bytes as u64 }
    }

    /// The bound on starvation: the most that may leave before the first waiting local frame.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosswind_policy::queue::{Discipline, LongestWait, QueueSettings};
    ///
    /// let four = QueueSettings { discipline: Discipline::Drr, threshold: 4, ..QueueSettings::fifo(1024) };
    /// assert_eq!(four.longest_wait(), LongestWait::Bytes(4 * 1024 + 1024 - 1));
    /// ```
    #[must_use]
    pub const fn longest_wait(&self) -> LongestWait {
        let (threshold, frame) = (self.at_least_one(), self.frame_bytes as u64);
        match self.discipline {
            Discipline::Fifo => LongestWait::ItsTurn,
            Discipline::Threshold => LongestWait::Frames(threshold),
            Discipline::Drr if self.pad => LongestWait::Frames(threshold),
            // It leaves once the balance reaches its price. One byte may be missing, and then a whole parallel frame
            // still leaves first.
            Discipline::Drr => LongestWait::Bytes(threshold * frame + frame.saturating_sub(1)),
            Discipline::Strict => LongestWait::Unbounded,
        }
    }

    pub(super) const fn at_least_one(&self) -> u64 {
        if self.threshold == 0 { 1 } else { self.threshold as u64 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreditSettings {
    /// Frames of each class that the receiver can hold, at least 1. Bounds what may be in flight to it.
    pub receive_frames: u32,
    /// Local frames that may be on their way, sent and not arrived, while parallel frames arrive. At least 1 without
    /// `literal`.
    pub receive_threshold: u32,
    /// Time without a parallel frame after which they are considered to have stopped, ns.
    pub idle_ns: u64,
    pub literal: bool,
}

impl CreditSettings {
    /// The credits that an experiment describes. `None` if receivers set no limit.
    #[must_use]
    pub fn from_policy(policy: &QueuePolicy) -> Option<Self> {
        let frames = |frames: u64| u32::try_from(frames).unwrap_or(u32::MAX);
        (policy.credits == CreditRule::Receiver).then(|| Self {
            receive_frames: frames(policy.receive_frames.get()),
            receive_threshold: frames(policy.receive_threshold.get()),
            idle_ns: (policy.idle_s.get() * 1e9).round() as u64,
            literal: policy.literal,
        })
    }

    pub(super) fn window(&self) -> u32 {
        self.receive_frames.max(1)
    }
}

/// Message from a receiver to a sender.
///
/// It carries the whole state: the next grant makes up for a lost one, and a duplicate does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub class: Class,
    /// Frames that may be in flight: sent and not yet taken from the receiver's queue. In the printed algorithm: frames
    /// that may be sent from now on.
    pub frames: u32,
    /// Frames taken from the receiver's queue since the connection began. In the printed algorithm: 0.
    pub taken: u64,
}
