//! The standard streams of a command: pipes, which are read while it runs.
//!
//! Nothing is stored that is not wanted, and a command that prints without end fills nothing.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};

use crosswind_linux as linux;

/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;
/// Bytes that are read before anything else is looked at: the capacity of a pipe.
const MOST: usize = 64 << 10;
/// After fewer bytes than this, only the end of the command is waited for during a pause: not every line costs a wake-up.
const FEW: usize = MOST / 4;
const PAUSE: Duration = Duration::from_millis(5);

/// Takes what a command prints.
pub trait Output {
    fn stdout(&mut self, bytes: &[u8]);
    fn stderr(&mut self, bytes: &[u8]);
}

/// The pipes of a command: standard error, and standard output if it is wanted.
pub(super) struct Pipes {
    stderr: Pipe,
    stdout: Option<Pipe>,
}

struct Pipe {
    reading: OwnedFd,
    /// The command's end, until its supervisor has it.
    writing: Option<OwnedFd>,
    has_ended: bool,
}

impl Pipes {
    pub fn new(has_stdout: bool) -> io::Result<Self> {
        Ok(Self { stderr: Pipe::new()?, stdout: has_stdout.then(Pipe::new).transpose()? })
    }

    /// Returns both ends of each pipe for the supervisor: first the command's.
    pub fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.stderr), self.stdout.as_ref()].into_iter().flatten().flat_map(Pipe::ends)
    }

    /// Leaves the command's ends to the supervisor.
    pub fn leave(&mut self) {
        self.stderr.writing = None;
        if let Some(stdout) = &mut self.stdout {
            stdout.writing = None;
        }
    }

    /// Passes on what the command prints until another descriptor is readable. Returns whether that is so within a time.
    pub fn pass_until(&mut self, other: BorrowedFd<'_>, time: Duration, output: &mut dyn Output) -> io::Result<bool> {
        let until = Instant::now() + time;
        let mut pause = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let watch = |pipe: Option<&Pipe>| pipe.filter(|_| pause.is_none()).map_or(-1, Pipe::watched);
            let own = [watch(Some(&self.stderr)), watch(self.stdout.as_ref())];
            let mut watched = [other.as_raw_fd(), own[0], own[1]].map(|fd| linux::watch(fd, true, false));
            linux::wait(&mut watched, Some(pause.take().unwrap_or(left).min(left).as_nanos() as u64))?;
            if linux::readable(&watched[0]) {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            if watched[1..].iter().any(linux::readable) && self.pass(output) < FEW {
                pause = Some(PAUSE);
            }
        }
    }

    /// Passes on what the command has printed by now, up to a pipe's capacity of each. Returns how many bytes.
    pub fn pass(&mut self, output: &mut dyn Output) -> usize {
        let count = self.stderr.pass(&mut |bytes| output.stderr(bytes));
        count + self.stdout.as_mut().map_or(0, |stdout| stdout.pass(&mut |bytes| output.stdout(bytes)))
    }
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reading, fcntl_getfl(&reading)? | OFlags::NONBLOCK)?;
        Ok(Self { reading, writing: Some(writing), has_ended: false })
    }

    fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.writing.iter().map(AsFd::as_fd).chain([self.reading.as_fd()])
    }

    fn watched(&self) -> i32 {
        if self.has_ended { -1 } else { self.reading.as_raw_fd() }
    }

    fn pass(&mut self, take: &mut dyn FnMut(&[u8])) -> usize {
        let (mut piece, mut count) = ([0; PIECE], 0);
        while count < MOST {
            match read(&self.reading, &mut piece) {
                Ok(0) => self.has_ended = true,
                Ok(bytes) => {
                    take(&piece[..bytes]);
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
