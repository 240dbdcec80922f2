//! Closed forms for experiments of kind streams: each stream's slowdown beside the others in one queue.
//!
//! The form is 1 + (what others may put before a message) / (the message's own cycle). It is an upper bound if lengths
//! are fixed and buffers suffice, and exact if only the shared link matters. For drawn lengths it uses means. It does
//! not model growing queues: there is no form if a stream creates messages regardless of what is in flight, if frames
//! are lost, or beside jobs.
//!
//! Source: communication-interactions, section 6, which only measures. The form is derived
//! ([`crate::contention::queues`]).

mod promise;

pub use promise::{Promise, PromisedStream, promise};

use std::collections::BTreeMap;

use crosswind_schema::StreamsExperiment;
use crosswind_schema::experiment::Amount;
use crosswind_schema::experiment::streams::{Arrivals, Links, Stream, Transport};
use crosswind_schema::units::{Bytes, Quantity};

use crate::ModelError;
use crate::contention::queues::{Cycle, fifo_slowdown, merged_slowdown};

/// Returns the closed forms that apply to one point, by name. `fifo NAME` is the maximum slowdown of stream NAME in one
/// queue. `merged NAME` is its approximate slowdown if it meets one backlogged stream at a receiver's link and nowhere
/// else.
///
/// # Errors
/// None for an experiment that was checked.
///
/// # Examples
/// Stream A of the paper, 64 bytes in a padded frame, beside a continuously sending local stream of 16 KB (T1 includes
/// 10 us of latency beside the frame's 53 us):
/// ```
/// use crosswind_schema::StreamsExperiment;
/// let point = StreamsExperiment::from_toml(br#"
///     schema_version = 1
///     name = "sending side"
///     [workload]
///     kind = "streams"
///     hosts = 3
///     stream = [
///         { name = "A", class = "parallel", from = 0, to = 1, message_bytes = 64 },
///         { name = "local", class = "local", from = 0, to = 2, message_bytes = 16384, arrivals = "backlogged" },
///     ]"#, "e.toml")?;
/// let forms = crosswind_model::streams::closed_forms(&point)?;
/// assert_eq!(format!("{:.1}", forms["fifo A"]), "14.5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn closed_forms(point: &StreamsExperiment) -> Result<BTreeMap<String, f64>, ModelError> {
    let (links, streams) = (point.network.links(), &point.workload.streams);
    let closed = streams.iter().all(|stream| stream.arrivals != Arrivals::Open);
    if !closed || !point.workload.jobs.is_empty() || links.transport != Transport::Reliable {
        return Ok(BTreeMap::new());
    }
    let mut forms = BTreeMap::new();
    for (place, stream) in streams.iter().enumerate().filter(|(_, stream)| stream.at_once() == Some(1)) {
        let others = streams.iter().enumerate().filter(|(other, _)| *other != place);
        let before: f64 = others.map(|(_, other)| before(stream, other, &links)).sum();
        forms.insert(format!("fifo {}", stream.name), fifo_slowdown(cycle(stream, &links), before, 1)?);
    }
    if let [one, other] = &streams[..] {
        for (test, local) in [(one, other), (other, one)] {
            if let Some(slowdown) = merged(test, local, &links)? {
                forms.insert(format!("merged {}", test.name), slowdown);
            }
        }
    }
    Ok(forms)
}

/// Returns the slowdown of a stream beside a backlogged one from another host to the same receiver, or `None` if the
/// form does not apply.
fn merged(test: &Stream, local: &Stream, links: &Links) -> Result<Option<f64>, ModelError> {
    let plain = |stream: &Stream| {
        let fixed = matches!(stream.message_bytes, Amount::Fixed(_));
        fixed && stream.at_once() == Some(1) && stream.answer_bytes.is_none() && stream.to.hosts().len() == 1
    };
    let (own, others) = (cycle(test, links), cycle(local, links));
    let meet = test.from != local.from && test.to.hosts() == local.to.hosts();
    let whole = plain(test) && plain(local) && local.mean_gap_s() == 0.0 && links.host_s_per_frame.get() == 0.0;
    let frame_s = links.frame_bytes.get() as f64 * 1e-6 / links.link_mb_per_s.get();
    if !meet || !whole || others.message_s < own.message_s || own.message_s < frame_s * (1.0 - 1e-9) {
        return Ok(None);
    }
    merged_slowdown(own, others, frame_s).map(Some)
}

/// Messages from one host to others, or from others to one.
#[derive(Clone, Copy)]
struct Leg<'a> {
    from: &'a [u32],
    to: &'a [u32],
    /// Time of one message on a link, s.
    message_s: f64,
}

/// Returns the messages of a stream, and the answers to them.
fn legs<'a>(stream: &'a Stream, links: &Links) -> impl Iterator<Item = Leg<'a>> {
    let (sender, receivers) = (std::slice::from_ref(&stream.from), stream.to.hosts());
    let out = Leg { from: sender, to: receivers, message_s: on_link_s(&stream.message_bytes, links) };
    let back = stream.answer_bytes.as_ref().map(|bytes| on_link_s(bytes, links));
    std::iter::once(out).chain(back.map(|message_s| Leg { from: receivers, to: sender, message_s }))
}

impl Leg<'_> {
    /// Returns the time of all its messages if they share a link, s.
    fn together_s(self) -> f64 {
        self.from.len().max(self.to.len()) as f64 * self.message_s
    }
}

/// Returns the time of a message on a link, s. For drawn lengths, that of the mean.
fn on_link_s(bytes: &Amount<Bytes>, links: &Links) -> f64 {
    let frame = links.frame_bytes.get() as f64;
    let frames = match (links.pad, bytes) {
        (false, bytes) => bytes.mean() / frame,
        (true, Amount::Fixed(bytes)) => (bytes.get() / frame).ceil(),
        // The last frame of a drawn message is half empty on average, for lengths that spread over many frames.
        (true, Amount::Drawn(_)) => (bytes.mean() / frame + 0.5).max(1.0),
    };
    frames * frame * 1e-6 / links.link_mb_per_s.get()
}

/// Returns the cycle of a stream's operation when it is alone: its messages, and its answers, one after the other on
/// the link that they share.
fn cycle(stream: &Stream, links: &Links) -> Cycle {
    let mut legs = legs(stream, links);
    let message_s = legs.next().map_or(0.0, Leg::together_s);
    let answers = legs.next();
    // Answers arrive while later messages go out. Only the last one is sure to arrive after them.
    let rest = answers.map_or(0.0, |leg| leg.message_s + links.latency_s.get());
    Cycle { message_s, rest_s: rest + links.latency_s.get() + stream.mean_gap_s() }
}

/// Returns the time of another stream's messages that may precede an operation, s: once for each pair of legs that meet
/// on a link.
fn before(stream: &Stream, other: &Stream, links: &Links) -> f64 {
    let outstanding = other.at_once().unwrap_or(1) as f64;
    let mut before = 0.0;
    for own in legs(stream, links) {
        for theirs in legs(other, links) {
            let shares = |one: &[u32], other: &[u32]| one.iter().any(|host| other.contains(host));
            if shares(own.from, theirs.from) {
                before += outstanding * theirs.together_s();
            } else if shares(own.to, theirs.to) {
                // Frames of both arrive at the port one by one, so an equal amount may come between those of a long
                // message.
                before += outstanding * theirs.together_s() + own.together_s();
            }
        }
    }
    before
}
