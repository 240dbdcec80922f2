//! A connection between two ranks, or between a rank and the conductor, with buffers for reading and writing.
//!
//! It never blocks. Bytes that the kernel does not accept remain here until the next [`Channel::flush`].

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

use crosswind_access::Transport;

use super::wire::{self, Wire};
use crate::farm::link::bad;
use crosswind_linux as linux;

/// Number of bytes to read before other channels are served.
const TURN: usize = 1 << 20;
/// Initial size of the read buffer, bytes.
const INPUT: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Channel {
    stream: TcpStream,
    out: Vec<u8>,
    out_from: usize,
    input: Vec<u8>,
    from: usize,
    to: usize,
}

impl Channel {
    /// Creates a channel over a stream; `rest` was already read with the handshake.
    pub fn new(stream: Transport, rest: &[u8]) -> io::Result<Self> {
        // Ranks connect on loopback only, without TLS.
        let stream = stream.into_plain().ok_or_else(|| io::Error::other("ranks are not sealed"))?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut input = vec![0; INPUT.max(rest.len())];
        input[..rest.len()].copy_from_slice(rest);
        Ok(Self { stream, out: Vec::new(), out_from: 0, input, from: 0, to: rest.len() })
    }

    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Returns whether bytes wait until the kernel accepts them.
    pub fn is_full(&self) -> bool {
        self.out_from < self.out.len()
    }

    /// Sends a frame as soon as the kernel accepts it. A message is padded to at least `bytes` bytes on the wire.
    pub fn send_wire(&mut self, what: &Wire, bytes: u64) -> io::Result<()> {
        what.encode(bytes, &mut self.out);
        self.flush()
    }

    /// Sends raw bytes, which belong to the handshake.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        self.flush()
    }

    /// Writes as much as the kernel accepts.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.out_from < self.out.len() {
            match linux::send_both(&self.stream, &self.out[self.out_from..], &[], false) {
                Ok(sent) => self.out_from += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.out_from = 0;
        Ok(())
    }

    /// Reads the available bytes, up to about [`TURN`].
    ///
    /// # Errors
    /// When the connection has ended. Everything that arrived before has been read.
    pub fn fill(&mut self) -> io::Result<()> {
        let mut turn = 0;
        while turn < TURN {
            self.make_room();
            match (&self.stream).read(&mut self.input[self.to..]) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
                Ok(read) => {
                    (self.to, turn) = (self.to + read, turn + read);
                    if self.to < self.input.len() {
                        return Ok(()); // most likely nothing more is available: saves a system call
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn make_room(&mut self) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.input.len() {
            if self.from > 0 {
                self.input.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            } else {
                self.input.resize(self.input.len() * 2, 0); // a long frame; the decoder limits it
            }
        }
    }

    /// Returns the next frame in the read buffer.
    pub fn next(&mut self) -> io::Result<Option<Wire>> {
        let Some((frame, used)) = wire::decode(&self.input[self.from..self.to]).map_err(bad)? else { return Ok(None) };
        self.from += used;
        Ok(Some(frame))
    }
}
