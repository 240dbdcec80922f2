//! Records when the threads of a program's ranks could run and did not, and what had their processors meanwhile.
//!
//! | question | module |
//! |---|---|
//! | what does the kernel's trace say? | [`events`] |
//! | which thread was away when? | [`threads`] |
//! | which process is it that kept it away? | [`occupants`] |
//! | how does it stand in a file? | [`encoded`] |
//!
//! The trace covers the whole host from before the program starts: what a rank waited for is not part of the rank.
//! Which processes are ranks becomes known while it runs, so events are kept for a moment before they are followed.

pub mod encoded;
pub mod events;
pub mod occupants;
pub mod threads;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::events::{Comms, Event, Joiner, What, parsed};
use self::occupants::{Cause, Causes};
use self::threads::{Absence, Occupant, Threads};
use crate::DisturbError;
use crate::noise::events::tells_loss;
use crate::noise::trace::{Trace, Traced};
use crosswind_linux::{now_ns, set_nice, set_policy, thread_id};

/// Interval between reads of the kernel's trace.
const DRAIN: Duration = Duration::from_millis(250);
/// Events are followed when they are this old: all processors have written theirs, and the ranks of that time are known.
const SETTLED_NS: u64 = 2_000_000_000;
/// How full a processor's buffer may be before the thread that reads the trace takes more of a processor: it shares the
/// processors with the ranks, and takes only what they leave as long as it keeps up. The rest of the buffer must hold what is
/// written between two reads.
const SOME: f64 = 0.3;
const FULL: f64 = 0.6;
const NICE: i32 = 19;
/// Most absences kept: they take 80 MB of memory.
const MOST: usize = 2_000_000;

/// Absences of one process, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfProcess {
    /// In the order of their ends; the second is the index of the cause.
    pub absences: Vec<(Absence, Option<u32>)>,
    /// Number and length (ns) of the absences that are too short to be kept.
    pub short: (u64, u64),
}

#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    pub processes: BTreeMap<i32, OfProcess>,
    pub causes: Vec<Cause>,
    /// Events that the kernel lost.
    pub lost_events: u64,
    /// Whether there were more absences than are kept.
    pub full: bool,
}

/// A running recording, on a thread of its own.
#[derive(Debug)]
pub struct PreemptionRecorder {
    over: Arc<AtomicBool>,
    processes: Arc<Mutex<Vec<i32>>>,
    thread: Option<JoinHandle<Result<Preemptions, DisturbError>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PreemptionRecorder {
    /// Starts the trace. When this returns, the kernel writes it.
    ///
    /// # Errors
    /// The reason why the kernel's trace is not available.
    pub fn start(cpus: Vec<usize>) -> Result<Self, String> {
        let over = Arc::new(AtomicBool::new(false));
        let processes = Arc::new(Mutex::new(Vec::new()));
        let (started, from_thread) = channel();
        let (ended, known) = (over.clone(), processes.clone());
        let thread = std::thread::spawn(move || {
            let mut traced = match Traced::start(|instance| Trace::of_threads(instance, &cpus)) {
                Ok(traced) => traced,
                Err(why) => {
                    let _ = started.send(Err(why)); // the receiver waits for it
                    return Ok(Preemptions::default());
                }
            };
            let _ = started.send(Ok(()));
            let result = follow(&mut traced.trace, &ended, &known);
            traced.end();
            result
        });
        match from_thread.recv() {
            Ok(Ok(())) => Ok(Self { over, processes, thread: Some(thread) }),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("the thread that reads the trace broke down".into()),
        }
    }

    /// Says which processes are ranks. May be called again when more are known.
    pub fn follow(&self, processes: Vec<i32>) {
        *locked(&self.processes) = processes;
    }

    /// Ends the recording and takes it.
    ///
    /// # Errors
    /// When the trace could not be read.
    pub fn stop(&mut self) -> Result<Preemptions, DisturbError> {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(DisturbError::Setup("the thread that reads the trace broke down".into())),
            None => Err(DisturbError::Setup("the recording was taken already".into())),
        }
    }
}

impl Drop for PreemptionRecorder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.stop(); // the result is no longer needed
        }
    }
}

/// Threads of the ranks, and all that was found of them so far.
#[derive(Default)]
struct Session {
    joiner: Joiner,
    comms: Comms,
    threads: Threads,
    causes: Causes,
    owners: BTreeMap<i32, i32>,
    waiting: Vec<Event>,
    found: Preemptions,
}

/// How much of a processor the thread that reads the trace takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// What others leave.
    Idle,
    Low,
    Usual,
}

impl Urgency {
    fn of(fullest: f64) -> Self {
        match fullest {
            full if full > FULL => Self::Usual,
            some if some > SOME => Self::Low,
            _ => Self::Idle,
        }
    }

