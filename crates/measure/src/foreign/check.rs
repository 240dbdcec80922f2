//! Conformance test of a probe: runs the protocol step by step against a peer on loopback and reports what is wrong.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crosswind_access::Access;
use serde::Serialize;

use super::causes::Threads;
use super::counter::Counter;
use super::flows::Flows;
use super::lines::{Answer, Compute};
use super::process::{PATIENCE, Process};
use crate::config::{ChannelConfig, Config, Direction, ForeignConfig, KernelConfig, PacedBy, Placement, Wait};
use crate::error::MeasureError;
use crate::link::PeerLink;
use crate::peer;
use crosswind_linux::process_cpu_ns;

/// Result of one step of the test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub step: &'static str,
    /// ok, wrong, or note: it works, but costs precision.
    pub verdict: Verdict,
    /// The finding, in a sentence.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Conforms to the protocol, but costs precision.
    Note,
    Wrong,
}

/// Rate requested of both directions, MB/s; any runtime reaches it.
const RATE_MB_PER_S: f64 = 20.0;
/// Fraction of that rate below which the step adds a note: the host is busy, or the runtime's scheduler computes
/// instead.
const LOW: f64 = 0.5;
const LOOKED_AT: Duration = Duration::from_millis(400);
/// Time limit for a connection to end or fall silent; a crowded host takes its time.
const TO_REST: Duration = Duration::from_secs(3);
/// Fewer steps per second cannot be counted within a block of 40 ms.
const LEAST_STEPS_PER_S: f64 = 500.0;
const MESSAGE_BYTES: u64 = 100_000;

/// Tests a probe. Stops at the first failure that makes later steps meaningless.
#[must_use]
pub fn check(probe: &ForeignConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listener = match peer::listen("127.0.0.1:0", &Access::default()) {
        Ok(listener) => listener,
        Err(error) => return vec![wrong("peer", error.to_string())],
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| peer::serve(&listener, &Access::default(), || over.load(Ordering::Relaxed)));
        if let Err(error) = go_through(probe, &listener, &mut findings) {
            findings.push(error);
        }
        over.store(true, Ordering::Relaxed);
    });
    findings
}

fn wrong(step: &'static str, message: String) -> Finding {
    Finding { step, verdict: Verdict::Wrong, message }
}

fn failed(step: &'static str) -> impl FnOnce(MeasureError) -> Finding {
    move |error| wrong(step, error.to_string())
}

fn go_through(probe: &ForeignConfig, listener: &TcpListener, findings: &mut Vec<Finding>) -> Result<(), Finding> {
    let ForeignConfig { command, environment, own_work, .. } = probe;
    let config = config(probe, listener).map_err(failed("peer"))?;
    let mut note = |step, verdict, message: String| findings.push(Finding { step, verdict, message });

    if command.is_empty() {
        return Err(wrong("start", "the command is empty".into()));
    }
    let mut process = Process::start(command, environment, &[], 0).map_err(failed("start"))?;
    let counter = Counter::new().map_err(|error| wrong("start", error.to_string()))?;
    let hello = process.hello(counter.path()).map_err(failed("hello"))?;
    note("hello", Verdict::Ok, format!("{} {}, {} facts", hello.name, hello.version, hello.facts.len()));

    match process.answer("nonsense 1 2", PATIENCE).map_err(failed("unknown request"))? {
        Answer::Error(_) => note("unknown request", Verdict::Ok, "answers `error` and continues".into()),
        Answer::Ok(_) => return Err(wrong("unknown request", "answers `ok` to a request that does not exist".into())),
    }

    let diagonals = Compute::Kernel { name: "diagonals".into(), sizes: vec![256, 1] };
    let work = if *own_work { &Compute::Own } else { &diagonals };
    let steps_per_unit = process.compute(work).map_err(failed("compute"))?;
    if counter.steps() == 0 {
        return Err(wrong("compute", "answers before the counter shows its first step".into()));
    }
    let rate = steps_per_s(&counter).map_err(|why| wrong("compute", why))?;
    note("compute", Verdict::Ok, format!("{rate:.0} steps/s, {steps_per_unit} steps in a unit of work"));
    if rate < LEAST_STEPS_PER_S {
        let message =
            format!("{rate:.0} steps/s; below {LEAST_STEPS_PER_S:.0} a block of 40 ms counts too few: smaller steps");
        note("compute", Verdict::Note, message);
    }

    let sock_diag = |error| wrong("flow", format!("the kernel does not count connections for others: {error}"));
    let mut flows = Flows::none().map_err(sock_diag)?;
    for round in ["flow", "flow after close"] {
        let specs = config.channels.iter().map(|channel| config.channel_spec(channel.direction)).collect();
        let mut peer = PeerLink::open(&config.peers[0], specs, &Access::default()).map_err(failed("peer"))?;
        for (place, channel) in config.channels.iter().enumerate() {
            flows.open(&mut process, &config, &mut peer, place, channel.direction).map_err(failed(round))?;
        }
        for (place, channel) in config.channels.iter().enumerate() {
            let moved = moved(&mut process, &mut flows, &mut peer, place).map_err(failed(round))?;
            let way = if channel.direction == Direction::Send { "sends" } else { "receives" };
            let (rate, silent) = moved;
            if rate <= 0.0 {
                return Err(wrong(round, format!("{way} nothing where the peer keeps {RATE_MB_PER_S} MB/s")));
            }
            if !silent {
                return Err(wrong(round, format!("{way} on at silence, {} s long", TO_REST.as_secs())));
            }
            let verdict = if rate < LOW * RATE_MB_PER_S { Verdict::Note } else { Verdict::Ok };
            note(round, verdict, format!("{way} {rate:.1} of {RATE_MB_PER_S} MB/s, nothing at silence"));
        }
        if round == "flow" {
            let mut threads = Threads::of(process.number());
            threads.look();
            if !threads.names_both() {
                let message = "no threads named cw-compute and cw-traffic: CPU time is not told apart by cause".into();
                note("thread names", Verdict::Note, message);
            }
            if !flows.sockets_set() {
                let message = "the system does not let a process set its child's socket buffers".into();
                note("sockets", Verdict::Note, message);
            }
        }
        process.close().map_err(failed("close"))?;
        let deadline = Instant::now() + TO_REST;
        while flows.bytes().is_ok() {
            if Instant::now() > deadline {
                return Err(wrong("close", "answers, but its connections are still there".into()));
            }
            sleep(Duration::from_millis(5));
        }
        flows.give_up();
        sleep(Duration::from_millis(50));
        process.check().map_err(failed("close"))?;
    }
    note("close", Verdict::Ok, "ends its connections, and says nothing of it".into());
    steps_per_s(&counter).map_err(|why| wrong("close", why))?;

    let before = process_cpu_ns(process.number());
    if before.is_err() || !process.quit() {
        return Err(wrong("quit", "does not end within 2 s of `quit`".into()));
    }
    match process.status().and_then(|status| status.code()) {
        Some(0) => note("quit", Verdict::Ok, "ends with exit status 0".into()),
        status => note("quit", Verdict::Note, format!("ends with exit status {status:?}, not 0")),
    }

    let mut process = Process::start(command, environment, &[], 0).map_err(failed("end of input"))?;
    process.hello(counter.path()).map_err(failed("end of input"))?;
    process.compute(work).map_err(failed("end of input"))?;
    if !process.close_input() {
        return Err(wrong("end of input", "does not end within 2 s when its input is closed".into()));
    }
    note("end of input", Verdict::Ok, "ends when its input is closed".into());
    Ok(())
}

