//! What the queues of an experiment of kind streams promise the local class, whatever the parallel class sends.

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
    /// The longest that the first local frame of an interface waits for parallel ones, s; infinite where they always go first.
    pub longest_wait_s: f64,
    /// The least part of a link's time that local frames get while they wait.
    pub least_share: f64,
    /// With credits: the longest that a local sender waits for one, s.
    pub credit_wait_s: Option<f64>,
    /// Local streams whose slowdown can be promised.
    pub streams: Vec<PromisedStream>,
}

/// What one local stream is promised, whatever the parallel class sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromisedStream {
    pub name: String,
    /// The other local streams that send from its host: each has as much under way as the experiment says, and no more.
    pub beside: Vec<String>,
    /// The most that it is slowed down.
    pub slowdown: f64,
    /// The largest threshold with which it is slowed down by no more than asked for; 0 where none promises that.
    pub threshold: u32,
}

/// How a threshold tells in time: by frames, or by bytes, of frames that take a whole frame's time or that of their own bytes.
struct Turn {
    /// A whole frame on a link, without its host.
    frame_s: f64,
    threshold: f64,
    /// Whether it is by bytes; where all frames take the same time it is by frames.
    by_bytes: bool,
    /// The time of a parallel frame, of the longest ones, to that of a local one, of the shortest, for each of the threshold.
    per_time: f64,
    /// What may go in one turn beyond that, s: it counts for the next, unless a local frame goes in between for want of a parallel one.
    kept_s: f64,
    /// What the host takes for the frames of one turn, s: short ones, where it is by bytes.
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
            // A local frame of full length beside as many bytes in frames of one.
            (true, _) => frame * (frame_s / frame + host_s) / (frame_s + host_s),
            (false, true) => 1.0,
            // By frames, a short one counts as much as a long one.
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

    /// The longest that a local frame waits for parallel ones once it is first, s.
    fn wait_s(&self) -> f64 {
        self.threshold * self.frame_s + self.kept_s + self.hosts_s
    }

    /// So many messages of a length.
    fn taken(&self, messages: f64, bytes: f64, links: &Links) -> Taken {
        let frames = messages * (bytes / links.frame_bytes.get() as f64).ceil();
        let own_s = if links.pad { frames * self.frame_s } else { messages * bytes * 1e-6 / links.link_mb_per_s.get() };
        Taken { frames, own_s, turns_s: if self.by_bytes { own_s } else { frames * self.frame_s } }
    }
}

/// Bytes of a message's last frame, the shortest; 1 where lengths are drawn.
fn last_frame(bytes: &Amount<Bytes>, frame: f64) -> f64 {
    match bytes {
        Amount::Fixed(bytes) => match bytes.get() % frame {
            rest if rest > 0.0 => rest,
            _ => frame,
        },
        Amount::Drawn(_) => 1.0,
    }
}

/// Fewest bytes of a message in a local frame.
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
    /// On the link, s.
    own_s: f64,
    /// What goes for each of the threshold before their frames, s.
    turns_s: f64,
}

/// What other local streams send from a stream's host, and all that they have under way at once.
#[derive(Default)]
struct Beside {
    names: Vec<String>,
    taken: Taken,
}

/// The other local streams of a stream's host; none where what they have under way has no bound, or where frames of a host meet those of
/// others elsewhere, so that more than its own output keeps its local queue waiting.
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

/// What the queues of one point promise.
///
/// The wait is of a frame that is the first of its queue and has credit. Beyond it, in the switch, frames of all hosts go in the order in which they come.
/// Streams are promised a slowdown where one message of fixed length, to one host, is under way at once, and where frames of other hosts meet
/// neither it nor other local streams of its host. What those have under way is counted: it may stand before each of its messages.
///
/// # Errors
/// A slowdown below 1.
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
        // A round trip, behind a full buffer of the switch and, when the window has just become small, all that was under way, each
        // frame of which waits for its turn with the receiver; or what makes good a lost frame.
        let slowest = turn.frame_s.max(links.host_s_per_frame.get()) / turn.frame_s;
        let under_way = (policy.receive_frames.get() as f64 + 1.0) * (turn.frame_s + turn.wait_s());
        let buffered = links.buffer_frames.get() as f64 * turn.frame_s;
        (2.0 * links.latency_s.get() + (buffered + under_way) * slowest).max(policy.idle_s.get())
    });
    // With windows, or a queue of one frame, a message comes in parts, each of which may find a frame on the link; hosts that take time are
    // not in the closed form.
    let whole = links.window_bytes.is_none() && links.buffer_frames.get() > 1;
    let plain = whole && links.processor.is_none() && links.host_s_per_frame.get() == 0.0;
    let lossless = links.transport == Transport::Reliable && point.workload.jobs.is_empty() && plain;
    let queued = matches!(policy.queue, Discipline::Threshold | Discipline::Drr) && !policy.literal;
    let mut streams = Vec::new();
    for stream in point.workload.streams.iter().filter(|stream| stream.class == Class::Local) {
        let Amount::Fixed(bytes) = stream.message_bytes else { continue };
        let alone = stream.at_once() == Some(1) && stream.answer_bytes.is_none() && stream.to.hosts().len() == 1;
        let promised = lossless && queued && alone && policy.credits == CreditRule::None;
        if !promised {
            continue;
        }
        let Some(beside) = beside(point, stream, &links, &turn) else { continue };
        let mut cycle = cycle(stream, &links);
        // Nothing is timed after the last message, so the last gap is in neither time.
        cycle.rest_s = (cycle.rest_s - stream.mean_gap_s() / stream.messages.get() as f64).max(0.0);
        let own = turn.taken(1.0, bytes.get(), &links);
        // What a turn keeps is lost with each frame that goes for want of a parallel one, which waited for none; so with every second at most.
        let kept = ((own.frames + beside.taken.frames) / 2.0).ceil() * turn.kept_s;
        let first_s = turn.frame_s + kept + beside.taken.own_s;
        let turns_s = own.turns_s + beside.taken.turns_s;
        let most = promised_threshold(cycle, first_s, turns_s, slowdown)?;
        streams.push(PromisedStream {
            name: stream.name.clone(),
            beside: beside.names,
            slowdown: local_slowdown(cycle, first_s, turns_s, turn.threshold)?,
            // A quotient that is whole but for rounding is whole.
            threshold: (most + 1e-9).floor().min(f64::from(u32::MAX)) as u32,
        });
    }
    let least_share = 1.0 / (1.0 + turn.threshold * turn.per_time);
    Ok(Promise { longest_wait_s: turn.wait_s(), least_share, credit_wait_s, streams })
}
