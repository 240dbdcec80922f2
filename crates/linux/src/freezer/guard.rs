//! The guard: the process that freezes and thaws. It undoes everything when the command that requested it has ended,
//! is overdue, or is finished.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, accessat};
use rustix::process::{Resource, Rlimit, getrlimit, pidfd_send_signal, setpriority_process, setrlimit};

use super::group::{Group, members};
use super::refusal::{Refusal, limit, most_processes};
use super::signals::Signalled;
use super::tracing::Tracing;
use super::wire;
use super::{Means, checks};
use crate::hardened;
use crate::processes::Pid;
use crate::signals::{Block, Signal, discard, kill_group, of_children};
use crate::time::{now_ns, sleep_until};
use crate::waiting::{ended, readable, wait, watch};

/// Longest wait for threads or a group to stop, ns.
const STOPPED_WITHIN_NS: u64 = 20_000_000;
/// A target this overdue is thawed, ns: a command that is itself stopped thaws nothing.
const LATE_NS: u64 = 1_000_000_000;
const LOOK_NS: u64 = 500_000_000;
const UNKNOWN_NS: u64 = 10_000_000;
const PATIENCE_NS: u64 = 2_000_000_000;

enum How {
    /// By tracing; for a control group with its directory.
    Traced(Option<PathBuf>),
    Signals(Signalled),
    Group(Group),
}

struct Target {
    how: How,
    roots: Vec<Pid>,
    /// Time when it should be thawed, on the monotonic clock, ns; `None`: it is not frozen.
    due_ns: Option<u64>,
}

struct Guard {
    command: UnixStream,
    signals: OwnedFd,
    /// The command's control group, which the guard may have left.
    command_group: Option<PathBuf>,
    tracing: Tracing,
    targets: BTreeMap<usize, Target>,
    next: usize,
    /// `/proc/PID` of each requested or found process, locked against other sessions.
    locks: BTreeMap<Pid, OwnedFd>,
    /// Process groups to end with the command.
    ends: Vec<Pid>,
}

/// Runs the guard until its end. `command` is the socket to the command, `alive` a descriptor of the command's
/// process.
pub fn live(command: UnixStream, alive: OwnedFd) {
    let command_group = crate::processes::own_group();
    hardened::outlive(&mut [command.as_raw_fd(), alive.as_raw_fd()]);
    raise_limits();
    let Ok(signals) = of_children(Block::ChildOnly) else { return };
    let mut guard = Guard {
        command,
        signals,
        command_group,
        tracing: Tracing::default(),
        targets: BTreeMap::new(),
        next: 0,
        locks: BTreeMap::new(),
        ends: Vec::new(),
    };
    let dismissed = wire::send(&guard.command, "ready").is_ok() && guard.serve(&alive);
    guard.thaw_all();
    if !dismissed {
        guard.end_all();
    }
}

/// Raises the limit of descriptors to this user's maximum, and the priority for a short delay on a busy host.
fn raise_limits() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let _ = setpriority_process(None, -20); // its delay delays the target; works for root only
}

impl Guard {
    /// Serves the command until it disconnects. Returns whether it reported that everything is done.
    fn serve(&mut self, alive: &OwnedFd) -> bool {
        loop {
            self.tracing.hear_all();
            let mut watched = [self.command.as_raw_fd(), self.signals.as_raw_fd(), alive.as_raw_fd()]
                .map(|descriptor| watch(descriptor, true, false));
            if wait(&mut watched, self.wake_after()).is_err() {
                return false;
            }
            if readable(&watched[1]) {
                discard(&self.signals);
                self.tracing.hear_all();
            } else if self.tracing.has_unknown() && !readable(&watched[0]) {
                self.tracing.let_unknown_go();
            }
            self.thaw_what_is_late();
            if readable(&watched[0]) {
                let Ok(line) = wire::receive(&self.command) else { return false };
                if line == "bye" {
                    return true;
                }
                let answer = match self.answer(&line) {
                    Ok(text) => format!("ok {text}"),
                    Err(refusal) => format!("no {}", refusal.encode()),
                };
                if wire::send(&self.command, &answer).is_err() {
                    return false;
                }
            } else if readable(&watched[2]) || ended(&watched[0]) {
                return false;
            }
        }
    }

    fn wake_after(&self) -> Option<u64> {
        if self.tracing.has_unknown() {
            return Some(UNKNOWN_NS);
        }
        self.targets.values().any(|target| target.due_ns.is_some()).then_some(LOOK_NS)
    }