fn steps_per_s(counter: &Counter) -> Result<f64, String> {
    let (start, mut last) = (counter.steps(), counter.steps());
    let from = Instant::now();
    while from.elapsed() < LOOKED_AT {
        let now = counter.steps();
        if now < last {
            return Err(format!("the counter goes back, from {last} to {now}"));
        }
        last = now;
        sleep(Duration::from_millis(1));
    }
    if last == start {
        return Err("the counter stands still: it must grow by 1 with each step".into());
    }
    Ok((last - start) as f64 / from.elapsed().as_secs_f64())
}

/// Returns a channel's MB/s at the rate, and whether nothing moves at silence.
fn moved(
    process: &mut Process,
    flows: &mut Flows,
    peer: &mut PeerLink,
    channel: usize,
) -> Result<(f64, bool), MeasureError> {
    let count = |flows: &Flows| {
        let bytes = flows.bytes().map_err(MeasureError::system("counting a connection's bytes"));
        bytes.map(|bytes| bytes[channel])
    };
    let mut set = |flows: &mut Flows, rate: f64| {
        let levels: Vec<Option<f64>> = (0..2).map(|at| Some(if at == channel { rate } else { 0.0 })).collect();
        peer.set_levels(levels.clone())?;
        flows.set_levels(&levels).map_err(MeasureError::system("counting a connection's bytes"))
    };
    set(flows, RATE_MB_PER_S)?;
    sleep(LOOKED_AT / 2); // buffers fill, loops warm up
    let (start, from) = (count(flows)?, Instant::now());
    let deadline = from + TO_REST;
    while from.elapsed() < LOOKED_AT || (count(flows)? == start && Instant::now() < deadline) {
        sleep(LOOKED_AT / 8);
    }
    let rate = (count(flows)? - start) as f64 * 1e-6 / from.elapsed().as_secs_f64();
    set(flows, 0.0)?;
    let deadline = Instant::now() + TO_REST;
    let silent = loop {
        let before = count(flows)?;
        sleep(LOOKED_AT / 2);
        if count(flows)? == before {
            break true;
        }
        if Instant::now() > deadline {
            break false;
        }
    };
    process.check()?;
    Ok((rate, silent))
}

fn config(probe: &ForeignConfig, listener: &TcpListener) -> Result<Config, MeasureError> {
    let address = listener.local_addr().map_err(MeasureError::system("listening"))?;
    let channel = |direction| ChannelConfig { peer: 0, direction };
    Ok(Config {
        kernel: KernelConfig {
            name: "diagonals".into(),
            matrix: 256,
            diagonals: 1,
            task: None,
            foreign: Some(probe.clone()),
        },
        peers: vec![address.to_string()],
        channels: vec![channel(Direction::Receive), channel(Direction::Send)],
        loaders: Vec::new(),
        message_bytes: MESSAGE_BYTES,
        streams: 2,
        wait: Wait::Event,
        paced_by: PacedBy::Peer,
        pacing_chunk_bytes: 65_536,
        socket_buffer_bytes: Some(1 << 18),
        congestion_control: None,
        placement: Placement::default(),
    })
}
