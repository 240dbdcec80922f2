//! Sockets and files: unsent bytes, gathering writes, and transfers without a copy.

use std::fs::File;
use std::io::{self, Write as _};
use std::mem::zeroed;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd as _};

fn option(stream: &TcpStream, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live local of the size that is passed along.
    let result = unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Limits the unsent bytes in a socket's buffer to `bytes`, beyond those in flight. Further bytes wait in this
/// process, where they can still be held back.
///
/// # Errors
/// When the kernel refuses.
pub fn limit_unsent(stream: &TcpStream, bytes: i32) -> io::Result<()> {
    option(stream, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes)
}

/// Sets how many connections the kernel keeps until they are accepted, up to its own limit.
///
/// # Errors
/// When the kernel refuses.
pub fn queue_up_to(listener: &TcpListener, connections: i32) -> io::Result<()> {
    // SAFETY: takes integers only; the socket is open, and listens already.
    let result = unsafe { libc::listen(listener.as_raw_fd(), connections) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const TCP_NOTSENT_LOWAT: i32 = 25; // linux/tcp.h

/// State of a connection's sending side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sending {
    /// Bytes that the other end has not acknowledged, including those not yet sent.
    pub outstanding: u64,
    /// Delivery rate last measured by the kernel, bytes/s; 0: not known.
    pub rate: f64,
    pub round_trip_s: f64,
}

/// Reads a connection's state from the kernel.
///
/// # Errors
/// When the connection is closed.
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
/// As `send`; a full socket returns `WouldBlock`.
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
/// As `sendfile`; a full socket returns `WouldBlock`, and a file that ends too early returns `UnexpectedEof`.
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
/// As `pread`; a file that ends too early returns `UnexpectedEof`.
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

/// Creates a file that exists in memory only, with this content.
///
/// # Errors
/// When the kernel does not support such files.
pub fn memory_file(content: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a C string, and a descriptor that was just opened has no other owner.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"message".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor)
    };
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

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
