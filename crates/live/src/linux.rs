//! The calls to the kernel that std does not offer: waiting for many sockets with exact timers, what a socket still holds,
//! gathering writes, files sent without a copy.

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Nanoseconds of the monotonic clock.
#[must_use]
pub fn now_ns() -> u64 {
    // SAFETY: an all-zero timespec is a valid value, and the pointer is to a live local.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets this thread's timers fire when they are due rather than up to 50 us later.
pub fn exact_timers() {
    // SAFETY: takes and returns integers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

/// What is waited for at one descriptor.
pub type Watched = libc::pollfd;

/// An entry for [`wait`].
#[must_use]
pub fn watch(fd: RawFd, read: bool, write: bool) -> Watched {
    let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
    Watched { fd, events, revents: 0 }
}

/// Whether something can be read there, or the connection is at its end.
#[must_use]
pub fn readable(watched: &Watched) -> bool {
    watched.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether the connection is at its end.
#[must_use]
pub fn ended(watched: &Watched) -> bool {
    watched.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether something can be written there.
#[must_use]
pub fn writable(watched: &Watched) -> bool {
    watched.revents & libc::POLLOUT != 0
}

/// Waits until something happens at one of the descriptors, or the time is over.
///
/// # Errors
/// When the kernel refuses; a signal is no error.
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
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that has not rung.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes integers only; a descriptor that was just opened has no other owner.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(OwnedFd::from_raw_fd(fd))) }
        }
    }

    /// What to watch.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Rings.
    pub fn ring(&self) {
        // SAFETY: eight live bytes. A full counter rings already.
        unsafe { libc::write(self.fd(), (&raw const ONE).cast(), 8) };
    }

    /// Is silent again.
    pub fn silence(&self) {
        let mut rung = 0u64;
        // SAFETY: eight live bytes. Silence that was there already is no failure.
        unsafe { libc::read(self.fd(), (&raw mut rung).cast(), 8) };
    }
}

static ONE: u64 = 1;

fn option(stream: &TcpStream, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live local of the size that is passed along.
    let result = unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets a socket take no more than so many bytes beyond those that are on their way: what waits, waits with us, where it can
/// still be held back.
///
/// # Errors
/// When the kernel refuses.
pub fn limit_unsent(stream: &TcpStream, bytes: i32) -> io::Result<()> {
    option(stream, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes)
}

const TCP_NOTSENT_LOWAT: i32 = 25; // linux/tcp.h

/// What a connection's sending side is like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sending {
    /// Bytes that the other end has not acknowledged, those not yet sent among them.
    pub outstanding: u64,
    /// Bytes per second at which they arrive, as the kernel saw it last; 0: not known.
    pub rate: f64,
    /// The shortest time there and back, s.
    pub round_trip_s: f64,
}

/// Asks the kernel about a connection.
///
/// # Errors
/// When it is no connection any more.
pub fn sending(stream: &TcpStream) -> io::Result<Sending> {
    let mut outstanding = 0i32;
    // SAFETY: TIOCOUTQ (SIOCOUTQ) writes one int, to a live local.
    if unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut outstanding) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // linux/tcp.h, struct tcp_info; older kernels fill less of it.
    const MIN_RTT: usize = 148;
    const DELIVERY_RATE: usize = 160;
    let mut info = [0u8; 168];
    let mut size = info.len() as libc::socklen_t;
    // SAFETY: the buffer is live and its size is passed along.
    let result = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut size)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let known = |at: usize, bytes: usize| at + bytes <= size as usize;
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let round_trip_us = if known(MIN_RTT, 4) { word(MIN_RTT) } else { 0 };
    let rate = if known(DELIVERY_RATE, 8) {
        let (first, second) = (u64::from(word(DELIVERY_RATE)), u64::from(word(DELIVERY_RATE + 4)));
        if cfg!(target_endian = "little") { first | second << 32 } else { first << 32 | second }
    } else {
        0
    };
    let round_trip_s = if round_trip_us == u32::MAX { 0.0 } else { f64::from(round_trip_us) * 1e-6 };
    Ok(Sending { outstanding: outstanding.max(0) as u64, rate: rate as f64, round_trip_s })
}

