//! Cost of one or two queues in a network interface to a stream, and the threshold that guarantees the local class a
//! slowdown.
//!
//! Everything here except [`merged_slowdown`] is an upper bound for one shared output link, exact to the frame if
//! nothing overlaps. Symbols: `f` is the time of a whole frame on the link; `w` is the threshold: frame times of the
//! parallel class per frame time of the local class, infinite if parallel frames always go first.
//!
//! Source: communication-interactions, sections 5.2 and 6, which give no formulas. Those here are derived.

use crate::error::{ModelError, at_least_zero};

/// One message of a stream, and the rest of its cycle when it is alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Time of its frames on the shared link, s.
    pub message_s: f64,
    /// Everything else until the stream's next message arrives there: latency, other links, hosts, gap, s.
    pub rest_s: f64,
}

impl Cycle {
    fn check(&self, field: &str) -> Result<f64, ModelError> {
        let message = at_least_zero(|| format!("{field}.message_s"), self.message_s, "s", true)?;
        Ok(message + at_least_zero(|| format!("{field}.rest_s"), self.rest_s, "s", false)?)
    }
}

fn checked_threshold(threshold: f64) -> Result<f64, ModelError> {
    if threshold > 0.0 {
        return Ok(threshold);
    }
    Err(ModelError::argument("threshold", format!("is {threshold}; it must be greater than 0")))
}

/// Returns an upper bound of the slowdown of a closed-loop stream beside a local stream in one FIFO queue:
/// `1 + k L / (m + r)`.
///
/// With k local messages of time L in flight, at most k L precedes any message of time m, whose cycle takes r besides.
/// The bound is reached, as 1 + `L_local` / `L_test`, if r is 0 and the local stream is backlogged.
///
/// # Errors
/// A time is out of range.
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

/// Estimates the slowdown of a closed-loop stream beside one backlogged local stream from another host, where they meet
/// at the link to a receiver: `(L + n m + l) / (n (m + r))` with `n = (sqrt(b^2 + 2 m (L + l)) - b) / m` and
/// `b = m / 2 + r - f / 2`.
///
/// Local frames arrive one by one, as fast as the link takes them, so nothing waits there until a message of the test
/// stream comes between them. Whatever it delays, m of time, its next message finds in the queue. While one local
/// message arrives (L, plus the rest of its cycle, l), the j-th message of the test therefore takes
/// `j m + m - f / 2 + r`, and n of them have been sent when the link has carried all. The slowdown grows with the
/// square root of L, whereas the bound, [`fifo_slowdown`], grows with L.
///
/// Valid for messages of one length each, at least a whole frame, links of one rate, a local message at least as long
/// as the test's, and one of each in flight. Simulated slowdowns of 1 to 8 frames beside 1 to 64 are within 10 % of it.
///
/// # Errors
/// A time is out of range, or `local` is shorter than `test`.
///
/// # Examples
/// Stream B (2 KB) beside 16 KB, without latency: the bound is 9 at an output link, 11 here.
/// ```
/// use crosswind_model::contention::queues::{Cycle, merged_slowdown};
/// let f = 1024.0 / 19.375e6;
/// let cycle = |frames: f64| Cycle { message_s: frames * f, rest_s: 0.0 };
/// assert_eq!(format!("{:.2}", merged_slowdown(cycle(2.0), cycle(16.0), f)?), "3.13");
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn merged_slowdown(test: Cycle, local: Cycle, frame_s: f64) -> Result<f64, ModelError> {
    let (cycle, local_cycle) = (test.check("test")?, local.check("local")?);
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    let (message, long) = (test.message_s, local.message_s);
    // A quotient that is whole up to rounding counts as whole.
    if long < message * (1.0 - 1e-9) {
        let sentence = format!("is {long} s; it must be at least test.message_s, {message} s");
        return Err(ModelError::argument("local.message_s", sentence));
    }
    let early = message / 2.0 + test.rest_s - frame / 2.0;
    let messages = ((early * early + 2.0 * message * local_cycle).sqrt() - early) / message;
    Ok((local_cycle + messages * message) / (messages * cycle))
}

