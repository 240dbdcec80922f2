//! The processes of a task: a command and all its descendants, which are ended together.
//!
//! Each command has a supervisor, a process between the agent and the shell ([`supervisor`]). The supervisor is the
//! reaper of all descendants of the shell, so it also finds processes that fork twice or start a session of their own. It
//! reports the shell's end immediately, then ends the remaining processes: SIGTERM, the grace period, SIGKILL. It also
//! ends them if the command exceeds its time limit, the agent drops the command, or the agent ends for any reason. Then it
//! is ready for another command.
//!
//! Processes started by Python code on an agent have no such parent: see [`marked`]. Memory limits: [`memory`].

pub mod marked;
pub mod memory;
mod pipes;
mod program;
mod supervisor;

use std::collections::HashSet;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::farm::command::{Direct, Workplace};
use crosswind_agent::settings::TaskLimits;
use crosswind_linux::children;
use crosswind_linux::signals::{Signal, kill};
use memory::Group;
use pipes::Pipes;
use supervisor::Supervisor;

pub use crosswind_linux::processes::Pid;
pub use pipes::Output;

/// Interval at which the end of supervisors is checked.
const LOOK: Duration = Duration::from_millis(10);

pub struct Wanted<'a> {
    pub line: &'a [u8],
    /// The same without a shell, if it needs none.
    pub direct: Option<Direct>,
    /// Whether its standard output is wanted; otherwise it is discarded.
    pub has_stdout: bool,
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

/// It waits for another command: all processes of the last have ended.
const READY: u8 = 4;

/// Ends a process: by SIGTERM, once, and by SIGKILL when its time is over. Its number is its own: it has not been reaped,
/// or existed a moment ago.
fn end(pid: Pid, is_over: bool, asked: &mut HashSet<Pid>) {
    if is_over {
        let _ = kill(pid, Signal::KILL); // it may have ended
    } else if asked.insert(pid) {
        let _ = (kill(pid, Signal::TERM), kill(pid, Signal::CONT));
    }
}

/// The supervisors of this process.
static SUPERVISORS: Mutex<Supervisors> =
    Mutex::new(Supervisors { agent: 0, pids: Vec::new(), done: Vec::new(), idle: Vec::new() });

struct Supervisors {
    /// Whose they are. A forked child begins without.
    agent: u32,
    /// Those that have not been reaped.
    pids: Vec<Pid>,
    /// Those that have reported the end of a command. They wait for another one, or soon will.
    done: Vec<Supervisor>,
    /// Those that wait for a command.
    idle: Vec<Supervisor>,
}

impl Supervisors {
    /// Reaps those that have ended. Returns whether any is left.
    fn reap(&mut self) -> bool {
        self.pids.retain(|pid| matches!(children::ended(*pid), Ok(None)));
        !self.pids.is_empty()
    }

    /// Returns one that waits for a command. Others that wait, left by commands that ended at the same time, may end.
    fn take(&mut self) -> io::Result<Supervisor> {
        let mut found = self.idle.pop();
        for mut supervisor in std::mem::take(&mut self.done) {
            match supervisor.is_ready(found.is_none()) {
                Some(true) => found = Some(supervisor),
                Some(false) => self.done.push(supervisor),
                None => {}
            }
        }
        if let Some(found) = found {
            return Ok(found);
        }
        self.reap();
        let supervisor = Supervisor::start()?;
        self.pids.push(supervisor.pid);
        Ok(supervisor)
    }
}

fn supervisors() -> MutexGuard<'static, Supervisors> {
    let mut all = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let agent = std::process::id();
    if all.agent != agent {
        // Their directories are those of the process that this one was forked from.
        let Supervisors { done, idle, .. } = &mut *all;
        done.iter_mut().chain(idle).for_each(|other| std::mem::forget(other.workplace.take()));
        *all = Supervisors { agent, pids: Vec::new(), done: Vec::new(), idle: Vec::new() };
    }
    all
}

/// Waits up to `patience` until all commands of this process have ended with all their processes.
pub fn wait_for_all(patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        let mut all = supervisors();
        all.done.clear();
        all.idle.clear();
        if !all.reap() || Instant::now() >= until {
            return;
        }
        drop(all);
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

    /// Returns what runs one command. `None` once commands are dropped.
    ///
    /// # Errors
    /// When no process or descriptor is available for a supervisor.
    pub fn slot(&self) -> io::Result<Option<Slot<'_>>> {
        let supervisor = supervisors().take()?;
        let stream = supervisor.stream.try_clone()?;
        let slot = Slot { canceller: self, supervisor: Some(supervisor), has_run: false };
        let mut state = self.state();
        if state.dropped {
            return Ok(None);
        }
        state.running = Some(stream);
        drop(state);
        Ok(Some(slot))
    }
}

/// A supervisor that waits for a command.
pub struct Slot<'a> {
    canceller: &'a Canceller,
    /// `None` once it has ended.
    supervisor: Option<Supervisor>,
    has_run: bool,
}

impl Slot<'_> {
    /// Takes the directory in which the last command worked, of which no process is left.
    pub fn workplace(&mut self) -> Option<Workplace> {
        self.supervisor.as_mut()?.workplace.take()
    }

    /// Runs a command. Returns when it has ended, or, after a timeout, when all its processes have ended.
    ///
    /// # Errors
    /// When no process or descriptor is available for the command.
    pub fn run(&mut self, wanted: &Wanted<'_>, output: &mut dyn Output) -> io::Result<End> {
        if wanted.line.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command holds a 0 byte"));
        }
        let Some(mut supervisor) = self.supervisor.take() else { return Ok(End::Dropped) };
        self.has_run = true;
        let end = Pipes::new(wanted.has_stdout).and_then(|mut pipes| {
            supervisor.hand_over(wanted, &pipes)?;
            pipes.leave();
            let end = supervisor.report(&mut pipes, output);
            pipes.pass(output);
            end
        });
        self.canceller.state().running = None;
        match end {
            Ok(Some(end)) => {
                self.supervisor = Some(supervisor);
                Ok(end)
            }
            Ok(None) => Ok(End::Dropped),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(End::Dropped),
            Err(error) => Err(error),
        }
    }

    /// Gives back the supervisor, with the directory for its next command.
    pub fn end(mut self, workplace: Option<Workplace>) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.workplace = workplace;
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.canceller.state().running = None;
        if let Some(supervisor) = self.supervisor.take() {
            let mut all = supervisors();
            if self.has_run { all.done.push(supervisor) } else { all.idle.push(supervisor) }
        }
    }
}

#[cfg(test)]
mod tests;
