//! Children of this process: how they are forked, how they end, and what they used.

use std::io;
use std::os::fd::{IntoRawFd as _, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::retry_on_intr;
use rustix::process::{WaitOptions, WaitStatus, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::processes::Pid;
use crate::signals::{Signal, kill, one};

/// Exit status of a child that panicked, as of a program of Rust.
const PANICKED: i32 = 101;

/// Waits for the end of a child. Returns its status; `None` if it is no child of this process.
pub fn reap(pid: Pid) -> Option<WaitStatus> {
    let found = retry_on_intr(|| waitpid(Some(one(pid)?), WaitOptions::empty()));
    found.ok().flatten().map(|(_, status)| status)
}

/// Ends a child by SIGKILL and waits for it.
pub fn kill_and_reap(pid: Pid) {
    let _ = kill(pid, Signal::KILL); // it has ended already
    reap(pid);
}

/// Reaps a child that has ended. `None` while it runs.
///
/// # Errors
/// When it is no child of this process, or has been reaped.
pub fn ended(pid: Pid) -> io::Result<Option<Ended>> {
    let (mut status, mut usage) = (0, no_usage());
    // SAFETY: both pointers are to live locals.
    match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        0 => Ok(None),
        found if found > 0 => Ok(Some(Ended { status, usage: Usage::of(&usage) })),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// As `wait` returns it.
    pub status: i32,
    /// Of the child and of those that it waited for.
    pub usage: Usage,
}

/// CPU time and switches, as the kernel accounts for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// How often it blocked.
    pub waits: i64,
    /// How often another thread took its CPU.
    pub preemptions: i64,
}

impl Usage {
    fn of(usage: &libc::rusage) -> Self {
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, 1_000 * time.tv_usec as u32);
        let (waits, preemptions) = (usage.ru_nvcsw, usage.ru_nivcsw);
        Self { user: time(usage.ru_utime), system: time(usage.ru_stime), waits, preemptions }
    }

    fn by(whose: libc::c_int) -> Self {
        let mut usage = no_usage();
        // SAFETY: the pointer is to a live local.
        unsafe { libc::getrusage(whose, &raw mut usage) };
        Self::of(&usage)
    }

    /// Returns the CPU time in both modes. The kernel counts it exactly; how it divides it is an estimate from ticks.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// Returns that of the calling thread.
    #[must_use]
    pub fn of_thread() -> Self {
        Self::by(libc::RUSAGE_THREAD)
    }

    /// Returns that of all children that this process has waited for.
    #[must_use]
    pub fn of_children() -> Self {
        Self::by(libc::RUSAGE_CHILDREN)
    }
}

fn no_usage() -> libc::rusage {
    // SAFETY: a structure of integers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// Forks a child that does `work` and then leaves without exit handlers, with status 0, or 101 if it panicked. Returns
/// its process id.
///
/// # Safety
/// The child has this thread only: `work` must not take a lock that another thread of this process may hold. It may
/// allocate, since glibc prepares its allocator for a forked child.
///
/// # Errors
/// When no process is available.
pub unsafe fn fork(work: impl FnOnce()) -> io::Result<Pid> {
    // SAFETY: as the caller promises.
    match unsafe { libc::fork() } {
        0 => {
            // A panic must not unwind into this copy of the caller's stack.
            let done = catch_unwind(AssertUnwindSafe(work));
            exit_now(if done.is_ok() { 0 } else { PANICKED })
        }
        pid if pid > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process without exit handlers; nothing is flushed.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: takes an integer only, and does not return.
    unsafe { libc::_exit(status) }
}

/// In a forked child: closes all descriptors but these, and replaces those of standard input and output by `/dev/null`.
/// Nothing else in the child may own one.
pub fn close_all_but(keep: &mut [RawFd]) {
    keep.sort_unstable();
    if let Ok(nowhere) = open(c"/dev/null", OFlags::RDWR, Mode::empty()) {
        let wanted = |fd: RawFd| !keep.contains(&fd);
        // If one stays as it is, the child works as well.
        let _ = wanted(0).then(|| dup2_stdin(&nowhere));
        let _ = wanted(1).then(|| dup2_stdout(&nowhere));
        let _ = wanted(2).then(|| dup2_stderr(&nowhere));
        let _ = nowhere.into_raw_fd(); // closed below, unless it is one of the three
    }
    let mut next = 3;
    for fd in keep.iter().map(|fd| *fd as libc::c_uint).filter(|fd| *fd >= 3) {
        if fd > next {
            close_between(next, fd - 1);
        }
        next = fd + 1;
    }
    close_between(next, libc::c_uint::MAX);
}

fn close_between(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: takes integers only; nothing in this child owns a descriptor but those that are kept.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_reaped_once_with_its_status_and_its_cpu_time() {
        // SAFETY: the child only computes.
        let child = unsafe {
            fork(|| {
                while Usage::of_thread().cpu() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
                exit_now(7)
            })
        };
        let child = child.expect("a process");
        let end = loop {
            if let Some(end) = ended(child).expect("our own child") {
                break end;
            }
            std::thread::yield_now();
        };
        assert_eq!(libc::WEXITSTATUS(end.status), 7);
        assert!(end.usage.cpu() >= Duration::from_millis(20), "{end:?}");
        assert_eq!(ended(child).expect_err("reaped").raw_os_error(), Some(libc::ECHILD));
        assert!(reap(child).is_none());
    }

    #[test]
    fn a_child_leaves_where_it_was_forked_and_one_that_is_killed_by_its_signal() {
        let status_of = |work: fn()| {
            // SAFETY: the child takes no lock: it unwinds without a message.
            let child = unsafe { fork(work) }.expect("a process");
            reap(child).and_then(WaitStatus::exit_status)
        };
        assert_eq!(status_of(|| {}), Some(0));
        assert_eq!(status_of(|| std::panic::resume_unwind(Box::new(()))), Some(PANICKED));
        // SAFETY: the child only waits.
        let child = unsafe { fork(|| std::thread::sleep(Duration::from_secs(600))) }.expect("a process");
        kill(child, Signal::KILL).expect("our own child");
        assert_eq!(reap(child).and_then(WaitStatus::terminating_signal), Some(libc::SIGKILL));
    }
}
