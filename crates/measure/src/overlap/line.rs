//! One end of a connection that waits in one of three ways: by blocking, by asking again and again, or by asking for as
//! long as a wake-up would cost and blocking then.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use crosswind_schema::overlap::Waiting;

use crosswind_linux as linux;

/// Longest wait for the next byte: a peer that is silent for so long is gone. A ping behind burners of a higher priority waits
/// for as long as they compute.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Spinning looks at the clock so often: asking the kernel takes longer than looking.
const LOOKS: u32 = 8;

/// A connection and how it is waited on.
pub struct Line<'a> {
    stream: &'a TcpStream,
    wait: Waiting,
    spin_ns: u64,
}

#[derive(Clone, Copy)]
enum Direction {
    Receive,
    Send,
}

impl<'a> Line<'a> {
    /// Prepares a connection; blocking calls then end after [`PATIENCE`] too.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn new(stream: &'a TcpStream, wait: Waiting, spin_ns: u64) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, wait, spin_ns })
    }

    /// Receives exactly so many bytes.
    ///
    /// # Errors
    /// When the connection fails or ends, or nothing comes for [`PATIENCE`].
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        let socket = self.stream.as_raw_fd();
        let flags = if self.wait == Waiting::Event { libc::MSG_WAITALL } else { libc::MSG_DONTWAIT };
        self.move_all(buffer.len(), Direction::Receive, |done| {
            let rest = &mut buffer[done..];
            // SAFETY: the pointer and the length are those of a live slice.
            unsafe { libc::recv(socket, rest.as_mut_ptr().cast(), rest.len(), flags) }
        })
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// When the connection fails, or nothing is taken for [`PATIENCE`].
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let socket = self.stream.as_raw_fd();
        let waits = if self.wait == Waiting::Event { 0 } else { libc::MSG_DONTWAIT };
        self.move_all(message.len(), Direction::Send, |done| {
            let rest = &message[done..];
            // SAFETY: the pointer and the length are those of a live slice.
            unsafe { libc::send(socket, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL | waits) }
        })
    }

    fn move_all(&self, bytes: usize, direction: Direction, mut call: impl FnMut(usize) -> isize) -> io::Result<()> {
        let (mut done, mut idle_since) = (0usize, None);
        while done < bytes {
            match call(done) {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                moved if moved > 0 => {
                    done += moved as usize;
                    idle_since = None;
                }
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error if error.kind() == io::ErrorKind::WouldBlock => {
                        if self.wait == Waiting::Event {
                            return Err(io::ErrorKind::TimedOut.into()); // the socket's own patience
                        }
                        self.wait_on(*idle_since.get_or_insert_with(linux::now_ns), direction)?;
                    }
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Nothing could be moved since then: ask again, or block.
    fn wait_on(&self, idle_since_ns: u64, direction: Direction) -> io::Result<()> {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
        }
        let idle_ns = linux::now_ns().saturating_sub(idle_since_ns);
        if self.wait == Waiting::SpinBlock && idle_ns >= self.spin_ns {
            return self.block(direction);
        }
        if idle_ns > PATIENCE.as_nanos() as u64 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    fn block(&self, direction: Direction) -> io::Result<()> {
        let events = match direction {
            Direction::Receive => libc::POLLIN,
            Direction::Send => libc::POLLOUT,
        };
        let mut watched = libc::pollfd { fd: self.stream.as_raw_fd(), events, revents: 0 };
        // SAFETY: one live structure, and its count is passed along.
        match unsafe { libc::poll(&raw mut watched, 1, PATIENCE.as_millis() as i32) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            found if found > 0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}
