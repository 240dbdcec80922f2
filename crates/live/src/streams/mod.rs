//! Live streams of messages: generators on hosts of this machine, each host behind its own message filter.
//!
//! As in the simulator, three times are measured: each stream by itself (T1), all through one queue (T2), and all through
//! the queues of the policy (T3). All three use the same filters and thus include their cost (communication-interactions,
//! section 6.1). The filters emulate links ([`crate::filter::Rate`]); latency is this machine's own.
//!
//! With `policy.filter = "kernel"` the hosts are existing network namespaces, and the kernel of each has the queues.
//! Parallel packets then carry no mark in the measurements of T1 and T2.
//!
//! | question | module |
//! |---|---|
//! | which filters and ports does a measurement use? | `hosts` |
//! | when does a stream's next operation begin? | `source` |
//! | when has a message arrived? | `sink` |

mod hosts;
mod sink;
mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::experiment::streams::{FilterPlace, Links, Stream, Transport};
use crosswind_schema::streams_run::{Latencies, Latency, StreamOutcome, StreamsRun};
use crosswind_schema::units::Quantity;
use crosswind_schema::{StreamsExperiment, Warning};

use crate::error::LiveError;
use crosswind_linux::now_ns;
pub use hosts::NamespaceHost;
use hosts::{Hosts, Queues};
use source::{Operations, Source};

/// Maximum number of hosts, each with a filter on this machine.
pub const MOST_HOSTS: usize = 16;
/// Poll interval for a request to stop.
const LOOK: Duration = Duration::from_millis(20);
/// If no timed message arrives for this time, s, beyond gaps between operations and the time on links, none will.
const SILENCE_S: f64 = 10.0;
/// Mean lateness of frames, as a fraction of the longest frame's time, above which this machine does not keep up with the
/// links.
const LATE: f64 = 0.25;

/// State shared by all generators of one measurement.
struct Shared {
    /// Streams whose timed operations are not complete.
    left: AtomicUsize,
    over: AtomicBool,
    /// When the last timed operation was completed, ns. A stream with none left continues, but proves nothing about the
    /// others.
    moved_ns: AtomicU64,
}

/// The result of one measurement.
struct Measured {
    operations: Vec<Operations>,
    frames: u64,
    late_part: f64,
}

/// Runs one point. With `policy.filter = "kernel"` it uses hosts that are network namespaces.
///
/// # Errors
/// When the point has jobs or too many hosts, when messages no longer arrive (as with the printed credits), or when
/// `wanted` returns false.
pub fn run_streams(
    point: &StreamsExperiment,
    namespaces: &[NamespaceHost],
    wanted: &dyn Fn() -> bool,
) -> Result<StreamsRun, LiveError> {
    let links = point.network.links();
    let streams = &point.workload.streams;
    check(point, &links)?;
    let frame_bytes = links.frame_bytes.get() as u32;
    let in_kernel = point.policy.filter == FilterPlace::Kernel;
    let fifo = Queues { queue: QueueSettings::fifo(frame_bytes), credits: None };
    let queued = Queues {
        queue: QueueSettings::from_policy(&point.policy, frame_bytes, links.pad),
        credits: CreditSettings::from_policy(&point.policy),
    };
    let all: Vec<usize> = (0..streams.len()).collect();
    let mut alone = Vec::new();
    let measured = |places: &[usize], queues: &Queues, marked: bool| {
        let streams: Vec<&Stream> = places.iter().map(|&place| &point.workload.streams[place]).collect();
        let hosts = if in_kernel {
            Hosts::in_namespaces(namespaces, &streams, marked)?
        } else {
            Hosts::open(&links, &streams, queues)?
        };
        measure(point, &links, places, hosts, wanted)
    };
    for place in &all {
        alone.extend(measured(&[*place], &fifo, false)?.operations);
    }
    let together = measured(&all, &fifo, false)?;
    let separated = measured(&all, &queued, true)?;
    let mut warnings = warnings(&links);
    let late = together.late_part.max(separated.late_part);
    if late > LATE {
        let frame_us = links.frame_ns(frame_bytes) as f64 * 1e-3;
        let message =
            format!("frames left the emulated links late by {:.0} % of the {frame_us:.0} us each takes", 100.0 * late);
        let hint = "slower links, or longer frames: network.link_mb_per_s, network.frame_bytes";
        warnings.push(Warning::new("links-late", message, hint));
    }
    let makespan_s = separated.operations.iter().map(|one| one.seconds).fold(0.0, f64::max);
    // The kernel does not count packets per stream, so the number is computed from the timed bytes.
    let counted: u64 = separated.operations.iter().map(|one| one.bytes.div_ceil(u64::from(frame_bytes))).sum();
    let frames = if in_kernel { counted } else { separated.frames };
    let outcomes = streams.iter().zip(alone).zip(together.operations).zip(separated.operations);
    Ok(StreamsRun {
        params: Default::default(),
        seed: point.seed,
        hosts: point.workload.hosts.get() as u32,
        queue: point.policy.queue,
        makespan_s,
        streams: outcomes.map(|(((stream, alone), fifo), queued)| outcome(stream, alone, fifo, queued)).collect(),
        jobs: Vec::new(),
        bounds: Default::default(),
        frames,
        dropped: 0,
        warnings,
    })
}

