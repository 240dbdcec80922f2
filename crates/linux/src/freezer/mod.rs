//! Freezes processes and control groups, and guarantees that they are thawed however this command ends.
//!
//! | question | module |
//! |---|---|
//! | how are threads stopped so that the kernel undoes it? | [`tracing`] |
//! | and where they may not be traced? | [`signals`], [`group`] |
//! | what is refused? | [`checks`], [`refusal`] |
//! | which process does it, and what if it is late or the command ends? | [`guard`], [`wire`] |
//!
//! A separate process, the guard, is forked before anything is frozen. It traces what is frozen ([`Means::Tracing`]):
//! when it ends, for any reason, the kernel continues everything. Where tracing is not permitted, it sends signals or
//! writes to a control group, and undoes that from its record. It outlives the command and what ends the command
//! ([`crate::hardened`]). It forwards signals to traced threads at once, which no thread of a busy command could.

mod checks;
mod group;
mod guard;
mod refusal;
mod signals;
#[cfg(test)]
mod tests;
mod tracing;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{PTracer, WaitStatus, set_ptracer};

use crate::children::{fork, kill_and_reap, reap};
use crate::processes::{Pid, with_descendants};
use crate::signals::{Signal, kill, one};
use crate::watchdog::process_descriptor;
pub use refusal::Refusal;

/// Time without an answer after which the guard is continued (it may have been stopped), and then given up.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Means {
    /// By tracing: the kernel undoes it automatically.
    Tracing,
    /// By SIGSTOP and SIGCONT; if this command and its guard are killed at once, stopped processes stay stopped.
    Signals,
    /// By `cgroup.freeze` of a control group; if both are killed at once, the group stays frozen.
    Group,
}

impl Means {
    /// Returns its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracing => "tracing",
            Self::Signals => "signals",
            Self::Group => "freezer",
        }
    }
}

/// Something that can be frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    id: usize,
    pub means: Means,
    /// Whether it would stay frozen if the command's control group, including the guard, were killed as a whole.
    pub exposed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Whether all of it was stopped within 20 ms.
    pub all: bool,
    /// Start of the freeze on the monotonic clock, ns.
    pub since_ns: u64,
}

/// Undo record, which the command itself applies if its guard is killed.
#[derive(Debug)]
enum Undo {
    /// The roots of the tree, and the stopped processes, some of which may have left the tree since.
    Processes {
        roots: Vec<Pid>,
        stopped: Vec<Pid>,
    },
    Group(PathBuf),
}

#[derive(Debug)]
struct Line {
    socket: UnixStream,
    /// Requested processes of each target that is stopped by signals.
    roots: BTreeMap<usize, Vec<Pid>>,
    /// Directories of the targets that are frozen as groups.
    groups: BTreeMap<usize, PathBuf>,
    /// Targets that are frozen now.
    undo: BTreeMap<usize, Undo>,
}

/// The command's handle of the guard.
#[derive(Debug)]
pub struct Freezer {
    pid: Pid,
    process: OwnedFd,
    line: Mutex<Line>,
}

impl Freezer {
    /// Forks the guard.
    ///
    /// # Errors
    /// When no process or descriptor is available.
    pub fn start() -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let alive = process_descriptor(std::process::id() as Pid)?;
        // SAFETY: the child makes system calls, reads files and allocates. It takes no lock of this process and uses no
        // Python. When it ends, the kernel releases the threads that it traces.
        let pid = unsafe { fork(move || guard::live(theirs, alive)) }?;
        let process = process_descriptor(pid).inspect_err(|_| kill_and_reap(pid))?;
        let line = Line { socket, roots: BTreeMap::new(), groups: BTreeMap::new(), undo: BTreeMap::new() };
        let found = Self { pid, process, line: Mutex::new(line) };
        let ready = found.receive(&mut found.locked());
        if ready.as_deref() == Some("ready") { Ok(found) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// Returns the process id of the guard.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns a descriptor that becomes readable once the guard has ended.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.process.as_raw_fd()
    }

    /// Seizes these processes and all their descendants: by tracing, so that later children belong to them even if
    /// their parent exits, or by signals where tracing is not permitted. `means` permits this method only.
    ///
    /// # Errors
    /// When one of them has ended, is a thread, is stopped, traced or frozen, or belongs to another session or user.
    pub fn seize(&self, roots: &[Pid], means: Option<Means>) -> Result<Target, Refusal> {
        let mut line = self.locked();
        let request = format!("seize {} {}", means.map_or("any", Means::name), listed(roots));
        let found = taken(&self.exchange(&mut line, &request)?)?;
        if found.means == Means::Signals {
            line.roots.insert(found.id, roots.to_vec());
        }
        Ok(found)
    }

