//! Threads and the process: CPU affinity, CPU time, priority and lifetime.

use std::io;

use rustix::io::Errno;
use rustix::process::{getppid, set_parent_process_death_signal, setpriority_process};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

use crate::signals::Signal;
use crate::time::clock_ns;

/// Makes the kernel kill this process when the thread that started it ends, for any reason.
///
/// # Errors
/// When the parent has already ended.
pub fn end_with_parent() -> io::Result<()> {
    end_with_starter();
    let is_orphaned = getppid().is_some_and(|parent| parent.is_init());
    if is_orphaned { Err(io::Error::other("the parent has ended")) } else { Ok(()) }
}

/// As [`end_with_parent`], for a child between fork and exec.
pub fn end_with_starter() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL)); // fails for no valid signal
}

/// Makes the kernel continue this process, if it is stopped, when the thread that started it ends, for any reason: a
/// stopped process does not see that end.
pub fn continue_at_end_of_starter() {
    let _ = set_parent_process_death_signal(Some(Signal::CONT)); // as above
}

/// Returns the calling thread's id.
#[must_use]
pub fn thread_id() -> i32 {
    gettid().as_raw_pid()
}

/// Returns the thread of this id as rustix takes it: 0, the calling thread, is `None`.
fn named(thread: i32) -> Result<Option<rustix::process::Pid>, Errno> {
    if thread < 0 { Err(Errno::SRCH) } else { Ok(rustix::process::Pid::from_raw(thread)) }
}

/// Returns the CPU time of a thread of this process up to now, ns.
///
/// Unlike `/proc/self/task/T/schedstat`, which lags by up to a tick (4 ms at 250 Hz) while the thread runs.
///
/// # Errors
/// When the thread has ended.
pub fn thread_cpu_ns(thread: i32) -> io::Result<u64> {
    const PER_THREAD_SCHEDULER_CLOCK: i32 = 6; // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED of linux/posix-timers.h
    clock_ns((!thread << 3) | PER_THREAD_SCHEDULER_CLOCK)
}

/// Returns the CPU time of all threads of a process, including ended ones, ns.
///
/// For another process the kernel reports the value at the last tick (up to 4 ms ago at 250 Hz) or switch of each
/// thread, unless [`account_for`] updated it.
///
/// # Errors
/// When the process has ended.
pub fn process_cpu_ns(process: i32) -> io::Result<u64> {
    const SCHEDULER_CLOCK: i32 = 2; // CPUCLOCK_SCHED of linux/posix-timers.h
    clock_ns((!process << 3) | SCHEDULER_CLOCK)
}

/// Makes the kernel update the CPU time of a running thread of another process.
///
/// The clock of another process's thread cannot be read, and a `perf` counter would add a microsecond to each of its
/// switches. But a running thread whose policy changes is taken out of the queue, and the kernel then accounts its
/// CPU time. So the policy is changed for a few microseconds, from `SCHED_OTHER` to `SCHED_BATCH` and back. Threads
/// of other policies are left alone. Failures are ignored; the clock then lags.
pub fn account_for(thread: i32) {
    if policy(thread).is_ok_and(|policy| policy == libc::SCHED_OTHER) {
        let _ = set_policy(thread, libc::SCHED_BATCH, 0);
        let _ = set_policy(thread, libc::SCHED_OTHER, 0);
    }
}

/// Returns the scheduling policy of a thread, one of `SCHED_*`; 0 is the calling one.
///
/// # Errors
/// When the thread has ended.
pub fn policy(thread: i32) -> io::Result<i32> {
    // SAFETY: takes and returns integers only.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    if policy < 0 { Err(io::Error::last_os_error()) } else { Ok(policy) }
}

/// Sets the scheduling policy of a thread, one of `SCHED_*`, and its priority within that; 0 is the calling thread.
///
/// # Errors
/// When privileges are missing, or the thread has ended.
pub fn set_policy(thread: i32, policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live local.
    let result = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does the same for all threads of a process.
pub fn account_for_all(process: i32) {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).for_each(account_for);
}

/// Returns the CPUs on which a thread may run; 0 is the calling one.
///
/// # Errors
/// When the thread has ended.
pub fn affinity(thread: i32) -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(named(thread)?)?;
    Ok((0..CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect())
}

/// Restricts a thread to these CPUs; 0 is the calling one. An empty list changes nothing.
///
/// # Errors
/// When none of them may be used.
pub fn set_affinity(thread: i32, cpus: &[u32]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        set.set(*cpu as usize);
    }
    Ok(sched_setaffinity(named(thread)?, &set)?)
}

/// Sets the nice level of one thread (Linux keeps it per thread).
///
/// # Errors
/// When the level is below the current one and privileges are missing.
pub fn set_nice(thread: i32, nice: i32) -> io::Result<()> {
    Ok(setpriority_process(named(thread)?, nice)?)
}

/// Returns an id that is the same for all processes on one booted kernel.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[must_use]
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or("unknown".into(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_cpu_clock_counts_what_it_computes() {
        let me = thread_id();
        let before = thread_cpu_ns(me).expect("own clock");
        let mut x = 1.0f64;
        while thread_cpu_ns(me).expect("own clock") < before + 2_000_000 {
            x = std::hint::black_box(x + x.sin());
        }
        assert!(thread_cpu_ns(me).expect("own clock") >= before + 2_000_000);
    }

    #[test]
    fn the_clock_of_another_process_that_runs_goes_on_between_ticks() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let process = child.id() as i32;
        crate::sleep_until(crate::now_ns() + 50_000_000);
        let mut last = process_cpu_ns(process).expect("it lives");
        let mut steps = Vec::new();
        while steps.len() < 50 {
            crate::sleep_until(crate::now_ns() + 200_000);
            account_for(process);
            let now = process_cpu_ns(process).expect("it lives");
            if now > last {
                steps.push(now - last);
            }
            last = now;
        }
        let policy = policy(process).expect("it lives");
        child.kill().and_then(|()| child.wait()).expect("ended");
        assert_eq!(policy, libc::SCHED_OTHER);
        // Beside other work it has no CPU at times. Without accounting it is counted at ticks only, of 1 to 10 ms.
        steps.sort_unstable();
        assert!(steps[10] < 900_000, "{steps:?}");
    }

    #[test]
    fn affinity_set_is_affinity_read() {
        let allowed = affinity(0).expect("own affinity");
        let last = *allowed.last().expect("at least one CPU");
        std::thread::spawn(move || {
            set_affinity(0, &[last]).expect("an allowed CPU");
            assert_eq!(affinity(0).expect("own affinity"), vec![last]);
        })
        .join()
        .expect("the thread");
        assert!(set_affinity(0, &[4_000_000]).is_err());
    }
}