/// Returns an upper bound of the slowdown of a closed-loop parallel stream with one message in flight, beside any local
/// streams in a second queue: `1 + (1 + ceil(m / (w f))) f / (m + r)`, for local messages of any length.
///
/// A message finds at most one local frame on the link, and after each w of its frames one more local frame goes.
///
/// # Errors
/// A time or the threshold is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, two_queues_slowdown};
/// let f = 1024.0 / 19.375e6;
/// assert_eq!(two_queues_slowdown(Cycle { message_s: 2.0 * f, rest_s: 0.0 }, f, 4.0)?, 2.0);
/// assert_eq!(two_queues_slowdown(Cycle { message_s: 2.0 * f, rest_s: 0.0 }, f, f64::INFINITY)?, 1.5);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn two_queues_slowdown(test: Cycle, frame_s: f64, threshold: f64) -> Result<f64, ModelError> {
    let cycle = test.check("test")?;
    let frame = at_least_zero(|| "frame_s".into(), frame_s, "s", true)?;
    // A quotient that is whole up to rounding counts as whole.
    let between = (test.message_s / (checked_threshold(threshold)? * frame) - 1e-9).ceil().max(0.0);
    Ok(1.0 + (1.0 + between) * frame / cycle)
}

/// Returns an upper bound of the slowdown of a closed-loop local stream in the second queue, whatever the parallel
/// class sends: `1 + (w t + p) / (m + r)`.
///
/// Each local frame is preceded by at most w parallel frame times, and the first frame of a message by p (`first_s`)
/// more: the frame on the link, the excess of a turn by bytes over its share, and the frames of other local streams. t
/// (`turns_s`) is the total time of parallel frames per unit of the threshold: the message's own time m, plus that of
/// the others' frames, if frames are alike.
///
/// # Errors
/// A time or the threshold is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, local_slowdown};
/// let f = 1024.0 / 19.375e6;
/// assert_eq!(local_slowdown(Cycle { message_s: 16.0 * f, rest_s: 0.0 }, f, 16.0 * f, 1.0)?, 2.0625);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn local_slowdown(local: Cycle, first_s: f64, turns_s: f64, threshold: f64) -> Result<f64, ModelError> {
    let cycle = local.check("local")?;
    let first = at_least_zero(|| "first_s".into(), first_s, "s", false)?;
    let turns = at_least_zero(|| "turns_s".into(), turns_s, "s", true)?;
    Ok(1.0 + (checked_threshold(threshold)? * turns + first) / cycle)
}

/// Returns the largest w for which [`local_slowdown`] guarantees at most `slowdown`, or 0 if there is none.
///
/// # Errors
/// A time is out of range, or the slowdown is below 1.
///
/// # Examples
/// ```
/// use crosswind_model::contention::queues::{Cycle, promised_threshold};
/// let f = 1024.0 / 19.375e6;
/// let local = Cycle { message_s: 16.0 * f, rest_s: 0.0 };
/// assert_eq!(promised_threshold(local, f, 16.0 * f, 5.0625)?, 4.0);
/// assert_eq!(promised_threshold(local, f, 16.0 * f, 1.0)?, 0.0);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn promised_threshold(local: Cycle, first_s: f64, turns_s: f64, slowdown: f64) -> Result<f64, ModelError> {
    let cycle = local.check("local")?;
    let first = at_least_zero(|| "first_s".into(), first_s, "s", false)?;
    let turns = at_least_zero(|| "turns_s".into(), turns_s, "s", true)?;
    if !(1.0..f64::INFINITY).contains(&slowdown) {
        let sentence = format!("is {slowdown}; it must be finite and at least 1");
        return Err(ModelError::argument("slowdown", sentence));
    }
    Ok((((slowdown - 1.0) * cycle - first) / turns).max(0.0))
}
