//! The watchdog: a separate process that undoes the changes of a live command when that command has ended, in any
//! way.
//!
//! It is forked before anything is changed, outlives what ends the command ([`crate::hardened`]), and waits for the
//! end of the command's process, which the kernel reports even after SIGKILL. The end of a pipe would not be enough,
//! because processes that the command forks keep the pipe open. If an undo can be overdue, it also checks for that twice
//! a second, since a command that is itself stopped undoes nothing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::processes::parent_and_state;

type Pid = libc::pid_t;

const LOOK_MS: i32 = 500;

/// Changes to undo, known before anything is changed. Both methods may be called repeatedly, and in another process.
pub trait Undo {
    /// Undoes everything that the process had changed.
    fn perform(&self);
    /// Undoes what should have ended by now.
    fn heed_lateness(&self) {}
    /// Whether the watchdog should check for overdue changes; each check is noise.
    fn can_be_late(&self) -> bool {
        false
    }
    /// Pipe or socket from the process that started the command, which ends with it. A command that is stopped cannot
    /// see that end, so the watchdog ends it.
    fn starter(&self) -> Option<RawFd> {
        None
    }
}

/// The command's handle of the watchdog.
#[derive(Debug)]
pub struct Watchdog {
    pid: Pid,
    process: OwnedFd,
    pipe: OwnedFd,
}

fn checked(result: libc::c_long) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: a descriptor that was just opened has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Returns a descriptor that becomes readable once a process has ended.
///
/// # Errors
/// When the process does not exist.
pub fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes integers only.
    checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(owned)
}

impl Watchdog {
    /// Forks the watchdog.
    ///
    /// # Errors
    /// When no process or descriptor is available.
    pub fn start(undo: &dyn Undo) -> io::Result<Self> {
        let mut ends = [0i32; 2];
        // SAFETY: two live integers.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
        let (reading, pipe) = (owned(ends[0]), owned(ends[1]));
        let owner = process_descriptor(std::process::id() as Pid)?;
        let (command, starter) = (std::process::id() as Pid, undo.starter());
        // SAFETY: the child makes system calls, reads files and allocates (glibc prepares its allocator for a forked
        // child). It takes no lock of this process, uses no Python, and leaves by _exit.
        let pid = checked(unsafe { libc::fork() }.into())?;
        if pid == 0 {
            let known = [reading.as_raw_fd(), owner.as_raw_fd(), starter.unwrap_or(-1)];
            std::mem::forget((reading, pipe, owner));
            watch(command, known, undo);
        }
        let process = process_descriptor(pid).inspect_err(|_| kill_and_reap(pid))?;
        Ok(Self { pid, process, pipe })
    }

    /// Returns a descriptor that becomes readable once the watchdog has ended.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.process.as_raw_fd()
    }

    /// Reports to it that everything is undone, and waits for its end.
    pub fn dismiss(self) {
        // SAFETY: one live byte. If it has ended already, the byte is not needed (SIGPIPE is ignored by Python, and by
        // Rust's runtime).
        unsafe { libc::write(self.pipe.as_raw_fd(), c"q".as_ptr().cast(), 1) };
        drop(self.pipe);
        reap(self.pid);
    }
}

fn reap(pid: Pid) {
    // SAFETY: our own child; its status is not needed.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn kill_and_reap(pid: Pid) {
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    reap(pid);
}

/// Runs the watchdog until its end. The descriptors are those of the pipe, of the command's process and of its starter.
fn watch(command: Pid, known: [RawFd; 3], undo: &dyn Undo) -> ! {
    let mut kept: Vec<RawFd> = known.into_iter().filter(|fd| *fd >= 0).collect();
    crate::hardened::outlive(&mut kept);
    // Of the starter only the end counts, which poll reports unasked; it ignores a negative descriptor.
    let mut watched = known.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    watched[2].events = 0;
    let mut is_alone = false;
    loop {
        let wait_ms = if undo.can_be_late() || is_alone { LOOK_MS } else { -1 };
        // SAFETY: live entries.
        let ready = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, wait_ms) };
        if ready > 0 && (watched[0].revents | watched[1].revents) != 0 {
            break;
        }
        if ready > 0 && watched[2].revents != 0 {
            (is_alone, watched[2].fd) = (true, -1);
        }
        if is_alone && parent_and_state(command).is_some_and(|(_, state)| state == 'T') {
            // SAFETY: takes integers only; the descriptor is that of the command, whatever has its number by now.
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, known[1], libc::SIGKILL, std::ptr::null::<u8>(), 0) };
        }
        if undo.can_be_late() {
            undo.heed_lateness();
        }
    }
    let mut word = 0u8;
    // SAFETY: one live byte; asked only where it does not wait.
    let dismissed = watched[0].revents != 0 && unsafe { libc::read(known[0], (&raw mut word).cast(), 1) } == 1;
    if !dismissed {
        undo.perform();
    }
    // SAFETY: ends the process without running exit handlers of other code.
    unsafe { libc::_exit(0) }
}
