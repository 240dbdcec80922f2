//! Guarantees of the queues of an experiment of kind streams to the local class, whatever the parallel class sends.

use crosswind_schema::StreamsExperiment;
use crosswind_schema::experiment::Amount;
use crosswind_schema::experiment::streams::{Class, CreditRule, Discipline, Links, Stream, Transport};
use crosswind_schema::units::{Bytes, Quantity};

use super::{Leg, cycle, legs};
use serde::Serialize;

use crate::ModelError;
use crate::contention::queues::{local_slowdown, promised_threshold};

/// The starvation bound of two queues.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// Maximum time that the first local frame of an interface waits for parallel ones, s. Infinite if parallel frames
    /// always go first.
    pub longest_wait_s: f64,
    /// Minimum fraction of a link's time that local frames get while they wait.
    pub least_share: f64,
    /// With credits, the maximum time that a local sender waits for one, s.
    pub credit_wait_s: Option<f64>,
    /// Local streams with a guaranteed slowdown.
    pub streams: Vec<PromisedStream>,
}

/// Guarantee to one local stream, whatever the parallel class sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromisedStream {
    pub name: String,
    /// Other local streams that send from its host. The guarantee assumes that each has only the in-flight messages
    /// that the experiment gives it.
    pub beside: Vec<String>,
    pub slowdown: f64,
    /// Largest threshold that guarantees at most the requested slowdown. 0 if none does.
    pub threshold: u32,
}

/// Time equivalent of a threshold: by frames or by bytes, with frames that take either the time of a whole frame or
/// that of their own bytes.
struct Turn {
    /// Time of a whole frame on a link, without its host, s.
    frame_s: f64,
    threshold: f64,
    /// Whether the threshold counts bytes. If all frames take the same time, it counts frames.
    by_bytes: bool,
    /// Maximum ratio of the time of parallel frames to that of a local frame, per unit of the threshold.
    per_time: f64,
    /// Maximum excess of one turn, s. It counts against the next turn, unless a local frame goes in between because
    /// there is no parallel one.
    kept_s: f64,
    /// Host time for the frames of one turn, s: short ones, if it counts bytes.
    hosts_s: f64,
}

impl Turn {
    fn of(point: &StreamsExperiment, links: &Links) -> Self {
        let frame = links.frame_bytes.get() as f64;
        let frame_s = frame * 1e-6 / links.link_mb_per_s.get();
        let strict = point.policy.queue == Discipline::Strict;
        let by_bytes = point.policy.queue == Discipline::Drr && !links.pad;
        let threshold = if strict { f64::INFINITY } else { point.policy.threshold.get() as f64 };
        let host_s = links.host_s_per_frame.get();
        let per_time = match (by_bytes, links.pad) {
            // A local frame of full length beside the same number of bytes in one-byte frames.
            (true, _) => frame * (frame_s / frame + host_s) / (frame_s + host_s),
            (false, true) => 1.0,
            // Counting frames, a short one counts as much as a long one.
            (false, false) => (frame_s + host_s) / (shortest_local_frame(point, frame) / frame * frame_s + host_s),
        };
        let kept_s = if by_bytes { frame_s } else { 0.0 };
        let hosts_s = if host_s == 0.0 {
            0.0
        } else if by_bytes {
            (threshold + 1.0) * frame * host_s
        } else {
            threshold * host_s
        };
        Self { frame_s, threshold, by_bytes, per_time, kept_s, hosts_s }
    }

    /// Returns the maximum time that a local frame at the head of its queue waits for parallel ones, s.
    fn wait_s(&self) -> f64 {
        self.threshold * self.frame_s + self.kept_s + self.hosts_s
    }

    /// Returns the link time of `messages` messages of `bytes` bytes.
    fn taken(&self, messages: f64, bytes: f64, links: &Links) -> Taken {
        let frames = messages * (bytes / links.frame_bytes.get() as f64).ceil();
        let own_s = if links.pad { frames * self.frame_s } else { messages * bytes * 1e-6 / links.link_mb_per_s.get() };
        Taken { frames, own_s, turns_s: if self.by_bytes { own_s } else { frames * self.frame_s } }
    }
}

/// Returns the bytes of a message's last frame, the shortest. 1 if lengths are drawn.
fn last_frame(bytes: &Amount<Bytes>, frame: f64) -> f64 {
    match bytes {
        Amount::Fixed(bytes) => match bytes.get() % frame {
            rest if rest > 0.0 => rest,
            _ => frame,
        },
        Amount::Drawn(_) => 1.0,
    }
}

/// Returns the fewest bytes of a message in a local frame.
fn shortest_local_frame(point: &StreamsExperiment, frame: f64) -> f64 {
    let streams = point.workload.streams.iter().filter(|stream| stream.class == Class::Local);
    let lengths = streams.flat_map(|stream| std::iter::once(&stream.message_bytes).chain(&stream.answer_bytes));
    lengths.map(|bytes| last_frame(bytes, frame)).fold(frame, f64::min)
}

fn meets(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|host| other.contains(host))
}

#[derive(Clone, Copy, Default)]
struct Taken {
    frames: f64,
    /// Time on the link, s.
    own_s: f64,
    /// Time of parallel frames before theirs, per unit of the threshold, s.
    turns_s: f64,
}

/// Other local streams of a stream's host, and the total of what they have in flight.
#[derive(Default)]
struct Beside {
    names: Vec<String>,
    taken: Taken,
}

