//! Which discipline an interface has, what a receiver grants, and how long a local frame may wait for its turn.

use crosswind_schema::Class;
use crosswind_schema::experiment::streams::{CreditRule, Discipline, QueuePolicy};
use crosswind_schema::units::Quantity;

/// How an interface chooses among its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueSettings {
    pub discipline: Discipline,
    /// Of class parallel to one of class local while both wait: frames (threshold) or bytes (drr). 0 counts as 1.
    pub threshold: u32,
    /// The threshold as printed: it counts on while no frame waits.
    pub literal: bool,
    /// Of class local, so many frames go together once one goes (threshold): what one read of a sending program brings. 0
    /// counts as 1.
    pub batch: u32,
    /// The longest frame, bytes.
    pub frame_bytes: u32,
    /// Every frame takes the time of the longest, and counts as much.
    pub pad: bool,
}

/// The most that may leave before the first of the waiting local frames does, while nothing but the discipline keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LongestWait {
    /// What came before it, and no more.
    ItsTurn,
    Frames(u64),
    /// So many parallel bytes.
    Bytes(u64),
    /// All that the parallel class ever sends.
    Unbounded,
}

impl QueueSettings {
    /// One queue, for frames up to so many bytes.
    #[must_use]
    pub const fn fifo(frame_bytes: u32) -> Self {
        Self { discipline: Discipline::Fifo, threshold: 1, literal: false, batch: 1, frame_bytes, pad: false }
    }

    /// The queues that an experiment describes, for frames up to so many bytes; `pad`: each takes the time of the longest.
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

    /// What a frame of so many bytes counts for.
    #[inline]
    pub(super) const fn weight(&self, bytes: u32) -> u64 {
        if self.pad { self.frame_bytes as u64 } else { bytes as u64 }
    }

    /// The bound on starvation: the most that may leave before the first of the waiting local frames.
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
            // It goes once it has earned its length; the frame with which it has may have needed only one byte.
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
    /// Frames of each class that it holds, at least 1: what may be under way to it.
    pub receive_frames: u32,
    /// Local frames that may be under way while parallel ones come. Without `literal` at least 1.
    pub receive_threshold: u32,
    /// No parallel frame for so long: none come any more, ns.
    pub idle_ns: u64,
    pub literal: bool,
}

impl CreditSettings {
    /// Those that an experiment describes; none where receivers set no limit.
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

/// What a receiver tells a sender.
///
/// It says all that there is to say, so one that is lost is made good by the next, and one that comes twice does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub class: Class,
    /// So many frames may be under way: sent, and not yet taken from the receiver's queue. As printed: so many may be sent
    /// from now on.
    pub frames: u32,
    /// So many frames have been taken from the receiver's queue since the connection began. As printed: 0.
    pub taken: u64,
}