/// Writes two slices in one call.
///
/// # Errors
/// As `send`; a full socket is `WouldBlock`.
pub fn send_both(stream: &TcpStream, first: &[u8], second: &[u8], more: bool) -> io::Result<usize> {
    let mut parts = [
        libc::iovec { iov_base: first.as_ptr().cast_mut().cast(), iov_len: first.len() },
        libc::iovec { iov_base: second.as_ptr().cast_mut().cast(), iov_len: second.len() },
    ];
    // SAFETY: an all-zero msghdr is valid; both parts are those of live slices, which the kernel only reads.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = 2;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | if more { libc::MSG_MORE } else { 0 };
        libc::sendmsg(stream.as_raw_fd(), &raw const message, flags)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Sends part of a file without copying it through this process.
///
/// # Errors
/// As `sendfile`; a full socket is `WouldBlock`, a file that ends too early `UnexpectedEof`.
pub fn send_file(stream: &TcpStream, file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut at = offset as libc::off_t;
    // SAFETY: both descriptors are open, and the pointer is to a live local.
    let sent = unsafe { libc::sendfile(stream.as_raw_fd(), file.as_raw_fd(), &raw mut at, bytes) };
    match sent {
        0 if bytes > 0 => Err(shorter()),
        sent if sent < 0 => Err(io::Error::last_os_error()),
        sent => Ok(sent as usize),
    }
}

/// Reads part of a file.
///
/// # Errors
/// As `pread`; a file that ends too early is `UnexpectedEof`.
pub fn read_file(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    use std::os::unix::fs::FileExt as _;
    match file.read_at(into, offset) {
        Ok(0) if !into.is_empty() => Err(shorter()),
        result => result,
    }
}

fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was")
}

/// Whether standard input has ended: then the process that started this one is gone.
#[must_use]
pub fn input_ended() -> bool {
    let mut bytes = [0u8; 256];
    loop {
        // SAFETY: the buffer is live and its length is passed along.
        match unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) } {
            0 => return true,
            read if read > 0 => {}
            _ => match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => return false,
                _ => return true,
            },
        }
        if !waiting_input() {
            return false;
        }
    }
}

/// Whether the input has ended by now; does not wait.
#[must_use]
pub fn input_has_ended() -> bool {
    let mut watched = [watch(0, true, false)];
    wait(&mut watched, Some(0)).is_ok() && readable(&watched[0]) && input_ended()
}

/// Takes what waits at a descriptor, and says how many bytes that was; does not wait, and 64 are enough.
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

fn waiting_input() -> bool {
    let mut watched = [watch(0, true, false)];
    wait(&mut watched, Some(0)).is_ok() && watched[0].revents & libc::POLLIN != 0
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_bell_wakes_the_waiting_thread_and_is_silent_again() {
        let bell = Bell::new().expect("a descriptor");
        let mut watched = [watch(bell.fd(), true, false)];
        wait(&mut watched, Some(0)).expect("waits");
        assert!(!readable(&watched[0]));
        bell.ring();
        wait(&mut watched, None).expect("waits");
        assert!(readable(&watched[0]));
        bell.silence();
        wait(&mut watched, Some(0)).expect("waits");
        assert!(!readable(&watched[0]));
    }

    #[test]
    fn unread_bytes_are_known() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (other, _) = listener.accept().expect("accepts");
        stream.set_nonblocking(true).expect("a socket");
        let block = vec![0u8; 1 << 20];
        while send_both(&stream, &block, &block, false).is_ok() {}
        assert!(sending(&stream).expect("open").outstanding > 0);
        drop(other);
    }
}
