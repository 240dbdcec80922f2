//! What one queue or two in a network interface cost a stream, and which threshold promises the local class a slowdown.
//!
//! Everything here is an upper bound for one shared output link, exact to the frame where nothing overlaps. Symbols: `f` a
//! whole frame's time on the link, `w` the threshold: parallel frames (or their bytes) to one of the local class.
//!
//! Source: communication-interactions, sections 5.2 and 6, which has no formulas; those here are derived.

use crate::error::{ModelError, at_least_zero};

/// One message of a stream and what else its cycle takes when it is alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Its frames on the shared link, s.
    pub message_s: f64,
    /// Everything else until the stream has its next message there: latency, other links, hosts, gap, s.
    pub rest_s: f64,
}

impl Cycle {
    fn check(&self, field: &str) -> Result<f64, ModelError> {
        let message = at_least_zero(|| format!("{field}.message_s"), self.message_s, "s", true)?;
        Ok(message + at_least_zero(|| format!("{field}.rest_s"), self.rest_s, "s", false)?)
    }
}

/// Whose turn it is, of two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// After so many parallel frames one local frame, where both wait (the paper's, with its count).
    Frames(u32),
    /// The same by bytes: so many frames' worth of parallel bytes to one frame's worth of local ones.
    Bytes(u32),
    /// Local frames only while no parallel ones wait.
    Strict,
}

impl Turns {
    fn check(self) -> Result<Self, ModelError> {
        match self {
            Self::Frames(0) | Self::Bytes(0) => Err(ModelError::argument("threshold", "is 0; it must be at least 1")),
            turns => Ok(turns),
        }
    }

    /// Parallel frames to one local frame; none where there is no such limit.
    fn threshold(self) -> Option<f64> {
        match self {
            Self::Frames(threshold) | Self::Bytes(threshold) => Some(f64::from(threshold)),
            Self::Strict => None,
        }
    }
}

/// Slowdown, at most, of a closed-loop stream beside a local stream in one FIFO queue: `1 + k L / (m + r)`.
///
/// With k local messages of time L under way, no more than k L stands before any message of time m whose cycle takes r else.
/// Reached, as 1 + `L_local` / `L_test`, where r is nothing and the local stream is backlogged.
///
/// # Errors
/// A time out of its range.
///
/// # Examples
/// Stream A (64 bytes in a padded frame of 1 KB) and stream B (2 KB) beside 16 KB:
/// ```
/// use crosswind_model::contention::queues::{Cycle, fifo_slowdown};
/// let f = 1024.0 / 19.375e6;
/// assert_eq!(fifo_slowdown(Cycle { message_s: f, rest_s: 0.0 }, 16.0 * f, 1)?, 17.0);
/// assert_eq!(fifo_slowdown(Cycle { message_s: 2.0 * f, rest_s: 0.0 }, 16.0 * f, 1)?, 9.0);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn fifo_slowdown(test: Cycle, local_message_s: f64, outstanding: u32) -> Result<f64, ModelError> {
    let cycle = test.check("test")?;
    let local = at_least_zero(|| "local_message_s".into(), local_message_s, "s", false)?;
    Ok(1.0 + f64::from(outstanding) * local / cycle)
}

/// Slowdown, at most, of a closed-loop parallel stream of which one message is under way, beside any local streams in a second
/// queue: `1 + (1 + ceil(m / (w f))) f / (m + r)`, whatever the length of local messages.
///
/// A message finds at most one local frame on the link, and after each w of its frames one more goes; strictly first, only the one on
/// the link.
///
/// # Errors
/// A time or the threshold out of its range.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, Turns, two_queues_slowdown};
/// let f = 1024.0 / 19.375e6;
/// assert_eq!(two_queues_slowdown(Cycle { message_s: 2.0 * f, rest_s: 0.0 }, f, Turns::Bytes(4))?, 2.0);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn two_queues_slowdown(test: Cycle, frame_s: f64, turns: Turns) -> Result<f64, ModelError> {
    let cycle = test.check("test")?;
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    // A quotient that is whole but for rounding is whole.
    let between = turns.check()?.threshold().map_or(0.0, |w| (test.message_s / (w * frame) - 1e-9).ceil().max(0.0));
    Ok(1.0 + (1.0 + between) * frame / cycle)
}

/// Slowdown, at most, of a closed-loop local stream in the second queue, whatever the parallel class sends: `1 + (w m + f) / (m + r)`.
///
/// Before each of its frames at most w parallel ones go, and one more before the first; infinite where parallel frames always go first.
/// Other local streams are not counted: what they take, they take in one queue as well.
///
/// # Errors
/// A time or the threshold out of its range.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, Turns, local_slowdown};
/// let f = 1024.0 / 19.375e6;
/// assert_eq!(local_slowdown(Cycle { message_s: 16.0 * f, rest_s: 0.0 }, f, Turns::Bytes(1))?, 2.0625);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn local_slowdown(local: Cycle, frame_s: f64, turns: Turns) -> Result<f64, ModelError> {
    let cycle = local.check("local")?;
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    let threshold = turns.check()?.threshold().unwrap_or(f64::INFINITY);
    Ok(1.0 + (threshold * local.message_s + frame) / cycle)
}

/// The largest threshold that promises a closed-loop local stream a slowdown of at most `slowdown`; none where even 1 does not.
///
/// # Errors
/// A time out of its range, or a slowdown below 1.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, promised_threshold};
/// let f = 1024.0 / 19.375e6;
/// let local = Cycle { message_s: 16.0 * f, rest_s: 0.0 };
/// assert_eq!(promised_threshold(local, f, 2.0)?, None);
/// assert_eq!(promised_threshold(local, f, 6.0)?, Some(4));
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn promised_threshold(local: Cycle, frame_s: f64, slowdown: f64) -> Result<Option<u32>, ModelError> {
    let cycle = local.check("local")?;
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    if !(1.0..f64::INFINITY).contains(&slowdown) {
        let sentence = format!("is {slowdown}; it must be finite and at least 1");
        return Err(ModelError::argument("slowdown", sentence));
    }
    let most = ((slowdown - 1.0) * cycle - frame) / local.message_s;
    // A quotient that is whole but for rounding is whole.
    let whole = (most + 1e-9).floor();
    Ok((whole >= 1.0).then_some(whole.min(f64::from(u32::MAX)) as u32))
}

/// The longest that a local frame waits for credit while parallel frames come to its receiver, with the repaired credits: a
/// round trip, `2 l + (b + 1) f`, or, where the last parallel frame or the grant was lost, the idle time.
///
/// `latency_s` (l) one way; `buffer_frames` (b) what may stand before a frame in the switch; every local frame that arrives brings
/// one credit back, so the class never waits longer than for the frame that is under way.
///
/// # Errors
/// A time out of its range.
pub fn longest_credit_wait_s(latency_s: f64, frame_s: f64, buffer_frames: u32, idle_s: f64) -> Result<f64, ModelError> {
    let latency = at_least_zero(|| "latency_s".into(), latency_s, "s", false)?;
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    let idle = at_least_zero(|| "idle_s".into(), idle_s, "s", false)?;
    Ok((2.0 * latency + (f64::from(buffer_frames) + 1.0) * frame).max(idle))
}