    /// Seizes a control group of version 2: by its own freezer, or by tracing its processes if the guard would end
    /// with the command's own group.
    ///
    /// # Errors
    /// As for [`Freezer::seize`].
    pub fn seize_group(&self, directory: &Path) -> Result<Target, Refusal> {
        let text = directory.to_str().ok_or(Refusal::System(libc::EINVAL))?;
        let mut line = self.locked();
        let found = taken(&self.exchange(&mut line, &format!("group {text}"))?)?;
        if found.means == Means::Group {
            line.groups.insert(found.id, directory.to_path_buf());
        }
        Ok(found)
    }

    /// Adds processes and all their descendants. Those of another target move to this one.
    ///
    /// # Errors
    /// As for [`Freezer::seize`].
    pub fn extend(&self, target: Target, roots: &[Pid]) -> Result<(), Refusal> {
        let mut line = self.locked();
        self.exchange(&mut line, &format!("extend {} {}", target.id, listed(roots)))?;
        if let Some(known) = line.roots.get_mut(&target.id) {
            known.extend(roots);
        }
        Ok(())
    }

    /// Stops all of it until [`Freezer::thaw`], planned for `due_ns` on the monotonic clock. A second after that it
    /// is thawed automatically.
    ///
    /// # Errors
    /// When it has ended, or a process of it may no longer be stopped; then all of it runs.
    pub fn freeze(&self, target: Target, due_ns: u64) -> Result<Freeze, Refusal> {
        let mut line = self.locked();
        let roots = line.roots.get(&target.id).cloned();
        if let Some(roots) = roots.clone() {
            line.undo.insert(target.id, Undo::Processes { roots, stopped: Vec::new() });
        } else if let Some(directory) = line.groups.get(&target.id).cloned() {
            line.undo.insert(target.id, Undo::Group(directory));
        }
        let answer = self.exchange(&mut line, &format!("freeze {} {due_ns}", target.id)).inspect_err(|_| {
            line.undo.remove(&target.id); // all of it runs
        })?;
        let mut words = answer.split_ascii_whitespace();
        let all = words.next() == Some("1");
        let since_ns = words.next().and_then(|word| word.parse().ok()).ok_or(Refusal::Lost)?;
        if let Some(roots) = roots {
            let stopped = words.filter_map(|word| word.parse().ok()).collect();
            line.undo.insert(target.id, Undo::Processes { roots, stopped });
        }
        Ok(Freeze { all, since_ns })
    }

    /// Postpones the planned thaw of a frozen target.
    ///
    /// # Errors
    /// When the guard has ended.
    pub fn defer(&self, target: Target, due_ns: u64) -> Result<(), Refusal> {
        self.ask(&format!("defer {} {due_ns}", target.id)).map(|_| ())
    }

    /// Continues all of it; thawing twice is harmless.
    ///
    /// # Errors
    /// When the guard has ended; then all of it runs.
    pub fn thaw(&self, target: Target) -> Result<(), Refusal> {
        let mut line = self.locked();
        self.exchange(&mut line, &format!("thaw {}", target.id))?;
        line.undo.remove(&target.id);
        Ok(())
    }

