//! The watchdog: a separate process that undoes the changes of a live command when that command has ended, in any
//! way.
//!
//! It is forked before anything is changed, outlives what ends the command ([`crate::hardened`]), and waits for the
//! end of the command's process, which the kernel reports even after SIGKILL. The end of a pipe would not be enough,
//! because processes that the command forks keep the pipe open. If an undo can be overdue, it also checks for that twice
//! a second, since a command that is itself stopped undoes nothing.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::children::{fork, kill_and_reap, reap};
use crate::processes::{Pid, parent_and_state};
use crate::signals::{Signal, one};
use crate::waiting::{Watched, wait, watch as watch_descriptor};

const LOOK_NS: u64 = 500_000_000;

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
    /// Descriptors that [`Self::perform`] uses.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }
}

/// The command's handle of the watchdog.
#[derive(Debug)]
pub struct Watchdog {
    pid: Pid,
    process: OwnedFd,
    pipe: OwnedFd,
}

/// Returns a descriptor that becomes readable once a process has ended.
///
/// # Errors
/// When the process does not exist.
pub fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(one(pid)?, PidfdFlags::empty())?)
}

impl Watchdog {
    /// Forks the watchdog.
    ///
    /// # Errors
    /// When no process or descriptor is available.
    pub fn start(undo: &dyn Undo) -> io::Result<Self> {
        let (reading, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        let command = std::process::id() as Pid;
        let owner = process_descriptor(command)?;
        // SAFETY: the child makes system calls, reads files and allocates. It takes no lock of this process and uses no
        // Python.
        let pid = unsafe { fork(move || watch(command, reading, owner, undo)) }?;
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
        // If it has ended already, the byte is not needed (SIGPIPE is ignored by Python, and by Rust's runtime).
        let _ = rustix::io::write(&self.pipe, b"q");
        drop(self.pipe);
        reap(self.pid);
    }
}

/// Runs the watchdog until its end. The descriptors are those of the pipe and of the command's process.
fn watch(command: Pid, pipe: OwnedFd, process: OwnedFd, undo: &dyn Undo) {
    let known = [pipe.as_raw_fd(), process.as_raw_fd(), undo.starter().unwrap_or(-1)];
    let mut kept: Vec<RawFd> = known.into_iter().filter(|fd| *fd >= 0).collect();
    kept.extend(undo.descriptors());
    crate::hardened::outlive(&mut kept);
    // Of the starter only the end counts, which poll reports unasked; it ignores a negative descriptor.
    let mut watched = known.map(|fd| watch_descriptor(fd, true, false));
    watched[2].events = 0;
    let is_ready = |watched: &Watched| watched.revents != 0;
    let mut is_alone = false;
    loop {
        let checks = undo.can_be_late() || is_alone;
        let _ = wait(&mut watched, checks.then_some(LOOK_NS)); // after an error nothing is ready
        if is_ready(&watched[0]) || is_ready(&watched[1]) {
            break;
        }
        if is_ready(&watched[2]) {
            (is_alone, watched[2].fd) = (true, -1);
        }
        if is_alone && parent_and_state(command).is_some_and(|(_, state)| state == 'T') {
            // The descriptor is that of the command, whatever has its number by now.
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
        if undo.can_be_late() {
            undo.heed_lateness();
        }
    }
    // It is read only where that does not wait.
    let is_dismissed = is_ready(&watched[0]) && rustix::io::read(&pipe, &mut [0u8; 1]) == Ok(1);
    if !is_dismissed {
        undo.perform();
    }
}
