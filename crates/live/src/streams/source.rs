//! Generator of a stream's messages: a thread that starts operations when they are due and records when they are complete.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crosswind_schema::experiment::streams::{MessageDraws, Stream};

use super::Shared;
use super::hosts::Hosts;
use super::sink::{Arrived, Expected, receive, write};
use crate::error::LiveError;
use crosswind_linux::{exact_timers, now_ns, readable, wait, watch};

/// Measurements of the timed operations of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    /// Time from the start until the last operation was complete, s.
    pub seconds: f64,
    pub latencies_s: Vec<f64>,
    /// Bytes of all timed operations, including answers.
    pub bytes: u64,
}

struct Way {
    stream: TcpStream,
    to_sink: Sender<Expected>,
    to_reader: Option<Sender<Expected>>,
}

/// State of the generator's thread.
pub(super) struct Source {
    ways: Vec<Way>,
    threads: Vec<JoinHandle<()>>,
    arrived: Receiver<Arrived>,
    draws: MessageDraws,
    at_once: Option<u64>,
    timed: u64,
    name: String,
}

struct UnderWay {
    begun_ns: u64,
    left: usize,
    gap_ns: u64,
}

/// Poll interval for the end of the run.
const LOOK: Duration = Duration::from_millis(20);
/// Longest time for a connection through two filters, ns.
const ARRIVAL_NS: u64 = 10_000_000_000;
/// Zeros, of which messages consist.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Accepts a connection, if one arrives within the time that a filter takes to reach a target.
fn accept(sink: &TcpListener) -> std::io::Result<TcpStream> {
    let mut watched = [watch(sink.as_raw_fd(), true, false)];
    wait(&mut watched, Some(ARRIVAL_NS))?;
    if !readable(&watched[0]) {
        return Err(std::io::ErrorKind::TimedOut.into());
    }
    sink.accept().map(|(stream, _)| stream)
}

impl Source {
    /// Connects a stream through the hosts' filters. `place` is its index in the experiment, `at` its index in the
    /// measurement.
    pub fn connect(stream: &Stream, place: usize, seed: u64, hosts: &Hosts, at: usize) -> Result<Self, LiveError> {
        let (to_us, arrived) = channel();
        let mut threads = Vec::new();
        let mut ways = Vec::new();
        let failed = |what: &str| LiveError::system(format!("{what} of stream {:?}", stream.name));
        for way in hosts.ways(at) {
            let out = way.connect().map_err(failed("connecting the source"))?;
            let into = accept(&way.sink).map_err(failed("connecting the sink"))?;
            for socket in [&out, &into] {
                socket.set_nodelay(true).map_err(failed("connecting"))?;
            }
            let mut spawn = |stream: TcpStream| {
                let (sender, expected) = channel();
                let to_us = to_us.clone();
                let work = move || {
                    receive(stream, &expected, &to_us);
                };
                let thread = std::thread::Builder::new().name("sink".into()).spawn(work);
                threads.push(thread.map_err(failed("starting a thread"))?);
                Ok::<_, LiveError>(sender)
            };
            let to_sink = spawn(into)?;
            let to_reader = match stream.answer_bytes {
                Some(_) => Some(spawn(out.try_clone().map_err(failed("connecting"))?)?),
                None => None,
            };
            ways.push(Way { stream: out, to_sink, to_reader });
        }
        let draws = MessageDraws::new(stream, place, seed);
        let (at_once, timed, name) = (stream.at_once(), stream.messages.get(), stream.name.clone());
        Ok(Self { ways, threads, arrived, draws, at_once, timed, name })
    }

