//! Records this machine's own noise: when, on each CPU, a program that only computes is interrupted, and by what.
//!
//! | question | module |
//! |---|---|
//! | when was the processor away? | [`gaps`]: a loop per CPU that reads the clock |
//! | what had it meanwhile? | [`trace`] (the kernel's own), parsed by [`events`]; without it, only whether another thread did |
//! | did a quota withhold the CPU? | [`quota`] |
//! | what caused a gap? | [`blame`] |
//! | what is the result? | [`outcome`] |
//!
//! The method is that of the kernel's osnoise tracer: a loop that reads the clock, beside the kernel's events. Many
//! kernels are built without that tracer. This module does not depend on Python.

pub mod blame;
pub mod events;
pub mod gaps;
pub mod options;
pub mod outcome;
pub mod quota;
pub mod summary;
pub mod trace;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::blame::{Piece, Turns, is_own};
use self::events::{CauseId, LOOP, Names, OWN, UNKNOWN, WITHHELD};
use self::gaps::{Gap, Watch, watch_gaps};
use self::outcome::{CpuNoise, Means, Recording};
use self::quota::Quota;
use self::trace::{Trace, Traced};
use crate::DisturbError;
use crate::process::Process;
use crosswind_linux::now_ns;

#[derive(Clone, Debug)]
pub struct RecordConfig {
    pub length: Duration,
    pub cpus: Vec<usize>,
    /// Gaps shorter than this are dropped.
    pub threshold: Duration,
    /// Means of finding causes; `None`: the kernel's trace if available.
    pub means: Option<Means>,
}

/// Most pieces kept, of all CPUs together: a file of 100 MB.
const MOST_PIECES: usize = 2_000_000;
/// Interval between reads of the kernel's trace.
const DRAIN: Duration = Duration::from_millis(250);
/// Lead time before the common start of all loops, ns.
const AHEAD_NS: u64 = 20_000_000;

/// Causes that are distinguished without a trace.
const PREEMPTED: &str = "another thread";
const INTERRUPTED: &str = "interrupt or hypervisor";

/// A running recording, on threads of its own.
#[derive(Debug)]
pub struct Recorder {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Recording, DisturbError>>>,
    began: Instant,
}

impl Recorder {
    /// Starts the recording.
    ///
    /// # Errors
    /// When no CPU is given or the length is zero.
    pub fn start(config: RecordConfig) -> Result<Self, DisturbError> {
        if config.cpus.is_empty() || config.length.is_zero() {
            return Err(DisturbError::Setup("there is no CPU or no time to record".into()));
        }
        let over = Arc::new(AtomicBool::new(false));
        let own_over = over.clone();
        let thread = std::thread::spawn(move || record(&config, &own_over));
        Ok(Self { over, thread: Some(thread), began: Instant::now() })
    }

    /// Ends it early; the recording so far is kept.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Waits for its end, at most `most`. Returns whether it has ended.
    #[must_use]
    pub fn wait(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while !self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // More frequent checks would cause noise.
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        true
    }

    /// Returns the seconds since its start.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits for the end and takes the recording.
    ///
    /// # Errors
    /// The failure; nothing of the recording is kept.
    pub fn recording(&mut self) -> Result<Recording, DisturbError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(DisturbError::Setup("the thread that records broke down".into())),
            None => Err(DisturbError::Setup("the recording was taken already".into())),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
            let _ = self.recording(); // the result is no longer needed
        }
    }
}

/// Records everything, on a thread whose mount namespace may change.
fn record(config: &RecordConfig, over: &Arc<AtomicBool>) -> Result<Recording, DisturbError> {
    let (mut traced, no_trace) = match config.means {
        Some(Means::Loop) => (None, None),
        wanted => match Traced::start(|instance| Trace::start(instance, &config.cpus)) {
            Ok(traced) => (Some(traced), None),
            Err(why) if wanted.is_some() => {
                return Err(DisturbError::Setup(format!("the kernel's trace cannot be had here: {why}")));
            }
            Err(why) => (None, Some(why)),
        },
    };
    let result = watch_all(config, over, traced.as_mut().map(|traced| &mut traced.trace));
    if let Some(traced) = traced {
        traced.end();
    }
    result.map(|recording| Recording { no_trace, ..recording })
}

