//! Sockets and files: unsent bytes, gathering writes, and transfers without a copy.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;

use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::net::{SendAncillaryBuffer, SendFlags, listen, sendmsg};

/// Sets an option of a socket that is an integer.
///
/// # Errors
/// When the kernel refuses.
fn set_option(stream: &TcpStream, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live local of the size that is passed along.
    let result = unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option of a socket into a buffer. Returns what the kernel has filled.
///
/// # Errors
/// When the kernel refuses.
pub fn option<'a>(stream: &TcpStream, level: i32, name: i32, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut size = into.len() as libc::socklen_t;
    // SAFETY: the buffer is live and its size is passed along.
    let result = unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &raw mut size) };
    if result == 0 { Ok(&into[..into.len().min(size as usize)]) } else { Err(io::Error::last_os_error()) }
}

/// `struct tcp_info` of linux/tcp.h, as far as this kernel fills it. The structures of the libc crate and of others end
/// before the counters.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    bytes: [u8; Self::BYTES],
    filled: usize,
}

impl TcpInfo {
    const BYTES: usize = 168;

    /// Reads the state of a connection.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn of(stream: &TcpStream) -> io::Result<Self> {
        let mut bytes = [0u8; Self::BYTES];
        let filled = option(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?.len();
        Ok(Self { bytes, filled })
    }

    fn field<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes[..self.filled].get(at..at + N)?.try_into().ok()
    }

    /// Returns the bytes that the other end has acknowledged since the start of the connection; `None` before Linux 4.1.
    #[must_use]
    pub fn bytes_acknowledged(&self) -> Option<u64> {
        self.field(120).map(u64::from_ne_bytes)
    }

    /// Returns the bytes that have arrived since the start of the connection; `None` before Linux 4.1.
    #[must_use]
    pub fn bytes_received(&self) -> Option<u64> {
        self.field(128).map(u64::from_ne_bytes)
    }

    /// Returns the shortest round trip measured, us; `None` before Linux 4.6 and before the first.
    fn shortest_round_trip_us(&self) -> Option<u32> {
        self.field(148).map(u32::from_ne_bytes).filter(|time| *time != u32::MAX)
    }

    /// Returns the delivery rate last measured, bytes/s; `None` before Linux 4.9.
    fn delivery_rate(&self) -> Option<u64> {
        self.field(160).map(u64::from_ne_bytes)
    }
}

/// Limits the unsent bytes in a socket's buffer to `bytes`, beyond those in flight. Further bytes wait in this
/// process, where they can still be held back.
///
/// # Errors
/// When the kernel refuses.
pub fn limit_unsent(stream: &TcpStream, bytes: i32) -> io::Result<()> {
    set_option(stream, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes)
}

/// Sets how many connections the kernel keeps until they are accepted, up to its own limit.
///
/// # Errors
/// When the kernel refuses.
pub fn queue_up_to(listener: &TcpListener, connections: i32) -> io::Result<()> {
    Ok(listen(listener, connections)?)
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
    let info = TcpInfo::of(stream)?;
    Ok(Sending {
        outstanding: outstanding.max(0) as u64,
        rate: info.delivery_rate().unwrap_or(0) as f64,
        round_trip_s: f64::from(info.shortest_round_trip_us().unwrap_or(0)) * 1e-6,
    })
}

/// Writes two slices in one call.
///
/// # Errors
/// As `send`; a full socket returns `WouldBlock`.
pub fn send_both(stream: &TcpStream, first: &[u8], second: &[u8], more: bool) -> io::Result<usize> {
    let more = if more { SendFlags::MORE } else { SendFlags::empty() };
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more;
    let parts = [IoSlice::new(first), IoSlice::new(second)];
    Ok(sendmsg(stream, &parts, &mut SendAncillaryBuffer::default(), flags)?)
}

/// Sends part of a file without copying it through this process.
///
/// # Errors
/// As `sendfile`; a full socket returns `WouldBlock`, and a file that ends too early returns `UnexpectedEof`.
pub fn send_file(stream: &TcpStream, file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut at = offset;
    match sendfile(stream, file, Some(&mut at), bytes)? {
        0 if bytes > 0 => Err(shorter()),
        sent => Ok(sent),
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
    let mut file = File::from(memfd_create(c"message", MemfdFlags::CLOEXEC)?);
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