    /// Sets it for this thread. Without the right to it, the thread reads as it is.
    fn apply(self) {
        let (policy, nice) = match self {
            Self::Idle => (libc::SCHED_IDLE, NICE),
            Self::Low => (libc::SCHED_OTHER, NICE),
            Self::Usual => (libc::SCHED_OTHER, 0),
        };
        let _ = set_policy(0, policy, 0);
        let _ = set_nice(thread_id(), nice);
    }
}

fn follow(trace: &mut Trace, over: &AtomicBool, processes: &Mutex<Vec<i32>>) -> Result<Preemptions, DisturbError> {
    let mut session = Session::default();
    let mut urgency = None;
    loop {
        let ended = over.load(Ordering::Relaxed);
        let needed = Urgency::of(if ended { 1.0 } else { trace.fullest() });
        if urgency != Some(needed) {
            needed.apply();
            urgency = Some(needed);
        }
        let read_ns = now_ns();
        trace.lines(|cpu, line| session.take(cpu, line)).map_err(DisturbError::system("the kernel's trace"))?;
        session.own_threads(&locked(processes).clone());
        session.process_before(if ended { u64::MAX } else { read_ns.saturating_sub(SETTLED_NS) });
        if ended {
            session.found.lost_events = trace.lost();
            return Ok(session.finished());
        }
        std::thread::park_timeout(DRAIN);
    }
}

impl Session {
    fn take(&mut self, cpu: usize, line: &str) {
        if tells_loss(line) {
            let ns = self.waiting.iter().rev().find(|event| event.cpu == cpu).map_or(0, |event| event.ns);
            self.waiting.push(Event { ns, cpu, what: What::Lost });
            return;
        }
        let Self { joiner, comms, causes, waiting, .. } = self;
        joiner.take(cpu, line, |text| {
            let Some(event) = parsed(cpu, text, comms) else { return };
            if let What::Switch { next, comm, .. } = event.what {
                causes.meet(Occupant { tid: next, comm });
            }
            waiting.push(event);
        });
    }

    fn own_threads(&mut self, processes: &[i32]) {
        for process in processes {
            self.found.processes.entry(*process).or_default();
            self.own(*process, *process);
            self.look_for_tracer(*process);
            let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            for tid in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
                self.own(tid, *process);
            }
        }
    }

    fn own(&mut self, tid: i32, process: i32) {
        self.owners.insert(tid, process);
        self.threads.follow(tid, process);
    }

    /// A tracer stops a process without a signal that the kernel's trace shows.
    fn look_for_tracer(&mut self, process: i32) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")?.trim().parse::<i32>().ok());
        if let Some(tracer) = tracer.filter(|&tracer| tracer > 0) {
            let name = std::fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
            let one = Occupant { tid: tracer, comm: self.comms.place(name.trim_end()) };
            self.causes.meet(one);
            self.threads.traced_by(process, one);
        }
    }

    fn process_before(&mut self, time_ns: u64) {
        self.waiting.sort_by_key(|event| event.ns); // stable: of one processor in the order in which they were written
        let settled = self.waiting.partition_point(|event| event.ns < time_ns);
        for event in self.waiting.drain(..settled) {
            self.threads.on_event(&event);
        }
        for absence in self.threads.taken() {
            let Some(process) = self.owners.get(&absence.tid) else { continue };
            if self.found.full {
                continue;
            }
            let cause = self.causes.of(&absence, &self.comms);
            self.found.processes.entry(*process).or_default().absences.push((absence, cause));
        }
        let kept: usize = self.found.processes.values().map(|one| one.absences.len()).sum();
        self.found.full = kept >= MOST;
    }

    fn finished(mut self) -> Preemptions {
        for (tid, (count, sum)) in &self.threads.short {
            if let Some(process) = self.owners.get(tid) {
                let short = &mut self.found.processes.entry(*process).or_default().short;
                *short = (short.0 + count, short.1 + sum);
            }
        }
        self.found.causes = self.causes.all();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::Urgency;

    #[test]
    fn the_reader_takes_what_others_leave_as_long_as_it_keeps_up() {
        let apply = |full: f64| {
            Urgency::of(full).apply();
            // SAFETY: no pointers.
            unsafe { libc::sched_getscheduler(0) }
        };
        let policies = std::thread::spawn(move || [0.0, 0.4, 0.0].map(apply)).join().unwrap();
        assert_eq!(policies, [libc::SCHED_IDLE, libc::SCHED_OTHER, libc::SCHED_IDLE]);
        assert_eq!(Urgency::of(0.9), Urgency::Usual);
    }
}
