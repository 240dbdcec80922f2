//! Socket settings of data connections that affect interference, made explicit, and the values in force.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use crosswind_access::limits::PATIENCE;
use crosswind_access::place::resolve;
use crosswind_linux::TcpInfo;
use rustix::net::sockopt;

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
    sockopt::set_tcp_keepidle(&stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(2))?;
    sockopt::set_tcp_keepcnt(&stream, 3)?;
    sockopt::set_socket_keepalive(&stream, true)?;
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
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX / 2) as usize;
        sockopt::set_socket_send_buffer_size_force(stream, bytes)
            .or_else(|_| sockopt::set_socket_send_buffer_size(stream, bytes))?;
        sockopt::set_socket_recv_buffer_size_force(stream, bytes)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(stream, bytes))?;
    }
    congestion.map_or(Ok(()), |name| Ok(sockopt::set_tcp_congestion(stream, name)?))
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
    let bytes = |found: rustix::io::Result<usize>| found.ok().and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or(-1);
    InForce {
        congestion_control: sockopt::tcp_congestion(stream).unwrap_or_else(|_| "unknown".into()),
        send_buffer: bytes(sockopt::socket_send_buffer_size(stream)),
        receive_buffer: bytes(sockopt::socket_recv_buffer_size(stream)),
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
    TcpInfo::of(stream)?.bytes_acknowledged().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns the bytes that TCP has received since the start of the connection, including bytes not yet read.
///
/// # Errors
/// When the connection is gone, or the kernel is older than 4.1.
pub fn bytes_received(stream: &TcpStream) -> io::Result<u64> {
    TcpInfo::of(stream)?.bytes_received().ok_or_else(|| io::ErrorKind::Unsupported.into())
}
