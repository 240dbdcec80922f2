//! Socket settings of data connections that affect interference, made explicit, and the values in force.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use crosswind_access::limits::PATIENCE;
use crosswind_access::place::resolve;

/// Connects to the first address that answers.
///
/// # Errors
/// The error of the last address tried.
pub fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for candidate in resolve(address)? {
        match TcpStream::connect_timeout(&candidate, PATIENCE) {
            Ok(stream) => return prepare(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sets TCP_NODELAY, a timeout for every read and write, and keepalive for a silent other end.
///
/// # Errors
/// When the connection is closed.
pub fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    for (name, value) in [(libc::TCP_KEEPIDLE, 5), (libc::TCP_KEEPINTVL, 2), (libc::TCP_KEEPCNT, 3)] {
        set(&stream, libc::IPPROTO_TCP, name, value)?;
    }
    set(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    Ok(stream)
}

/// Configures a data connection: no timeouts, with buffers and congestion control as requested.
///
/// A buffer larger than the system permits is forced if privileges allow it; otherwise the kernel limits it.
/// [`in_force`] returns the result.
///
/// # Errors
/// When a congestion control is not available.
pub fn for_data(stream: &TcpStream, buffer_bytes: Option<u64>, congestion: Option<&str>) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    if let Some(bytes) = buffer_bytes {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
        let both = [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)];
        for (forced, plain) in both {
            set(stream, libc::SOL_SOCKET, forced, bytes).or_else(|_| set(stream, libc::SOL_SOCKET, plain, bytes))?;
        }
    }
    if let Some(name) = congestion {
        // SAFETY: the pointer and the length are those of a live string.
        let done = unsafe {
            let (name, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
            libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, length)
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn set(stream: &TcpStream, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a live integer.
    let done = unsafe {
        let (value, length) = ((&raw const value).cast(), size_of::<i32>() as libc::socklen_t);
        libc::setsockopt(stream.as_raw_fd(), level, name, value, length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Settings in force on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    pub congestion_control: String,
    /// Send buffer as the kernel counts it, bytes.
    pub send_buffer: i32,
    /// Receive buffer as the kernel counts it, bytes.
    pub receive_buffer: i32,
}

/// Reads the settings in force from the kernel.
#[must_use]
pub fn in_force(stream: &TcpStream) -> InForce {
    let mut name = [0u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the buffer is live and its length is passed along.
    let done = unsafe {
        let buffer = name.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, buffer, &raw mut length)
    };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let congestion_control = if done == 0 { String::from_utf8_lossy(name).into_owned() } else { "unknown".into() };
    InForce {
        congestion_control,
        send_buffer: get(stream, libc::SO_SNDBUF),
        receive_buffer: get(stream, libc::SO_RCVBUF),
    }
}

/// Returns the bytes that the other end's TCP has acknowledged since the start of the connection.
///
/// Finer than a count of the bytes handed over: a blocking call counts when it returns, and it waits until a third of
/// the send buffer is free.
///
/// # Errors
/// When the connection is gone, or the kernel is older than 4.1.
pub fn bytes_acknowledged(stream: &TcpStream) -> io::Result<u64> {
    tcp_counter(stream, 120) // tcpi_bytes_acked
}

/// Returns the bytes that TCP has received since the start of the connection, including bytes not yet read.
///
/// # Errors
/// When the connection is gone, or the kernel is older than 4.1.
pub fn bytes_received(stream: &TcpStream) -> io::Result<u64> {
    tcp_counter(stream, 128) // tcpi_bytes_received
}

/// Reads the counter at this offset of `tcp_info` in linux/tcp.h; the libc crate's structure ends before it.
fn tcp_counter(stream: &TcpStream, at: usize) -> io::Result<u64> {
    let mut info = [0u8; 136];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the buffer is live and its length is passed along.
    let done = unsafe {
        let buffer = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, buffer, &raw mut length)
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    match info[at..at + 8].try_into() {
        Ok(bytes) if length as usize >= at + 8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn get(stream: &TcpStream, name: i32) -> i32 {
    let (mut value, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the integer is live and its length is passed along.
    let done = unsafe {
        let value = (&raw mut value).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, name, value, &raw mut length)
    };
    if done == 0 { value } else { -1 }
}