/// Returns the other local streams of a stream's host. `None` if their messages in flight have no bound, or if frames
/// of the host meet those of others elsewhere, so that more than its own output delays its local queue.
fn beside(point: &StreamsExperiment, local: &Stream, links: &Links, turn: &Turn) -> Option<Beside> {
    let streams = &point.workload.streams;
    let host = std::slice::from_ref(&local.from);
    let leaves = |leg: &Leg<'_>| meets(leg.from, host);
    let locals = || streams.iter().filter(|stream| stream.class == Class::Local);
    let receivers: Vec<u32> =
        locals().flat_map(|stream| legs(stream, links)).filter(leaves).flat_map(|leg| leg.to.to_vec()).collect();
    let mut all = streams.iter().flat_map(|stream| legs(stream, links));
    if !all.all(|leg| !meets(leg.to, &receivers) || leg.from == host) {
        return None;
    }
    let mut found = Beside::default();
    for other in locals().filter(|other| other.name != local.name) {
        let lengths = std::iter::once(&other.message_bytes).chain(&other.answer_bytes);
        for (leg, bytes) in legs(other, links).zip(lengths).filter(|(leg, _)| leaves(leg)) {
            let Amount::Fixed(bytes) = bytes else { return None };
            let messages = other.at_once()? as f64 * leg.to.len() as f64;
            let more = turn.taken(messages, bytes.get(), links);
            let Taken { frames, own_s, turns_s } = &mut found.taken;
            (*frames, *own_s, *turns_s) = (*frames + more.frames, *own_s + more.own_s, *turns_s + more.turns_s);
            found.names.push(other.name.clone());
        }
    }
    Some(found)
}

/// Computes the guarantees of the queues of one point.
///
/// The wait applies to a frame that is first in its queue and has a credit. Beyond it, in the switch, frames of all
/// hosts go in order of arrival. A stream is guaranteed a slowdown if it has one message of fixed length to one host in
/// flight at a time, and if frames of other hosts meet neither it nor other local streams of its host. What those have
/// in flight is counted: it may precede each of the stream's messages.
///
/// # Errors
/// The slowdown is below 1.
///
/// # Examples
/// ```
/// use crosswind_model::streams::promise;
/// use crosswind_schema::StreamsExperiment;
/// let point = StreamsExperiment::from_toml(br#"
///     schema_version = 1
///     name = "sending side"
///     policy = { queue = "threshold", threshold = 4 }
///     [workload]
///     kind = "streams"
///     hosts = 3
///     stream = [
///         { name = "A", class = "parallel", from = 0, to = 1, message_bytes = 64 },
///         { name = "local", class = "local", from = 0, to = 2, message_bytes = 16384, arrivals = "backlogged" },
///     ]"#, "e.toml")?;
/// let promised = promise(&point, 4.0)?;
/// assert_eq!(promised.least_share, 0.2);
/// assert_eq!(promised.streams[0].threshold, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn promise(point: &StreamsExperiment, slowdown: f64) -> Result<Promise, ModelError> {
    let links = point.network.links();
    let turn = Turn::of(point, &links);
    let policy = &point.policy;
    let credit_wait_s = (policy.credits == CreditRule::Receiver).then(|| {
        // A round trip, behind a full buffer of the switch and, if the window has just become small, everything in
        // flight, each frame of which waits for its turn at the receiver; or the time that makes up for a lost frame.
        let slowest = turn.frame_s.max(links.host_s_per_frame.get()) / turn.frame_s;
        let under_way = (policy.receive_frames.get() as f64 + 1.0) * (turn.frame_s + turn.wait_s());
        let buffered = links.buffer_frames.get() as f64 * turn.frame_s;
        (2.0 * links.latency_s.get() + (buffered + under_way) * slowest).max(policy.idle_s.get())
    });
    // With windows, or a queue of one frame, a message arrives in parts, each of which may find a frame on the link.
    // The closed form does not cover hosts that take time.
    let whole = links.window_bytes.is_none() && links.buffer_frames.get() > 1;
    let plain = whole && links.processor.is_none() && links.host_s_per_frame.get() == 0.0;
    let lossless = links.transport == Transport::Reliable && point.workload.jobs.is_empty() && plain;
    let queued = matches!(policy.queue, Discipline::Threshold | Discipline::Drr) && !policy.literal;
    let mut streams = Vec::new();
    for stream in point.workload.streams.iter().filter(|stream| stream.class == Class::Local) {
        let Amount::Fixed(bytes) = &stream.message_bytes else { continue };
        let alone = stream.at_once() == Some(1) && stream.answer_bytes.is_none() && stream.to.hosts().len() == 1;
        let promised = lossless && queued && alone && policy.credits == CreditRule::None;
        if !promised {
            continue;
        }
        let Some(beside) = beside(point, stream, &links, &turn) else { continue };
        let mut cycle = cycle(stream, &links);
        // Nothing is timed after the last message, so neither time includes the last gap.
        cycle.rest_s = (cycle.rest_s - stream.mean_gap_s() / stream.messages.get() as f64).max(0.0);
        let own = turn.taken(1.0, bytes.get(), &links);
        // The excess of a turn is lost with each frame that goes because there is no parallel one, and such a frame
        // waited for none. It thus occurs with every second frame at most.
        let kept = ((own.frames + beside.taken.frames) / 2.0).ceil() * turn.kept_s;
        let first_s = turn.frame_s + kept + beside.taken.own_s;
        let turns_s = own.turns_s + beside.taken.turns_s;
        let most = promised_threshold(cycle, first_s, turns_s, slowdown)?;
        streams.push(PromisedStream {
            name: stream.name.clone(),
            beside: beside.names,
            slowdown: local_slowdown(cycle, first_s, turns_s, turn.threshold)?,
            // A quotient that is whole up to rounding counts as whole.
            threshold: (most + 1e-9).floor().min(f64::from(u32::MAX)) as u32,
        });
    }
    let least_share = 1.0 / (1.0 + turn.threshold * turn.per_time);
    Ok(Promise { longest_wait_s: turn.wait_s(), least_share, credit_wait_s, streams })
}
