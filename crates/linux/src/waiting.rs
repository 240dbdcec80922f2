//! Waits for many descriptors, with exact timers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A descriptor and the events to wait for. A negative one never has any; rustix's `PollFd` cannot hold it.
pub type Watched = libc::pollfd;

/// Creates an entry for [`wait`].
#[must_use]
pub fn watch(fd: RawFd, read: bool, write: bool) -> Watched {
    let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
    Watched { fd, events, revents: 0 }
}

/// Whether the descriptor is readable or its connection has ended.
#[must_use]
pub fn readable(watched: &Watched) -> bool {
    watched.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether the connection has ended.
#[must_use]
pub fn ended(watched: &Watched) -> bool {
    watched.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether the descriptor is writable.
#[must_use]
pub fn writable(watched: &Watched) -> bool {
    watched.revents & libc::POLLOUT != 0
}

/// Raises this process's soft limit of descriptors, as far as its hard limit permits.
pub fn make_room(descriptors: usize) {
    let (wanted, limit) = (descriptors as u64, getrlimit(Resource::Nofile));
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)));
        // If the limit stays too low, connections are refused when no descriptor is left.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

/// Waits until one of the descriptors is ready, or the timeout expires.
///
/// # Errors
/// When the kernel refuses; a signal is not an error.
pub fn wait(watched: &mut [Watched], timeout_ns: Option<u64>) -> io::Result<()> {
    let time = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice is live and its length is passed along; the time is null or a live local.
    let result = unsafe { libc::ppoll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, time, std::ptr::null()) };
    if result >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted {
        watched.iter_mut().for_each(|entry| entry.revents = 0);
        return Ok(());
    }
    Err(error)
}

/// Wakes a thread in [`wait`] from another one.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker that is not set.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes()); // a full counter is already set
    }

    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]); // clearing a clear waker is no failure
    }
}

/// Reads from a descriptor that another part of this process owns; a closed one is an error.
fn read(fd: RawFd, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is live and its length is passed along.
    let read = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Whether standard input has ended, which means that the process that started this one has ended.
#[must_use]
pub fn input_ended(fd: RawFd) -> bool {
    let mut bytes = [0u8; 256];
    loop {
        match read(fd, &mut bytes).map_err(|error| error.kind()) {
            Ok(0) => return true,
            Ok(_) | Err(io::ErrorKind::Interrupted) => {}
            Err(kind) => return kind != io::ErrorKind::WouldBlock,
        }
        if !waiting_input(fd) {
            return false;
        }
    }
}

/// Whether an input has ended by now; does not wait.
#[must_use]
pub fn input_has_ended(fd: RawFd) -> bool {
    let mut watched = [watch(fd, true, false)];
    wait(&mut watched, Some(0)).is_ok() && readable(&watched[0]) && input_ended(fd)
}

/// Reads up to 64 pending bytes from a descriptor and returns how many; does not wait.
#[must_use]
pub fn take_waiting(fd: RawFd) -> usize {
    let mut watched = [watch(fd, true, false)];
    if wait(&mut watched, Some(0)).is_err() || watched[0].revents & libc::POLLIN == 0 {
        return 0;
    }
    read(fd, &mut [0u8; 64]).unwrap_or(0)
}

fn waiting_input(fd: RawFd) -> bool {
    let mut watched = [watch(fd, true, false)];
    wait(&mut watched, Some(0)).is_ok() && watched[0].revents & libc::POLLIN != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_wakes_the_waiting_thread_and_is_silent_again() {
        let waker = Waker::new().expect("a descriptor");
        let mut watched = [watch(waker.fd(), true, false)];
        wait(&mut watched, Some(0)).expect("waits");
        assert!(!readable(&watched[0]));
        waker.wake();
        wait(&mut watched, None).expect("waits");
        assert!(readable(&watched[0]));
        waker.clear();
        wait(&mut watched, Some(0)).expect("waits");
        assert!(!readable(&watched[0]));
    }
}