    fn thaw_what_is_late(&mut self) {
        let now = now_ns();
        let late = |target: &Target| target.due_ns.is_some_and(|due| now > due.saturating_add(LATE_NS));
        let late: Vec<usize> = self.targets.iter().filter(|(_, each)| late(each)).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.thaw(id));
    }

    fn thaw_all(&mut self) {
        let all: Vec<usize> = self.targets.keys().copied().collect();
        all.into_iter().for_each(|id| self.thaw(id));
    }

    fn thaw(&mut self, id: usize) {
        let Some(target) = self.targets.get_mut(&id) else { return };
        match &mut target.how {
            How::Traced(_) => self.tracing.thaw(id),
            How::Signals(signalled) => signalled.thaw(),
            How::Group(group) => group.thaw(),
        }
        target.due_ns = None;
    }

    /// Ends the process groups started for the command, and processes that have left them: by SIGTERM first, then by
    /// SIGKILL.
    fn end_all(&mut self) {
        let started = |target: &Target| target.roots.iter().any(|root| self.ends.contains(root));
        let started: Vec<usize> = self.targets.iter().filter(|(_, each)| started(each)).map(|(id, _)| *id).collect();
        let others: Vec<OwnedFd> = started
            .into_iter()
            .flat_map(|id| {
                let members = self.members(id);
                self.release(id);
                members.into_iter().filter_map(|pid| checks::open_process(pid).ok())
            })
            .collect();
        for (signal, wait_ns) in [(Signal::TERM, PATIENCE_NS), (Signal::KILL, 0)] {
            let mut any = false;
            for group in &self.ends {
                any |= kill_group(*group, signal).is_ok(); // the command was their parent until a moment ago
            }
            any |= others.iter().filter(|process| pidfd_send_signal(process, signal).is_ok()).count() > 0;
            if any {
                sleep_until(now_ns() + wait_ns);
            }
        }
    }

    fn answer(&mut self, line: &str) -> Result<String, Refusal> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut numbers = rest.split(' ').map(|each| each.parse::<u64>().unwrap_or(0));
        let mut number = || numbers.next().unwrap_or(0);
        match word {
            "seize" => self.seize(rest),
            "group" => self.seize_group(Path::new(rest)),
            "extend" => {
                let id = number() as usize;
                let roots: Vec<Pid> = numbers.map(|each| each as Pid).collect();
                self.extend(id, &roots).map(|()| String::new())
            }
            "freeze" => {
                let (id, due_ns) = (number() as usize, number());
                self.freeze(id, due_ns)
            }
            "defer" => {
                let (id, due_ns) = (number() as usize, number());
                if let Some(due) = self.targets.get_mut(&id).and_then(|target| target.due_ns.as_mut()) {
                    *due = due_ns;
                }
                Ok(String::new())
            }
            "thaw" => {
                self.thaw(number() as usize);
                Ok(String::new())
            }
            "members" => Ok(wire::list(self.members(number() as usize))),
            "release" => {
                self.release(number() as usize);
                Ok(String::new())
            }
            "end" => {
                self.ends.push(number() as Pid);
                Ok(String::new())
            }
            "keep" => {
                let group = number() as Pid;
                self.ends.retain(|each| *each != group);
                Ok(String::new())
            }
            _ => Err(Refusal::System(libc::EINVAL)),
        }
    }

    /// Freezes a target and answers `ID MEANS EXPOSED`.
    fn add(&mut self, how: How, roots: &[Pid]) -> String {
        let (id, means) = (self.next, how.means());
        let exposed = match means {
            Means::Tracing => false,
            Means::Signals => true,
            Means::Group => !hardened::outlives(self.command_group.as_deref()),
        };
        self.next += 1;
        self.targets.insert(id, Target { how, roots: roots.to_vec(), due_ns: None });
        format!("{id} {} {}", means.name(), u8::from(exposed))
    }

    /// Handles the request `seize MEANS PID...`.
    fn seize(&mut self, rest: &str) -> Result<String, Refusal> {
        let (means, roots) = rest.split_once(' ').unwrap_or((rest, ""));
        let roots: Vec<Pid> = roots.split(' ').filter_map(|each| each.parse().ok()).collect();
        for root in &roots {
            checks::refuse_root(*root)?;
        }
        let locks = &mut self.locks;
        if means != Means::Signals.name() {
            let result = self.tracing.seize(self.next, &roots, |pid| lock(locks, pid));
            match result {
                Ok(()) => return Ok(self.add(How::Traced(None), &roots)),
                Err(refusal) => {
                    self.tracing.release(self.next, STOPPED_WITHIN_NS, &self.signals);
                    if !matches!(refusal, Refusal::NotPermitted(_)) || means == Means::Tracing.name() {
                        return Err(refusal);
                    }
                }
            }
        }
        let signalled = Signalled::new(&roots);
        signalled.check(|pid| lock(locks, pid))?;
        Ok(self.add(How::Signals(signalled), &roots))
    }

    fn extend(&mut self, id: usize, roots: &[Pid]) -> Result<(), Refusal> {
        let locks = &mut self.locks;
        match &mut self.targets.get_mut(&id).ok_or(Refusal::Gone(0))?.how {
            How::Traced(_) => self.tracing.seize(id, roots, |pid| lock(locks, pid)),
            How::Signals(signalled) => {
                let added = Signalled::new(roots);
                added.check(|pid| lock(locks, pid))?;
                signalled.roots.extend(added.roots);
                Ok(())
            }
            How::Group(_) => Ok(()),
        }
    }

    /// Uses the group's own freezer if the guard outlives the end of the command's group; otherwise traces its
    /// processes.
    fn seize_group(&mut self, directory: &Path) -> Result<String, Refusal> {
        let group = Group::new(directory);
        if let Err(refusal @ (Refusal::Frozen(_) | Refusal::InUse(_) | Refusal::Gone(_))) = group {
            return Err(refusal);
        }
        for pid in members(directory) {
            if let Some(found) = checks::status(pid) {
                checks::refuse_traced(pid, &found)?;
                lock(&mut self.locks, pid)?;
            }
        }
        let outlives = hardened::outlives(self.command_group.as_deref());
        match group {
            Ok(group) if outlives => Ok(self.add(How::Group(group), &[])),
            Ok(group) => match self.trace_group(directory) {
                Err(Refusal::NotPermitted(_)) => Ok(self.add(How::Group(group), &[])),
                other => other,
            },
            Err(_) => match self.trace_group(directory) {
                Err(Refusal::NotPermitted(_)) => {
                    let roots: Vec<Pid> = members(directory).into_iter().collect();
                    let signalled = Signalled::new(&roots);
                    signalled.check(|_| Ok(()))?;
                    Ok(self.add(How::Signals(signalled), &roots))
                }
                other => other,
            },
        }
    }

    fn trace_group(&mut self, directory: &Path) -> Result<String, Refusal> {
        let roots: Vec<Pid> = members(directory).into_iter().collect();
        match self.tracing.seize(self.next, &roots, |_| Ok(())) {
            Ok(()) => Ok(self.add(How::Traced(Some(directory.to_path_buf())), &[])),
            Err(refusal) => {
                self.tracing.release(self.next, STOPPED_WITHIN_NS, &self.signals);
                Err(refusal)
            }
        }
    }

    /// `BOOLEAN SINCE_NS PID...`: whether all are stopped, since when, and the processes that the command would have
    /// to continue.
    fn freeze(&mut self, id: usize, due_ns: u64) -> Result<String, Refusal> {
        let target = self.targets.get_mut(&id).ok_or(Refusal::Gone(0))?;
        target.due_ns = Some(due_ns);
        let result = match &mut target.how {
            How::Traced(directory) => {
                let locks = &mut self.locks;
                let arrivals = directory.as_deref().map_or(Ok(()), |directory| {
                    let roots: Vec<Pid> = members(directory).into_iter().collect();
                    match self.tracing.seize(id, &roots, |pid| lock(locks, pid)) {
                        Err(Refusal::Gone(_)) if !roots.is_empty() => Ok(()), // they have ended in the meantime
                        other => other,
                    }
                });
                arrivals.map(|()| (self.tracing.freeze(id, STOPPED_WITHIN_NS, &self.signals), String::new()))
            }
            How::Signals(signalled) => {
                signalled.freeze(STOPPED_WITHIN_NS).map(|all| (all, wire::list(signalled.stopped().collect())))
            }
            How::Group(group) => group.freeze(STOPPED_WITHIN_NS).map(|all| (all, String::new())),
        };
        match result {
            Ok((all, stopped)) => Ok(format!("{} {} {stopped}", u8::from(all), now_ns())),
            Err(refusal) => {
                self.thaw(id);
                Err(refusal)
            }
        }
    }

    fn members(&mut self, id: usize) -> std::collections::BTreeSet<Pid> {
        match self.targets.get(&id).map(|target| &target.how) {
            Some(How::Traced(None)) => self.tracing.members(id),
            Some(How::Traced(Some(directory))) => members(directory),
            Some(How::Signals(signalled)) => signalled.members(),
            Some(How::Group(group)) => group.members(),
            None => std::collections::BTreeSet::new(),
        }
    }

    fn release(&mut self, id: usize) {
        self.thaw(id);
        for pid in self.members(id) {
            self.locks.remove(&pid); // another session may freeze it from now on
        }
        if let Some(Target { how: How::Traced(_), .. }) = self.targets.remove(&id) {
            self.tracing.release(id, STOPPED_WITHIN_NS, &self.signals);
        }
    }
}

impl How {
    fn means(&self) -> Means {
        match self {
            Self::Traced(_) => Means::Tracing,
            Self::Signals(_) => Means::Signals,
            Self::Group(_) => Means::Group,
        }
    }
}

fn lock(locks: &mut BTreeMap<Pid, OwnedFd>, pid: Pid) -> Result<(), Refusal> {
    if let Some(old) = locks.get(&pid) {
        if is_alive(old) {
            return Ok(());
        }
        locks.remove(&pid);
    }
    if locks.len() >= most_processes() {
        locks.retain(|_, lock| is_alive(lock));
        if locks.len() >= most_processes() {
            return Err(Refusal::TooMany(limit()));
        }
    }
    match checks::lock_process(pid) {
        Ok(lock) => {
            locks.insert(pid, lock);
            Ok(())
        }
        Err(Refusal::Gone(_)) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

/// Whether the process of this `/proc/PID` is alive. If it has ended, the directory is empty, even if its id is in
/// use again.
fn is_alive(process: &OwnedFd) -> bool {
    accessat(process, c"stat", Access::EXISTS, AtFlags::empty()).is_ok()
}
