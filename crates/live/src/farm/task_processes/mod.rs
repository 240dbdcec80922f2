//! The processes of a task: a command and all its descendants, which are ended together.
//!
//! Each command has a supervisor, a process between the agent and the shell ([`supervisor`]). The supervisor is the
//! reaper of all descendants of the shell, so it also finds processes that fork twice or start a session of their own. It
//! reports the shell's end immediately, then ends the remaining processes: SIGTERM, the grace period, SIGKILL. It also
//! ends them if the command exceeds its time limit, the agent drops the command, or the agent ends for any reason.
//!
//! Processes started by Python code on an agent have no such parent: see [`marked`]. Memory limits: [`memory`].

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

/// Interval at which the end of supervisors is checked.
const LOOK: Duration = Duration::from_millis(10);

/// A command to run.
pub struct Wanted<'a> {
    /// Shell command line.
    pub line: &'a [u8],
    /// Receives standard output. `None` discards it.
    pub stdout: Option<File>,
    pub stderr: File,
    pub limits: &'a TaskLimits,
    /// Control group that limits the command's memory.
    pub group: Option<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(ExitStatus),
    /// It exceeded its time limit.
    OverTime,
    /// Its processes exceeded their memory limit.
    OverMemory,
    /// The agent dropped it, or its supervisor was ended.
    Dropped,
}

/// First byte of a supervisor's report. Four bytes follow: the shell's status for `EXITED`, an errno for `FAILED`,
/// otherwise 0.
const EXITED: u8 = 0;
const OVER_TIME: u8 = 1;
const OVER_MEMORY: u8 = 2;
/// The status is the errno of the kernel's error.
const FAILED: u8 = 3;

/// Supervisors of this process that have not been reaped.
static SUPERVISORS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn supervisors() -> MutexGuard<'static, Vec<Pid>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaps supervisors that have ended. Returns whether any is left.
fn reap() -> bool {
    let mut left = supervisors();
    // SAFETY: the children are our own; their status is not needed.
    left.retain(|pid| unsafe { libc::waitpid(*pid, std::ptr::null_mut(), libc::WNOHANG) } == 0);
    !left.is_empty()
}

/// Waits up to `patience` until all commands of this process have ended with all their processes.
pub fn wait_for_all(patience: Duration) {
    let until = Instant::now() + patience;
    while reap() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// Drops the running command from another thread.
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

    /// Ends the running command, and every later one.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.dropped = true;
        if let Some(stream) = state.running.take() {
            // The supervisor may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Runs a command. Returns when its shell has ended, or, after a timeout, when all its processes have ended.
    ///
    /// # Errors
    /// When no process or descriptor is available for the supervisor or for the command.
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
