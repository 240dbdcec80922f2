//! Signals to other processes, and what a process that was just forked does with its own.

use std::io;
use std::os::fd::{AsFd, FromRawFd as _, OwnedFd};

use rustix::io::Errno;
pub use rustix::process::Signal;
use rustix::process::{Pid as OtherPid, kill_process, kill_process_group, test_kill_process};

use crate::processes::Pid;

/// Returns a process id as rustix takes it. Zero and negative numbers, which name groups for `kill`, name no process.
pub(crate) fn one(pid: Pid) -> Result<OtherPid, Errno> {
    Some(pid).filter(|pid| *pid > 0).and_then(OtherPid::from_raw).ok_or(Errno::SRCH)
}

/// Sends a signal to a process.
///
/// # Errors
/// When it does not exist, or belongs to another user.
pub fn kill(pid: Pid, signal: Signal) -> io::Result<()> {
    Ok(kill_process(one(pid)?, signal)?)
}

/// Sends a signal to all processes of a group.
///
/// # Errors
/// When none of them exists, or all belong to other users.
pub fn kill_group(group: Pid, signal: Signal) -> io::Result<()> {
    let group = one(group).ok().filter(|group| !group.is_init()).ok_or(Errno::SRCH)?; // -1 would mean all processes
    Ok(kill_process_group(group, signal)?)
}

/// Whether a process exists: it runs, or its parent has not yet waited for it.
#[must_use]
pub fn exists(pid: Pid) -> bool {
    one(pid).and_then(test_kill_process) != Err(Errno::SRCH)
}

/// Whether this user may not signal a process that exists.
#[must_use]
pub fn is_forbidden(pid: Pid) -> bool {
    one(pid).and_then(test_kill_process) == Err(Errno::PERM)
}

/// Ignores a signal in this process, and in programs that it executes.
pub fn ignore(signal: i32) {
    set_action(signal, libc::SIG_IGN);
}

/// Restores the kernel's default for a signal.
pub fn reset(signal: i32) {
    set_action(signal, libc::SIG_DFL);
}

fn set_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: neither of the two actions runs code of this process.
    unsafe { libc::signal(signal, action) };
}

/// Signals that a thread blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// All that can be blocked.
    All,
    /// SIGCHLD, and no other.
    ChildOnly,
}

/// Blocks signals in this thread and returns a descriptor that becomes readable on SIGCHLD. It does not wait for input;
/// [`discard`] empties it.
///
/// # Errors
/// When no descriptor is available.
pub fn of_children(block: Block) -> io::Result<OwnedFd> {
    reset(libc::SIGCHLD); // a parent may have set it to be ignored, in which case children cannot be reaped
    // SAFETY: live sets of signals; a descriptor that was just opened has no other owner.
    unsafe {
        let mut child: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        let mut blocked = child;
        if block == Block::All {
            libc::sigfillset(&raw mut blocked);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Discards pending signals of [`of_children`]. Their number does not matter.
pub fn discard(signals: impl AsFd) {
    let _ = rustix::io::read(signals, &mut [0u8; 1024]); // none is pending
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;
    use crate::children::{exit_now, fork, reap};
    use crate::{readable, wait, watch};

    #[test]
    fn numbers_that_name_groups_name_no_process() {
        for pid in [0, -1, Pid::MIN] {
            assert!(!exists(pid));
            assert!(kill(pid, Signal::CONT).is_err());
            assert!(kill_group(pid, Signal::CONT).is_err());
        }
        assert!(kill_group(1, Signal::CONT).is_err());
        assert!(exists(std::process::id() as Pid));
    }

    #[test]
    fn a_process_can_wait_for_the_end_of_its_child() {
        // SAFETY: both children make system calls only.
        let child = unsafe {
            fork(|| {
                let signals = of_children(Block::All).expect("a descriptor");
                let mut watched = [watch(signals.as_raw_fd(), true, false)];
                let grandchild = fork(|| {}).expect("a process");
                let is_woken = wait(&mut watched, Some(60_000_000_000)).is_ok() && readable(&watched[0]);
                discard(&signals);
                let is_empty = wait(&mut watched, Some(0)).is_ok() && !readable(&watched[0]);
                exit_now(i32::from(!(is_woken && is_empty && reap(grandchild).is_some())))
            })
        };
        assert_eq!(reap(child.expect("a process")).and_then(|status| status.exit_status()), Some(0));
    }
}
