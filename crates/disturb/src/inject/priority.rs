//! Priorities and CPUs of threads. Settings made here for a thread of this process end with the thread.

use std::fs;
use std::io;
use std::mem::zeroed;

use crosswind_linux::processes::Pid;

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
    // SAFETY: an all-zero sched_param is valid; the pointer is to a live local; 0 is this thread.
    let real_time = unsafe {
        let mut parameter: libc::sched_param = zeroed();
        parameter.sched_priority = REAL_TIME_LEVEL;
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0
    };
    if real_time {
        return Urgency::RealTime;
    }
    // SAFETY: takes integers only. In Linux a nice level is a thread's.
    let high = unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -20) == 0 };
    if high { Urgency::High } else { Urgency::Ordinary }
}

/// Makes this thread run only on an idle CPU. Returns whether the kernel permits it.
#[must_use]
pub fn give_way() -> bool {
    // SAFETY: an all-zero sched_param is valid; the pointer is to a live local; 0 is this thread.
    unsafe {
        let parameter: libc::sched_param = zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) == 0
    }
}

/// Returns the highest priority that a thread of this process may have, tried on a thread that ends at once.
#[must_use]
pub fn permitted() -> Urgency {
    std::thread::spawn(hurry).join().unwrap_or(Urgency::Ordinary)
}

/// Returns the CPUs of a thread or process; `None` once it has ended.
#[must_use]
pub fn cpus_of(pid: Pid) -> Option<Vec<usize>> {
    // SAFETY: an all-zero set is the empty one; the pointer is to a live local of the size that is passed along.
    let set = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        if libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return None;
        }
        set
    };
    // SAFETY: every number is below the size of the set.
    Some((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

/// Restricts a thread to these CPUs; 0 is the calling one. Async-signal-safe.
///
/// # Errors
/// When none of them may be used, or the thread has ended.
pub fn place(pid: Pid, cpus: &[usize]) -> io::Result<()> {
    // SAFETY: an all-zero set is the empty one; every number is below the size of the set.
    let set = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut set);
        }
        set
    };
    // SAFETY: the pointer is to a live local of the size that is passed along.
    let result = unsafe { libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
        let level = || {
            // SAFETY: takes an integer only.
            unsafe { libc::sched_getscheduler(0) }
        };
        let before = level();
        let _ = permitted();
        assert_eq!(level(), before);
    }
}