/// Runs a loop on each CPU, while this thread compares their gaps with the kernel's trace.
fn watch_all(
    config: &RecordConfig,
    over: &Arc<AtomicBool>,
    mut trace: Option<&mut Trace>,
) -> Result<Recording, DisturbError> {
    let from_ns = now_ns() + AHEAD_NS;
    let until_ns = from_ns.saturating_add(u64::try_from(config.length.as_nanos()).unwrap_or(u64::MAX / 4));
    let quota = Quota::own();
    let throttled_before = quota.throttled();
    let (to, from) = channel();
    let (to_loops, loops) = channel();
    let threads: Vec<JoinHandle<Result<u64, DisturbError>>> = config
        .cpus
        .iter()
        .map(|cpu| {
            let watch = Watch {
                cpu: *cpu,
                from_ns,
                until_ns,
                threshold_ns: u64::try_from(config.threshold.as_nanos()).unwrap_or(u64::MAX),
                asks: trace.is_none(),
                quota: quota.clone(),
            };
            let cpu = *cpu;
            let (over, to, to_loops) = (over.clone(), to.clone(), to_loops.clone());
            std::thread::spawn(move || {
                let _ = to_loops.send(crosswind_linux::thread_id()); // if the receiver is gone, it does not need this thread's id
                watch_gaps(watch, &over, &to).map_err(DisturbError::system(format!("CPU {cpu}")))
            })
        })
        .collect();
    drop((to, to_loops));
    let loops: HashSet<i32> = loops.iter().collect();
    let mut matching = Matching::new(config, from_ns, loops, trace.is_none());
    loop {
        let ended = threads.iter().all(JoinHandle::is_finished);
        matching.take_gaps(&from);
        if let Some(trace) = trace.as_deref_mut() {
            let read_ns = now_ns();
            matching.take_turns(trace)?;
            matching.cut_before(if ended { u64::MAX } else { read_ns });
        } else {
            matching.cut_before(u64::MAX);
        }
        if matching.pieces() >= MOST_PIECES {
            matching.full = true;
            over.store(true, Ordering::Relaxed);
        }
        if ended {
            break;
        }
        std::thread::sleep(DRAIN);
    }
    let mut end_ns = until_ns;
    for thread in threads {
        let ended = thread.join().map_err(|_| DisturbError::Setup("a loop broke down".into()))??;
        end_ns = end_ns.min(ended);
    }
    let lost_events = trace.as_ref().map_or(0, |trace| trace.lost());
    let means = if trace.is_some() { Means::Trace } else { Means::Loop };
    let throttled = quota.throttled().saturating_sub(throttled_before);
    let recording = matching.recording(end_ns, means, lost_events, end_ns < until_ns);
    Ok(Recording { throttled, ..recording })
}

/// Matches gaps with the scheduler's records of what ran.
struct Matching {
    from_ns: u64,
    names: Names,
    loops: HashSet<i32>,
    /// For each CPU: gaps not yet cut, the kernel's turns, and the resulting pieces.
    cpus: BTreeMap<usize, (VecDeque<Gap>, Turns, Vec<Piece>)>,
    /// Without a trace: the causes of a gap in which another thread had the CPU, and of one in which none had.
    asked: Option<(CauseId, CauseId)>,
    full: bool,
}

impl Matching {
    fn new(config: &RecordConfig, from_ns: u64, loops: HashSet<i32>, asks: bool) -> Self {
        let mut names = Names::with_processes(Process::of_thread);
        let asked = asks.then(|| (names.place(PREEMPTED), names.place(INTERRUPTED)));
        let cpus = config.cpus.iter().map(|cpu| (*cpu, Default::default())).collect();
        Self { from_ns, names, loops, cpus, asked, full: false }
    }

    fn take_gaps(&mut self, from: &Receiver<(usize, Vec<Gap>)>) {
        for (cpu, gaps) in from.try_iter() {
            if let Some((waiting, ..)) = self.cpus.get_mut(&cpu) {
                waiting.extend(gaps);
            }
        }
    }

    fn take_turns(&mut self, trace: &mut Trace) -> Result<(), DisturbError> {
        let ours: HashSet<i32> = threads_of_this_process();
        let (loops, cpus) = (&self.loops, &mut self.cpus);
        let cause = |thread: i32| {
            if loops.contains(&thread) { Some(LOOP) } else { ours.contains(&thread).then_some(OWN) }
        };
        let hand = |cpu: usize, turn| {
            if let Some((_, turns, _)) = cpus.get_mut(&cpu) {
                turns.push(turn);
            }
        };
        trace.drain(&mut self.names, cause, hand).map_err(DisturbError::system("the kernel's trace"))
    }

    /// Cuts the gaps that ended before `time_ns`: all turns up to then are known.
    fn cut_before(&mut self, time_ns: u64) {
        for (waiting, turns, pieces) in self.cpus.values_mut() {
            while let Some(gap) = waiting.front().copied().filter(|gap| gap.end_ns < time_ns) {
                waiting.pop_front();
                match self.asked {
                    None => turns.pieces(gap, pieces),
                    Some((preempted, interrupted)) => {
                        let cause = match (gap.throttled, gap.preempted) {
                            (true, _) => WITHHELD,
                            (false, true) => preempted,
                            (false, false) => interrupted,
                        };
                        pieces.push(Piece { start_ns: gap.start_ns, end_ns: gap.end_ns, cause });
                    }
                }
            }
        }
    }

    fn pieces(&self) -> usize {
        self.cpus.values().map(|(_, _, pieces)| pieces.len()).sum()
    }

    fn recording(self, end_ns: u64, means: Means, lost_events: u64, early: bool) -> Recording {
        let from_ns = self.from_ns;
        let within = |piece: &Piece| Piece {
            start_ns: piece.start_ns.saturating_sub(from_ns),
            end_ns: piece.end_ns.min(end_ns).saturating_sub(from_ns),
            cause: if piece.cause == LOOP { UNKNOWN } else { piece.cause },
        };
        let cpus = self.cpus.into_iter().map(|(cpu, (_, _, pieces))| CpuNoise {
            cpu,
            pieces: pieces.iter().map(within).filter(|piece| piece.end_ns > piece.start_ns).collect(),
        });
        Recording {
            length_ns: end_ns.saturating_sub(from_ns),
            cpus: cpus.collect(),
            names: self.names.for_files(),
            processes: self.names.processes(),
            means,
            no_trace: None,
            lost_events,
            throttled: 0,
            interrupted: early && !self.full,
            full: self.full,
        }
    }
}

fn threads_of_this_process() -> HashSet<i32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the recorder's own part of the recorded time, all CPUs together, ns.
#[must_use]
pub fn own_ns(recording: &Recording) -> u64 {
    let pieces = recording.cpus.iter().flat_map(|cpu| &cpu.pieces);
    pieces.filter(|piece| is_own(piece.cause)).map(|piece| piece.end_ns - piece.start_ns).sum()
}
