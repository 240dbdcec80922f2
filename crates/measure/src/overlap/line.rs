//! One end of a connection, with three ways to wait: block, poll, or poll for about the cost of a wake-up and then
//! block.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use crosswind_schema::overlap::Waiting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crosswind_linux as linux;

/// Longest wait for the next byte; after that the peer counts as lost. A ping behind burners of a higher priority
/// waits for as long as they compute.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Spin-loop hints between two polls of the connection; each poll also reads the clock.
const LOOKS: u32 = 8;

/// A connection and its way to wait.
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
    /// Prepares a connection; blocking calls time out after [`PATIENCE`] too.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn new(stream: &'a TcpStream, wait: Waiting, spin_ns: u64) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, wait, spin_ns })
    }

    /// Receives until the buffer is full.
    ///
    /// # Errors
    /// When the connection fails or ends, or nothing arrives for [`PATIENCE`].
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        let flags = if self.wait == Waiting::Event { RecvFlags::WAITALL } else { RecvFlags::DONTWAIT };
        self.move_all(buffer.len(), Direction::Receive, |done| {
            recv(self.stream, &mut buffer[done..], flags).map(|(received, _)| received)
        })
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// When the connection fails, or nothing is taken for [`PATIENCE`].
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let waits = if self.wait == Waiting::Event { SendFlags::empty() } else { SendFlags::DONTWAIT };
        self.move_all(message.len(), Direction::Send, |done| {
            send(self.stream, &message[done..], SendFlags::NOSIGNAL | waits)
        })
    }

    fn move_all(
        &self,
        bytes: usize,
        direction: Direction,
        mut call: impl FnMut(usize) -> Result<usize, Errno>,
    ) -> io::Result<()> {
        let (mut done, mut idle_since) = (0usize, None);
        while done < bytes {
            match call(done) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(moved) => {
                    done += moved;
                    idle_since = None;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if self.wait == Waiting::Event {
                        return Err(io::ErrorKind::TimedOut.into()); // the socket's own timeout
                    }
                    self.wait_on(*idle_since.get_or_insert_with(linux::now_ns), direction)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits after nothing could be moved since `idle_since_ns`: polls again, or blocks.
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
            Direction::Receive => PollFlags::IN,
            Direction::Send => PollFlags::OUT,
        };
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as _, tv_nsec: 0 };
        match poll(&mut [PollFd::new(self.stream, events)], Some(&patience)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
