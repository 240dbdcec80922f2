//! Queue policy: which class's frame leaves an interface next, and how a receiver throttles local senders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::experiment::parameters::Whole;
use crate::units::{PositiveSeconds, Quantity};

/// Rule that picks the frame that leaves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// One queue: first come, first served.
    Fifo,
    /// Two queues: `threshold` parallel frames to one local frame.
    Threshold,
    /// Two queues: `threshold` parallel bytes to one local byte, by deficit round robin (Shreedhar, Varghese, 1995).
    #[default]
    Drr,
    /// Two queues: local frames only when no parallel frame waits.
    Strict,
}

impl Discipline {
    /// All disciplines, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Threshold, Self::Drr, Self::Strict];

    /// Returns its name in files, and its meaning, for people.
    #[must_use]
    pub const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Fifo => ("fifo", "one queue: first come, first served"),
            Self::Threshold => ("threshold", "a number of parallel frames to one local frame"),
            Self::Drr => ("drr", "a number of parallel bytes to one local byte (deficit round robin)"),
            Self::Strict => ("strict", "local frames only when no parallel frame waits"),
        }
    }
}

/// Whether receivers limit local senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CreditRule {
    /// Receivers do not limit the senders.
    #[default]
    None,
    /// A receiver limits the local class while parallel frames arrive.
    Receiver,
}

/// Where live frames are queued. Simulations ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterPlace {
    /// In the message filter, a process on each host.
    #[default]
    UserSpace,
    /// In the kernel, on the network device of each host; needs root.
    Kernel,
}

impl FilterPlace {
    /// Not written if it is the default, so that runs made before the field existed belong to the same experiment.
    fn is_user_space(&self) -> bool {
        *self == Self::UserSpace
    }
}

/// The queues of T3. T2 has one queue, on the same path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePolicy {
    /// Which frame leaves an interface next.
    pub queue: Discipline,
    /// For live runs (local): where frames are queued.
    #[serde(skip_serializing_if = "FilterPlace::is_user_space")]
    pub filter: FilterPlace,
    /// Frames (threshold) or bytes (drr) of class parallel to one of class local while both wait.
    pub threshold: Whole<1, 1_000_000_000>,
    /// Use threshold and credits exactly as printed in the paper, which starve and stop (E4-14, E4-15).
    pub literal: bool,
    /// With `queue = "threshold"`: local frames that are sent together, like those of one read from a sending
    /// program.
    pub batch: Whole<1, 1_000_000>,
    /// Whether receivers limit local senders.
    pub credits: CreditRule,
    /// With credits: frames that a receiver holds of each class.
    pub receive_frames: Whole<1, 1_000_000>,
    /// With credits: frames that a local sender may have on their way, sent and not arrived, while parallel frames
    /// arrive; 0 only with `literal`.
    pub receive_threshold: Whole<0, 1_000_000>,
    /// With credits: time without a parallel frame after which local senders get their full credit again, s.
    pub idle_s: PositiveSeconds,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self {
            queue: Discipline::default(),
            filter: FilterPlace::default(),
            threshold: Whole::fixed(4),
            literal: false,
            batch: Whole::fixed(1),
            credits: CreditRule::default(),
            receive_frames: Whole::fixed(16),
            receive_threshold: Whole::fixed(1),
            idle_s: PositiveSeconds::fixed(0.01),
        }
    }
}

/// Permitted range, s: more than an hour is surely a mistake, and less than a microsecond is not a timeout.
const IDLE_S: (f64, f64) = (1e-6, 3600.0);

impl QueuePolicy {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let refused = |field: &str, sentence: String| Err(Problem::Value(sentence).at(format!("policy.{field}")));
        let (threshold, frames) = (self.receive_threshold.get(), self.receive_frames.get());
        if self.literal && self.queue != Discipline::Threshold && self.credits == CreditRule::None {
            let other = "is true, but only policy.queue = \"threshold\" and policy.credits = \"receiver\" are printed";
            return refused("literal", other.into());
        }
        if self.filter == FilterPlace::Kernel {
            if !matches!(self.queue, Discipline::Drr | Discipline::Strict) || self.literal {
                let counts =
                    "is \"kernel\", which counts bytes in two queues; policy.queue must be \"drr\" or \"strict\"";
                return refused("filter", counts.into());
            }
            if self.credits != CreditRule::None {
                let own = "is \"kernel\", which gives no credits; policy.credits must be \"none\"";
                return refused("filter", own.into());
            }
        }
        if threshold == 0 && !self.literal {
            let starves = "is 0, which starves the local class; it must be at least 1 unless policy.literal is true";
            return refused("receive_threshold", starves.into());
        }
        if threshold > frames {
            let more = format!("is {threshold}; it must be at most policy.receive_frames, {frames}");
            return refused("receive_threshold", more);
        }
        if self.batch.get() > 1 && (self.queue != Discipline::Threshold || self.literal) {
            let other = "but only policy.queue = \"threshold\" without policy.literal sends local frames together";
            return refused("batch", format!("is {}, {other}", self.batch.get()));
        }
        let idle = self.idle_s.get();
        if !(IDLE_S.0..=IDLE_S.1).contains(&idle) {
            return refused("idle_s", format!("is {idle} s; it must be {:e} to {} s", IDLE_S.0, IDLE_S.1));
        }
        Ok(())
    }
}
