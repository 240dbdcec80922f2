//! The processes of a task: a command with all that it starts, ended together.
//!
//! Each command has a supervisor, a process between the agent and the shell ([`supervisor`]). It is the reaper of all that
//! descends from the shell, so a process that forks twice or makes a session of its own is found too. It reports the
//! shell's end immediately, then ends what is left: SIGTERM, the grace, SIGKILL. It does the same when the command is over its
//! time, when the agent drops the command, and when the agent is no more, however the agent ended.
//!
//! What Python code on an agent leaves behind has no such parent: see [`marked`]. A task's memory: [`memory`].

pub mod marked;
pub mod memory;
mod supervisor;

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosswind_agent::settings::TaskLimits;
use memory::Group;

/// Number of a process.
pub type Pid = libc::pid_t;

/// How often the end of supervisors is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// A command to be run.
pub struct Wanted<'a> {
    /// As a shell takes it.
    pub line: &'a str,
    /// Takes what it prints; none: that is dropped.
    pub stdout: Option<File>,
    pub stderr: File,
    pub limits: &'a TaskLimits,
    /// The control group that limits its memory.
    pub group: Option<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(ExitStatus),
    /// It was over its time.
    OverTime,
    /// Its processes wanted more memory than they may take.
    OverMemory,
    /// It was dropped, or its supervisor was ended.
    Dropped,
}

/// What a supervisor reports: one of these, and the shell's status where there is one.
const EXITED: u8 = 0;
const OVER_TIME: u8 = 1;
const OVER_MEMORY: u8 = 2;
/// The number of the kernel's error stands where the status would.
const FAILED: u8 = 3;

/// Supervisors of this process that have not been waited for.
static SUPERVISORS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn supervisors() -> MutexGuard<'static, Vec<Pid>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for those that have ended; whether any is left.
fn reap() -> bool {
    let mut left = supervisors();
    // SAFETY: our own children; their status is not wanted.
    left.retain(|pid| unsafe { libc::waitpid(*pid, std::ptr::null_mut(), libc::WNOHANG) } == 0);
    !left.is_empty()
}

/// Waits until all commands of this process have ended with all their processes, at most so long.
pub fn wait_for_all(patience: Duration) {
    let until = Instant::now() + patience;
    while reap() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// Drops the command that runs, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    dropped: bool,
    running: Option<UnixStream>,
}

impl Canceller {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the command that runs, and every one that begins later.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.dropped = true;
        if let Some(stream) = state.running.take() {
            // One that has ended need not hear it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Runs a command, and returns when its shell has ended, or all of it where it was over its time.
    ///
    /// # Errors
    /// When no process or descriptor is left, for the supervisor or for the command.
    pub fn run(&self, wanted: Wanted<'_>) -> io::Result<End> {
        reap();
        let line = CString::new(wanted.line)?;
        let (own, theirs) = UnixStream::pair()?;
        {
            let mut state = self.state();
            if state.dropped {
                return Ok(End::Dropped);
            }
            state.running = Some(own.try_clone()?);
        }
        let started = supervisor::Start {
            line: &line,
            report: theirs.as_raw_fd(),
            stdout: wanted.stdout.as_ref().map(AsRawFd::as_raw_fd),
            stderr: wanted.stderr.as_raw_fd(),
            group: wanted.group.as_ref(),
            timeout: wanted.limits.timeout_s.map(Duration::from_secs_f64),
            grace: Duration::from_secs_f64(wanted.limits.grace_s),
        };
        supervisors().push(supervisor::start(&started)?);
        drop(theirs);
        let end = report(own);
        self.state().running = None;
        end
    }
}

fn report(mut supervisor: UnixStream) -> io::Result<End> {
    let mut said = [0u8; 5];
    if supervisor.read_exact(&mut said).is_err() {
        return Ok(End::Dropped);
    }
    let [kind, status @ ..] = said;
    let status = i32::from_ne_bytes(status);
    match kind {
        OVER_TIME => Ok(End::OverTime),
        OVER_MEMORY => Ok(End::OverMemory),
        FAILED => Err(io::Error::from_raw_os_error(status)),
        _ => Ok(End::Exited(ExitStatus::from_raw(status))),
    }
}

#[cfg(test)]
mod tests;