    /// Generates messages until all streams have completed their timed operations.
    pub fn run(mut self, shared: &Shared, begin: &Receiver<()>) -> Result<Operations, LiveError> {
        exact_timers();
        if begin.recv().is_err() {
            return Err(LiveError::Interrupted);
        }
        let start = now_ns();
        let mut found = Operations::default();
        let mut due: BinaryHeap<Reverse<u64>> = (0..self.at_once.unwrap_or(1)).map(|_| Reverse(start)).collect();
        let mut under_way: HashMap<u64, UnderWay> = HashMap::new();
        let (mut begun, mut timed_left) = (0u64, self.timed);
        let mut broken = false;
        while !shared.over.load(Ordering::Acquire) && !broken {
            let now = now_ns();
            if let Some(&Reverse(at)) = due.peek().filter(|at| at.0 <= now) {
                due.pop();
                let timed = begun < self.timed;
                let (bytes, gap_ns) = self.begin(begun).unwrap_or_else(|| {
                    broken = true;
                    (0, 0)
                });
                found.bytes += if timed { bytes } else { 0 };
                // Open loop: latency and gap count from the due time. Closed loop: latency counts from now, the gap from
                // completion.
                let begun_ns = if self.at_once.is_none() { at } else { now };
                if self.at_once.is_none() {
                    due.push(Reverse(at + gap_ns));
                }
                under_way.insert(begun, UnderWay { begun_ns, left: self.ways.len(), gap_ns });
                begun += 1;
                // Completions are processed before the next operation begins.
                while let Ok(arrived) = self.arrived.try_recv() {
                    self.on_arrival(arrived, start, shared, &mut found, &mut due, &mut under_way, &mut timed_left);
                }
                continue;
            }
            let patience = due.peek().map_or(LOOK, |at| Duration::from_nanos(at.0.saturating_sub(now)).min(LOOK));
            match self.arrived.recv_timeout(patience) {
                Ok(arrived) => {
                    self.on_arrival(arrived, start, shared, &mut found, &mut due, &mut under_way, &mut timed_left)
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => broken = true,
            }
        }
        let Self { ways, threads, name, .. } = self;
        for way in &ways {
            // This ends a thread that is blocked on the connection.
            let _ = way.stream.shutdown(std::net::Shutdown::Both);
        }
        drop(ways);
        for thread in threads {
            // The thread has no result. Messages that it did not report have not arrived.
            let _ = thread.join();
        }
        if timed_left > 0 && !shared.over.load(Ordering::Acquire) {
            return Err(LiveError::Lost(format!("stream {name:?} was cut off with {timed_left} messages left")));
        }
        Ok(found)
    }

    /// Starts an operation. Returns its bytes, including answers, and its gap. `None` if a connection has failed.
    fn begin(&mut self, operation: u64) -> Option<(u64, u64)> {
        let mut total = 0;
        let messages: Vec<u64> = self.ways.iter().map(|_| self.draws.bytes()).collect();
        let answers: Vec<Option<u64>> = self.ways.iter().map(|_| self.draws.answer_bytes()).collect();
        let gap_ns = self.draws.gap_ns();
        for ((way, &bytes), &answer) in self.ways.iter_mut().zip(&messages).zip(&answers) {
            total += bytes + answer.unwrap_or(0);
            if let (Some(reader), Some(answer)) = (&way.to_reader, answer) {
                reader.send(Expected { operation, bytes: answer, answer: None }).ok()?;
            }
            way.to_sink.send(Expected { operation, bytes, answer }).ok()?;
            if !write(&mut way.stream, bytes, &ZEROS) {
                return None;
            }
        }
        Some((total, gap_ns))
    }

    #[allow(clippy::too_many_arguments)] // the loop's state, as separate borrows
    fn on_arrival(
        &self,
        arrived: Arrived,
        start: u64,
        shared: &Shared,
        found: &mut Operations,
        due: &mut BinaryHeap<Reverse<u64>>,
        under_way: &mut HashMap<u64, UnderWay>,
        timed_left: &mut u64,
    ) {
        let Arrived { operation, at_ns } = arrived;
        let Some(one) = under_way.get_mut(&operation) else { return };
        one.left -= 1;
        if one.left > 0 {
            return;
        }
        let (begun_ns, gap_ns) = (one.begun_ns, one.gap_ns);
        under_way.remove(&operation);
        if self.at_once.is_some() {
            due.push(Reverse(at_ns + gap_ns));
        }
        if operation < self.timed {
            shared.moved_ns.store(at_ns, Ordering::Relaxed);
            found.latencies_s.push(at_ns.saturating_sub(begun_ns) as f64 * 1e-9);
            found.seconds = found.seconds.max(at_ns.saturating_sub(start) as f64 * 1e-9);
            *timed_left -= 1;
            if *timed_left == 0 {
                shared.left.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}
