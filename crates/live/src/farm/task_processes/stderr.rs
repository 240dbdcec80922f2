//! The standard error of a command: a pipe, which is read while the command runs, so that nothing is stored.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};

use crosswind_linux as linux;

/// Bytes that are read at a time.
const PIECE: usize = 8 << 10;
/// Bytes that are read before anything else is looked at: the capacity of a pipe.
const MOST: usize = 64 << 10;
/// After so few bytes, only the end of the command is waited for during a pause: not every line costs a wake-up.
const FEW: usize = MOST / 4;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Stderr {
    reading: OwnedFd,
    /// The command's end, until its supervisor has it.
    writing: Option<OwnedFd>,
    has_ended: bool,
}

impl Stderr {
    pub fn new() -> io::Result<Self> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reading, fcntl_getfl(&reading)? | OFlags::NONBLOCK)?;
        Ok(Self { reading, writing: Some(writing), has_ended: false })
    }

    /// Returns both ends for the supervisor: the command's, then the one that is read.
    pub fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.writing.iter().map(AsFd::as_fd).chain([self.reading.as_fd()])
    }

    /// Leaves the command's end to the supervisor.
    pub fn leave(&mut self) {
        self.writing = None;
    }

    /// Passes on what the command prints until another descriptor is readable.
    pub fn pass_until(&mut self, other: BorrowedFd<'_>, said: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut pause = None;
        loop {
            let own = if self.has_ended || pause.is_some() { -1 } else { self.reading.as_raw_fd() };
            let mut watched = [other.as_raw_fd(), own].map(|fd| linux::watch(fd, true, false));
            linux::wait(&mut watched, pause.take())?;
            if linux::readable(&watched[0]) {
                return Ok(());
            }
            if linux::readable(&watched[1]) && self.pass(said) < FEW {
                pause = Some(PAUSE.as_nanos() as u64);
            }
        }
    }

    /// Passes on what the command has printed by now, up to a pipe's capacity. Returns how many bytes.
    pub fn pass(&mut self, said: &mut dyn FnMut(&[u8])) -> usize {
        let (mut piece, mut count) = ([0; PIECE], 0);
        while count < MOST {
            match read(&self.reading, &mut piece) {
                Ok(0) => self.has_ended = true,
                Ok(bytes) => {
                    said(&piece[..bytes]);
                    count += bytes;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(_) => {} // there is nothing at present
            }
            break;
        }
        count
    }
}