    /// Returns its current processes.
    ///
    /// # Errors
    /// When the guard has ended.
    pub fn members(&self, target: Target) -> Result<Vec<Pid>, Refusal> {
        let answer = self.ask(&format!("members {}", target.id))?;
        Ok(answer.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
    }

    /// Thaws and releases it.
    ///
    /// # Errors
    /// When the guard has ended; then all of it runs.
    pub fn release(&self, target: Target) -> Result<(), Refusal> {
        let mut line = self.locked();
        self.exchange(&mut line, &format!("release {}", target.id))?;
        line.undo.remove(&target.id);
        line.roots.remove(&target.id);
        line.groups.remove(&target.id);
        Ok(())
    }

    /// Makes the guard end a process group if this command ends without [`Freezer::close`].
    ///
    /// # Errors
    /// When the guard has ended.
    pub fn end_with_command(&self, group: Pid) -> Result<(), Refusal> {
        self.ask(&format!("end {group}")).map(|_| ())
    }

    /// Reverts [`Freezer::end_with_command`], for a group that has ended.
    ///
    /// # Errors
    /// When the guard has ended.
    pub fn forget(&self, group: Pid) -> Result<(), Refusal> {
        self.ask(&format!("keep {group}")).map(|_| ())
    }

    /// Thaws and releases everything, and waits for the end of the guard.
    pub fn close(self) {
        drop(self);
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, text: &str) -> Result<String, Refusal> {
        self.exchange(&mut self.locked(), text)
    }

    fn exchange(&self, line: &mut Line, text: &str) -> Result<String, Refusal> {
        let answer = wire::send(&line.socket, text).ok().and_then(|()| self.receive(line));
        let Some(answer) = answer else {
            let _ = kill(self.pid, Signal::KILL); // when it ends, the processes that it traces continue
            ends_within(&self.process, PATIENCE); // until then it holds the locks of groups
            undo(line);
            return Err(Refusal::Lost);
        };
        match answer.split_once(' ') {
            Some(("ok", rest)) => Ok(rest.into()),
            Some((_, refusal)) => Err(Refusal::decode(refusal)),
            None => Err(Refusal::Lost),
        }
    }

    /// Waits for an answer; `None` when the guard has ended, or does not answer even after being continued.
    fn receive(&self, line: &mut Line) -> Option<String> {
        let mut watched = [crate::waiting::watch(line.socket.as_raw_fd(), true, false)];
        let begun = Instant::now();
        for patience in [PATIENCE, 2 * PATIENCE] {
            while begun.elapsed() < patience {
                let left = patience.saturating_sub(begun.elapsed()).as_nanos() as u64;
                crate::waiting::wait(&mut watched, Some(left)).ok()?;
                if crate::waiting::readable(&watched[0]) {
                    return wire::receive(&line.socket).ok();
                }
            }
            let _ = kill(self.pid, Signal::CONT); // our own child, not yet waited for
        }
        None
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        let told = wire::send(&line.socket, "bye").is_ok();
        for patience in [PATIENCE, PATIENCE] {
            if told && ends_within(&self.process, patience) {
                if !reap(self.pid).is_none_or(WaitStatus::exited) {
                    undo(line);
                }
                return;
            }
            let _ = kill(self.pid, Signal::CONT); // our own child, not yet waited for
        }
        kill_and_reap(self.pid);
        undo(line);
    }
}

fn listed(pids: &[Pid]) -> String {
    pids.iter().map(Pid::to_string).collect::<Vec<_>>().join(" ")
}

fn taken(answer: &str) -> Result<Target, Refusal> {
    let words: Vec<&str> = answer.split(' ').collect();
    let &[id, means, exposed] = words.as_slice() else { return Err(Refusal::Lost) };
    let means = [Means::Tracing, Means::Signals, Means::Group].into_iter().find(|each| each.name() == means);
    let id = id.parse().map_err(|_| Refusal::Lost)?;
    Ok(Target { id, means: means.ok_or(Refusal::Lost)?, exposed: exposed == "1" })
}

/// Continues everything that a killed guard left stopped.
fn undo(line: &mut Line) {
    for each in std::mem::take(&mut line.undo).into_values() {
        match each {
            Undo::Processes { roots, stopped } => {
                for pid in with_descendants(&roots).into_iter().chain(stopped) {
                    let _ = kill(pid, Signal::CONT); // continuing a running process is harmless
                }
            }
            Undo::Group(directory) => group::undo(&directory),
        }
    }
}

/// Whether a process has ended or ends within this time.
fn ends_within(process: &OwnedFd, patience: Duration) -> bool {
    let mut watched = [crate::waiting::watch(process.as_raw_fd(), true, false)];
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed()).as_nanos() as u64;
        if crate::waiting::wait(&mut watched, Some(left)).is_err() || crate::waiting::readable(&watched[0]) {
            return crate::waiting::readable(&watched[0]);
        }
        if left == 0 {
            return false;
        }
    }
}

/// For a child between fork and exec: permits `tracer` to trace it where the kernel lets only parents trace (Yama).
pub fn permit_tracing_by(tracer: Pid) {
    // Kernels without Yama refuse the call and do not need it.
    let _ = one(tracer).and_then(|tracer| set_ptracer(PTracer::ProcessID(tracer)));
}