fn outcome(stream: &Stream, mut alone: Operations, mut fifo: Operations, mut queued: Operations) -> StreamOutcome {
    StreamOutcome {
        name: stream.name.clone(),
        class: stream.class,
        messages: stream.messages.get(),
        bytes: alone.bytes,
        alone_s: alone.seconds,
        fifo_s: fifo.seconds,
        queued_s: queued.seconds,
        slowdown_fifo: fifo.seconds / alone.seconds,
        slowdown_queued: queued.seconds / alone.seconds,
        latency_s: Latencies {
            alone: Latency::of(&mut alone.latencies_s),
            fifo: Latency::of(&mut fifo.latencies_s),
            queued: Latency::of(&mut queued.latencies_s),
        },
    }
}

fn check(point: &StreamsExperiment, links: &Links) -> Result<(), LiveError> {
    let refused = |field: &str, value: String, permitted: &str| {
        Err(LiveError::Value { field: field.into(), value, permitted: permitted.into() })
    };
    if !point.workload.jobs.is_empty() {
        let jobs = point.workload.jobs.len();
        return refused("workload.job", format!("{jobs} jobs"), "absent on local: jobs run on sim");
    }
    let hosts = point.workload.hosts.get() as usize;
    if hosts > MOST_HOSTS {
        return refused("workload.hosts", hosts.to_string(), "at most 16 on local: each has a filter on this machine");
    }
    if point.policy.filter == FilterPlace::Kernel && links.pad {
        return refused(
            "network.pad",
            "true".into(),
            "false with policy.filter = \"kernel\", which counts the bytes there are",
        );
    }
    let frame = links.frame_bytes.get() as usize;
    if frame > crate::filter::wire::LARGEST {
        return refused("network.frame_bytes", format!("{frame} bytes"), "at most 262144 bytes on local");
    }
    Ok(())
}

fn warnings(links: &Links) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let hint = "compare with --on sim, which has it";
    if links.transport != Transport::Reliable {
        let message = "links that lose frames are the simulator's; here frames wait for room, whatever transport says";
        warnings.push(Warning::new("transport-not-emulated", message, hint));
    }
    if links.host_s_per_frame.get() > 0.0 {
        let message = "host_s_per_frame is the simulator's; here a frame costs what it costs";
        warnings.push(Warning::new("host-not-emulated", message, hint));
    }
    if links.processor.is_some() {
        let message = "network.processor is the simulator's; here messages take the processor time that they take";
        warnings.push(Warning::new("processor-not-emulated", message, hint));
    }
    if links.window_bytes.is_some() {
        let message = "network.window_bytes is the simulator's; here the kernel limits what a connection has out";
        warnings.push(Warning::new("window-not-emulated", message, hint));
    }
    warnings
}

/// Measures some of the streams together.
fn measure(
    point: &StreamsExperiment,
    links: &Links,
    places: &[usize],
    hosts: Hosts,
    wanted: &dyn Fn() -> bool,
) -> Result<Measured, LiveError> {
    let streams: Vec<&Stream> = places.iter().map(|&place| &point.workload.streams[place]).collect();
    let shared = Arc::new(Shared {
        left: AtomicUsize::new(streams.len()),
        over: AtomicBool::new(false),
        moved_ns: AtomicU64::new(now_ns()),
    });
    let mut connected = Vec::new();
    for (at, stream) in streams.iter().enumerate() {
        connected.push(Source::connect(stream, places[at], point.seed, &hosts, at)?);
    }
    let mut sources = Vec::new();
    let mut starts = Vec::new();
    for source in connected {
        let (start, begin) = channel();
        let shared = shared.clone();
        let work = move || source.run(&shared, &begin);
        let thread = std::thread::Builder::new().name("source".into()).spawn(work);
        sources.push(thread.map_err(LiveError::system("starting a generator"))?);
        starts.push(start);
    }
    for start in &starts {
        // A source that has ended already reports its error when it is joined.
        let _ = start.send(());
    }
    shared.moved_ns.store(now_ns(), Ordering::Relaxed);
    let longest_gap_s = streams.iter().map(|stream| stream.mean_gap_s()).fold(0.0, f64::max);
    let on_link_s = |stream: &&Stream| stream.message_bytes.mean() * 1e-6 / links.link_mb_per_s.get();
    let longest_s = streams.iter().map(on_link_s).fold(0.0, f64::max);
    let silence_ns = ((SILENCE_S + 20.0 * longest_gap_s + 100.0 * longest_s) * 1e9) as u64;
    let verdict = loop {
        if shared.left.load(Ordering::Acquire) == 0 {
            break Ok(());
        }
        if !wanted() {
            break Err(LiveError::Interrupted);
        }
        if now_ns().saturating_sub(shared.moved_ns.load(Ordering::Relaxed)) > silence_ns {
            let left = shared.left.load(Ordering::Relaxed);
            break Err(LiveError::Deadlock(format!(
                "no message that is timed has arrived for {:.0} s; {left} of {} streams have not got theirs",
                silence_ns as f64 * 1e-9,
                streams.len()
            )));
        }
        std::thread::sleep(LOOK);
    };
    shared.over.store(true, Ordering::Release);
    let (frames, late_part) = hosts.close(links);
    let mut operations = Vec::new();
    for thread in sources {
        operations.push(thread.join().map_err(|panic| LiveError::panicked("a generator's thread", &*panic))?);
    }
    verdict?;
    Ok(Measured { operations: operations.into_iter().collect::<Result<_, _>>()?, frames, late_part })
}
