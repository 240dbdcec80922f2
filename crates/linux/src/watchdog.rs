//! The watchdog: a process of its own that undoes what a live command changed when that command is no more, however it
//! ended.
//!
//! It is forked before anything is changed, outlives what ends the command ([`crate::hardened`]), and waits for its pipe to end, which the kernel sees to even on SIGKILL. Where
//! something can be late, it also looks twice a second whether it should have been undone long ago: a command that is
//! stopped itself holds no process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Number of a process.
type Pid = libc::pid_t;

const LOOK_MS: i32 = 500;

/// What is to be undone; known before anything is changed. Both may be called again at any time, in another process.
pub trait Undo {
    /// Undoes all of it.
    fn perform(&self);
    /// Undoes what was to be undone by now and was not.
    fn heed_lateness(&self) {}
    /// Whether the watchdog is to look for that; to look is noise.
    fn can_be_late(&self) -> bool {
        false
    }
}

/// The command's end of the watchdog.
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

/// A descriptor that can be read from when a process has ended.
///
/// # Errors
/// When there is no such process.
pub fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes integers only.
    checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(owned)
}

impl Watchdog {
    /// Starts it.
    ///
    /// # Errors
    /// When no process or descriptor is left.
    pub fn start(undo: &dyn Undo) -> io::Result<Self> {
        let mut ends = [0i32; 2];
        // SAFETY: two live integers.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
        let (reading, pipe) = (owned(ends[0]), owned(ends[1]));
        // SAFETY: the child calls the kernel, reads files and allocates (glibc readies its allocator for a forked child);
        // it takes no lock of this process, knows no Python, and leaves by _exit.
        let pid = checked(unsafe { libc::fork() }.into())?;
        if pid == 0 {
            let known = reading.as_raw_fd();
            std::mem::forget((reading, pipe));
            watch(known, undo);
        }
        let process = process_descriptor(pid).inspect_err(|_| kill_and_reap(pid))?;
        Ok(Self { pid, process, pipe })
    }

    /// Can be read from when it has ended.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.process.as_raw_fd()
    }

    /// Tells it that all is undone, and waits for its end.
    pub fn dismiss(self) {
        // SAFETY: one live byte. If it has ended already, the byte is not needed (SIGPIPE is ignored by Python, and by
        // Rust's runtime).
        unsafe { libc::write(self.pipe.as_raw_fd(), c"q".as_ptr().cast(), 1) };
        drop(self.pipe);
        reap(self.pid);
    }
}

fn reap(pid: Pid) {
    // SAFETY: our own child; its status is not wanted.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn kill_and_reap(pid: Pid) {
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    reap(pid);
}

/// The watchdog's life.
fn watch(pipe: RawFd, undo: &dyn Undo) -> ! {
    crate::hardened::outlive(&mut [pipe]);
    let mut watched = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: one live entry.
        let ready = unsafe { libc::poll(&raw mut watched, 1, if undo.can_be_late() { LOOK_MS } else { -1 }) };
        if ready > 0 {
            break;
        }
        undo.heed_lateness();
    }
    let mut word = 0u8;
    // SAFETY: one live byte.
    let dismissed = unsafe { libc::read(pipe, (&raw mut word).cast(), 1) } == 1;
    if !dismissed {
        undo.perform();
    }
    // SAFETY: ends the process without running what others registered for its end.
    unsafe { libc::_exit(0) }
}
