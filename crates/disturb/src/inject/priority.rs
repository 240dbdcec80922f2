//! Priorities and CPUs of threads. Settings made here for a thread of this process end with the thread.

use std::fs;
use std::io;

use crosswind_linux::processes::Pid;
use crosswind_linux::{affinity, set_nice, set_policy};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Priority of a thread over the programs on its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// SCHED_FIFO: runs before everything of ordinary priority.
    RealTime,
    /// Nice level -20: 98.9 % of a CPU shared with one busy program of level 0.
    High,
    /// Ordinary priority: half of a CPU shared with one busy program.
    Ordinary,
}

impl Urgency {
    /// Returns its name in one or two words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RealTime => "real-time",
            Self::High => "nice -20",
            Self::Ordinary => "ordinary",
        }
    }
}

/// Above ordinary programs, below the kernel's own threads.
const REAL_TIME_LEVEL: i32 = 40;

/// Gives this thread the highest priority that it may have. Child processes do not inherit it.
#[must_use]
pub fn hurry() -> Urgency {
    if set_policy(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, REAL_TIME_LEVEL).is_ok() {
        return Urgency::RealTime;
    }
    if set_nice(0, -20).is_ok() { Urgency::High } else { Urgency::Ordinary }
}

/// Makes this thread run only on an idle CPU. Returns whether the kernel permits it.
#[must_use]
pub fn give_way() -> bool {
    set_policy(0, libc::SCHED_IDLE, 0).is_ok()
}

/// Returns the highest priority that a thread of this process may have, tried on a thread that ends at once.
#[must_use]
pub fn permitted() -> Urgency {
    std::thread::spawn(hurry).join().unwrap_or(Urgency::Ordinary)
}

/// Returns the CPUs of a thread or process; `None` once it has ended.
#[must_use]
pub fn cpus_of(pid: Pid) -> Option<Vec<usize>> {
    Some(affinity(pid).ok()?.into_iter().map(|cpu| cpu as usize).collect())
}

/// Restricts a thread to these CPUs; 0 is the calling one. Async-signal-safe.
///
/// # Errors
/// When none of them may be used, or the thread has ended.
pub fn place(pid: Pid, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(rustix::process::Pid::from_raw(pid), &set)?)
}

/// Restricts all threads of a process to these CPUs. Ended threads are skipped.
pub fn place_all_threads(pid: Pid, cpus: &[usize]) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        let _ = place(thread, cpus); // it has ended meanwhile
    }
}

#[cfg(test)]
mod tests {
    use crosswind_linux::policy;

    use super::*;

    #[test]
    fn a_thread_can_be_placed_and_its_neighbours_stay_where_they_were() {
        let before = cpus_of(0).expect("we are here");
        let there = before[before.len() - 1];
        let placed = std::thread::spawn(move || place(0, &[there]).map(|()| cpus_of(0))).join().expect("ends");
        assert_eq!(placed.expect("a permitted CPU"), Some(vec![there]));
        assert_eq!(cpus_of(0), Some(before));
        assert!(place(0, &[]).is_err());
    }

    #[test]
    fn trying_a_priority_leaves_this_threads_as_it_was() {
        let before = policy(0).expect("we are here");
        let _ = permitted();
        assert_eq!(policy(0).expect("we are here"), before);
    }
}
