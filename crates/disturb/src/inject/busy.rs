//! Keeps a rank's processors busy while the rank is held.
//!
//! A program that another job has displaced returns to a processor that stayed busy. An idle processor would sleep
//! instead. Its frequency may drop, and on a virtual machine the host gives it to another guest and may return it
//! late. So threads compute where the rank's threads ran last, until the rank is released. They run under SCHED_IDLE,
//! the policy of the lowest priority, so every other thread preempts them.
//!
//! They are threads of the injector and end with it in any case, so nothing of them needs to be undone.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use super::priority;
use crosswind_linux::now_ns;
use crosswind_linux::processes::Pid;

/// Shorter intervals get no stand-ins: they end before a processor sleeps deeply, and the search for computing
/// threads would lengthen them.
const SHORTEST_NS: u64 = 1_000_000;
/// Fraction of an interval, as a divisor, after which no more threads are examined.
const LOOKING: u64 = 10;
/// A thread counts as computing if it ran for at least this fraction, as a divisor, of the time since it was last
/// examined.
const COMPUTES: u64 = 20;
/// Arithmetic steps between two checks of the command: about a microsecond.
const STEPS: u64 = 1000;

const WAIT: u8 = 0;
const COMPUTE: u8 = 1;
const END: u8 = 2;

/// A thread that computes on one CPU while its command is [`COMPUTE`].
#[derive(Debug)]
struct StandIn {
    command: Arc<AtomicU8>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    fn on(cpu: usize) -> Self {
        let command = Arc::new(AtomicU8::new(WAIT));
        let own = command.clone();
        let thread = std::thread::Builder::new().name("cw-stand-in".into()).spawn(move || stand_in(cpu, &own)).ok();
        Self { command, thread }
    }

    fn order(&self, word: u8) {
        self.command.store(word, Ordering::Release);
        if let Some(thread) = self.thread.as_ref().filter(|_| word != WAIT) {
            thread.thread().unpark();
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.order(END);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panicked thread no longer computes either
        }
    }
}

fn stand_in(cpu: usize, command: &AtomicU8) {
    if !priority::give_way() || priority::place(0, &[cpu]).is_err() {
        return; // no stand-in is better than one that takes time from others
    }
    let mut word = 1u64;
    loop {
        match command.load(Ordering::Acquire) {
            WAIT => std::thread::park(),
            COMPUTE => {
                for step in 0..STEPS {
                    word = std::hint::black_box(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
                }
            }
            _ => return,
        }
    }
}

/// The threads that stand in for one rank.
#[derive(Debug, Default)]
pub struct StandIns {
    by_cpu: BTreeMap<usize, StandIn>,
    /// For each thread of the rank: the time of its last examination, and its CPU time by then, ns.
    seen: HashMap<Pid, (u64, u64)>,
}

impl StandIns {
    /// Starts to compute on the CPUs where these processes computed last, for an interval of `length_ns` that has
    /// just begun.
    pub fn step_in(&mut self, processes: impl IntoIterator<Item = Pid>, length_ns: u64) {
        if length_ns < SHORTEST_NS {
            return;
        }
        let until = now_ns() + length_ns / LOOKING;
        let mut before = std::mem::take(&mut self.seen);
        for pid in processes {
            for thread in threads(pid) {
                if now_ns() > until {
                    return;
                }
                let (now, ran) = (now_ns(), ran_ns(pid, thread));
                let computed = before.remove(&thread).is_none_or(|(then, had)| {
                    ran.saturating_sub(had).saturating_mul(COMPUTES) >= now.saturating_sub(then)
                });
                self.seen.insert(thread, (now, ran));
                if let Some(cpu) = last_cpu(pid, thread).filter(|_| computed) {
                    self.by_cpu.entry(cpu).or_insert_with(|| StandIn::on(cpu)).order(COMPUTE);
                }
            }
        }
    }

    /// Stops computing and leaves the CPUs to other threads.
    pub fn step_back(&self) {
        self.by_cpu.values().for_each(|one| one.order(WAIT));
    }

    /// Returns the CPUs that ever had a stand-in.
    #[must_use]
    pub fn cpus(&self) -> Vec<usize> {
        self.by_cpu.keys().copied().collect()
    }
}

fn threads(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the CPU time of a thread, ns; `u64::MAX` if the kernel does not count it.
fn ran_ns(pid: Pid, thread: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}

/// Returns the CPU that a thread last ran on; `None` once it has ended.
fn last_cpu(pid: Pid, thread: Pid) -> Option<usize> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?; // the name may contain any characters
    after.split_ascii_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> (Pid, Pid) {
        (std::process::id() as Pid, crosswind_linux::thread_id())
    }

    #[test]
    fn a_thread_stands_in_where_one_computed_last_and_only_while_it_is_told_to() {
        let (pid, thread) = here();
        let cpu = priority::cpus_of(0).expect("we are here")[0];
        priority::place(0, &[cpu]).expect("a permitted CPU");
        assert_eq!(last_cpu(pid, thread), Some(cpu));
        let mut stand_ins = StandIns::default();
        stand_ins.step_in([pid], u64::MAX / 2);
        assert!(stand_ins.cpus().contains(&cpu));
        let command = || stand_ins.by_cpu[&cpu].command.load(Ordering::Relaxed);
        assert_eq!(command(), COMPUTE);
        stand_ins.step_back();
        assert_eq!(command(), WAIT);
        drop(stand_ins); // would block forever on one that does not end
    }

    #[test]
    fn no_thread_stands_in_for_a_moment_or_for_a_sleeping_rank() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let pid = sleeper.id() as Pid;
        let mut stand_ins = StandIns::default();
        stand_ins.step_in([pid], SHORTEST_NS - 1);
        assert!(stand_ins.cpus().is_empty());
        stand_ins.step_in([pid], u64::MAX / 2); // seen for the first time: assumed to compute
        assert_eq!(stand_ins.cpus().len(), 1);
        stand_ins.step_back();
        stand_ins.seen.values_mut().for_each(|(then, _)| *then = then.saturating_sub(1_000_000_000));
        stand_ins.step_in([pid], u64::MAX / 2);
        assert!(stand_ins.by_cpu.values().all(|one| one.command.load(Ordering::Relaxed) == WAIT));
        sleeper.kill().expect("runs");
        sleeper.wait().expect("a child of this process");
    }
}
