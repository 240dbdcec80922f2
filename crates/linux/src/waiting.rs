//! Waits for many descriptors, with exact timers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A descriptor and the events to wait for.
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
    let wanted = descriptors as libc::rlim_t;
    // SAFETY: the pointers are to a live local.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            // If the limit stays too low, connections are refused when no descriptor is left.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
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
        // SAFETY: takes integers only; a descriptor that was just opened has no other owner.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(OwnedFd::from_raw_fd(fd))) }
        }
    }

    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn wake(&self) {
        // SAFETY: eight live bytes. A full counter is already set.
        unsafe { libc::write(self.fd(), (&raw const ONE).cast(), 8) };
    }

    pub fn clear(&self) {
        let mut rung = 0u64;
        // SAFETY: eight live bytes. Clearing a clear waker is no failure.
        unsafe { libc::read(self.fd(), (&raw mut rung).cast(), 8) };
    }
}

static ONE: u64 = 1;

/// Whether standard input has ended, which means that the process that started this one has ended.
#[must_use]
pub fn input_ended(fd: RawFd) -> bool {
    let mut bytes = [0u8; 256];
    loop {
        // SAFETY: the buffer is live and its length is passed along.
        match unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) } {
            0 => return true,
            read if read > 0 => {}
            _ => match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => return false,
                _ => return true,
            },
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
    let mut bytes = [0u8; 64];
    // SAFETY: the buffer is live and its length is passed along.
    let read = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
    usize::try_from(read).unwrap_or(0)
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
