//! Captures what this process prints, and what processes that it starts print: standard output and standard error become
//! a pipe, which a thread reads.
//!
//! So a Python function's own prints, its logging, its libraries' and its programs' output take the same way, and none
//! of them fills a disk. What was in the pipe when the process was killed, its watchdog writes to the original
//! standard error ([`Rest`]).

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, fcntl_dupfd_cloexec, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};

use crate::farm::printer::Printer;
use crosswind_linux as linux;

/// The first descriptor above those of standard input and output.
const FIRST_FREE: RawFd = 3;
/// Bytes that are read at a time: the capacity of a pipe.
const READ: usize = 64 << 10;
/// After fewer bytes than this, the thread pauses before it reads again: not every line of a task costs a wake-up.
const FEW: usize = READ / 4;
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes that go to the original standard error where no run shows them.
const KEPT: usize = 1 << 20;

/// The captured output of this process.
pub(crate) struct Capture {
    pipe: OwnedFd,
    originals: [OwnedFd; 2],
    state: Mutex<State>,
    /// Whether anything has been printed that a run shows.
    has_shown: AtomicBool,
}

struct State {
    /// Where it goes. `None` where no run shows it.
    printer: Option<Arc<Printer>>,
    /// Bytes that still go to the original standard error.
    room: usize,
    buffer: Vec<u8>,
}

impl Capture {
    /// Begins to capture, for as long as this process lives, or until [`Self::end`].
    ///
    /// # Errors
    /// When no descriptor or thread is available.
    pub fn start() -> io::Result<Arc<Self>> {
        let (pipe, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let original = |stream| fcntl_dupfd_cloexec(stream, FIRST_FREE);
        let originals = [original(stdout())?, original(stderr())?];
        let state = Mutex::new(State { printer: None, room: KEPT, buffer: vec![0; READ] });
        let capture = Arc::new(Self { pipe, originals, state, has_shown: AtomicBool::new(false) });
        let own = Arc::clone(&capture);
        std::thread::Builder::new().name("cw-printed".into()).spawn(move || own.follow())?;
        dup2_stdout(&theirs)?;
        dup2_stderr(&theirs)?;
        Ok(capture)
    }

    /// Passes on to a printer what is captured from now on; with `None`, a limited amount goes where it went before.
    pub fn show(&self, printer: Option<Arc<Printer>>) {
        self.state().printer = printer;
    }

    /// Passes on what has been printed by now.
    pub fn drain(&self) {
        self.pass(&mut self.state());
    }

    /// Whether anything has been printed that a run shows.
    pub fn has_shown(&self) -> bool {
        self.has_shown.load(Ordering::Relaxed)
    }

    fn pass(&self, state: &mut State) -> Option<usize> {
        let passed = state.pass(&self.pipe, &self.originals[1]);
        if state.printer.is_some() && passed.is_some_and(|bytes| bytes > 0) {
            self.has_shown.store(true, Ordering::Relaxed);
        }
        passed
    }

    /// Lets this process print as before.
    pub fn end(&self) {
        let _ = dup2_stdout(&self.originals[0]); // descriptors that are open cannot fail
        let _ = dup2_stderr(&self.originals[1]);
        self.show(None);
        self.drain();
    }

    /// Returns what a watchdog needs to save the rest.
    pub fn rest(&self) -> Rest {
        Rest { pipe: self.pipe.as_raw_fd(), original: self.originals[1].as_raw_fd() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self) {
        loop {
            let mut watched = [linux::watch(self.pipe.as_raw_fd(), true, false)];
            if linux::wait(&mut watched, None).is_err() {
                return;
            }
            let passed = self.pass(&mut self.state());
            match passed {
                None => return,
                Some(few) if few < FEW => std::thread::sleep(PAUSE),
                Some(_) => {}
            }
        }
    }
}

impl State {
    /// Passes on up to a pipe's capacity. Returns how many bytes; `None` when nothing can print any more.
    fn pass(&mut self, pipe: &OwnedFd, original: &OwnedFd) -> Option<usize> {
        let bytes = match read(pipe, &mut self.buffer) {
            Ok(0) => return None,
            Ok(count) => &self.buffer[..count],
            Err(Errno::AGAIN | Errno::INTR) => return Some(0),
            Err(_) => return None,
        };
        match &self.printer {
            Some(printer) => printer.print(bytes),
            None => {
                let kept = &bytes[..bytes.len().min(self.room)];
                self.room -= kept.len();
                let _ = write(original, kept); // for people to read: no failure of a task
            }
        }
        Some(bytes.len())
    }
}

/// Descriptors of what a process had printed when it was killed.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    pipe: RawFd,
    original: RawFd,
}

impl Rest {
    #[must_use]
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.pipe, self.original]
    }

    /// Writes what is left to the original standard error. Called in a watchdog, which has copies of the descriptors.
    pub fn save(&self) {
        let mut buffer = [0; READ];
        // SAFETY: the watchdog keeps both descriptors open, and nothing in it owns them.
        let [pipe, original] = self.descriptors().map(|fd| unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) });
        if let Ok(count) = read(pipe.as_fd(), &mut buffer) {
            let _ = write(original.as_fd(), &buffer[..count]);
        }
    }
}
