//! Stops threads by tracing them, which the kernel undoes automatically when the tracer ends for any reason.
//!
//! Every thread is seized, and its children are seized at birth, so neither a double fork nor a helper that exits
//! leaves the record. Signals pass through the tracer and are delivered at once, or at the thaw. A stop by job
//! control remains one.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::{WaitOptions, waitpid};

use super::checks::{self, Status};
use super::refusal::Refusal;
use crate::processes::{Pid, with_descendants};
use crate::signals::one;
use crate::time::now_ns;

const OPTIONS: usize =
    (libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXEC)
        as usize;
/// Passes over a tree, to find processes forked while it was being seized.
const ROUNDS: usize = 64;
/// Time for a thread to stop before its state is examined, ns.
const SLOW_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Stopped by the tracer, with the signal that it gets when continued; 0: none.
    Trapped(i32),
    /// Stopped by job control, and waiting for SIGCONT.
    Listening,
    /// A leader that ended before its threads: it reports nothing until they have ended.
    Ended,
}

#[derive(Debug)]
struct Thread {
    target: usize,
    process: Option<Pid>,
    state: State,
}

#[derive(Debug, Default)]
pub struct Tracing {
    threads: HashMap<Pid, Thread>,
    /// Targets that are frozen now.
    frozen: HashSet<usize>,
    /// The target that is being released. Its threads stopped by job control are then trapped too, since only trapped
    /// threads can be released.
    releasing: Option<usize>,
    /// Threads that stopped before their parent reported their birth.
    unknown: HashMap<Pid, i32>,
}

fn call(request: libc::c_uint, thread: Pid, data: usize) -> Result<(), i32> {
    // SAFETY: of these requests none reads or writes memory of this process by its address argument.
    let result = unsafe { libc::ptrace(request as _, thread, ptr::null_mut::<libc::c_void>(), data) };
    if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}

/// Returns the message of an event: the id of the new thread, or the former id of a thread that called exec.
fn message(thread: Pid) -> Option<Pid> {
    let mut found: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word to a live local.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG as _, thread, ptr::null_mut::<libc::c_void>(), &raw mut found) };
    (result == 0).then_some(found as Pid)
}

/// Returns the next event of a thread (`None`: of any), without waiting.
fn next(thread: Option<Pid>) -> Result<Option<(Pid, i32)>, Errno> {
    let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
    let found = match thread {
        Some(thread) => waitpid(Some(one(thread)?), options),
        None => rustix::process::wait(options),
    };
    Ok(found?.map(|(thread, status)| (thread.as_raw_pid(), status.as_raw())))
}

fn threads_of(process: Pid) -> Vec<Pid> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl Tracing {
    /// Seizes these processes and all their descendants, and from then on their new children. Processes that are
    /// traced already move to this target. `admit` is called before each process.
    ///
    /// # Errors
    /// When one may not be seized; those already seized stay so until [`Tracing::release`].
    pub fn seize(
        &mut self,
        target: usize,
        roots: &[Pid],
        mut admit: impl FnMut(Pid) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut done = BTreeSet::new();
        for _ in 0..ROUNDS {
            let found = with_descendants(roots);
            let new: Vec<Pid> = found.into_iter().filter(|pid| done.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            // Parents first, as far as process ids show the order: their later children are seized at birth.
            for pid in new {
                self.seize_process(target, pid, &mut admit)?;
            }
        }
        if roots.iter().any(|root| self.threads.values().any(|thread| thread.process == Some(*root))) {
            return Ok(());
        }
        Err(Refusal::Gone(roots.first().copied().unwrap_or(0)))
    }

    fn seize_process(
        &mut self,
        target: usize,
        pid: Pid,
        admit: &mut impl FnMut(Pid) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(found) = checks::status(pid) else { return Ok(()) };
        if matches!(found.state, 'Z' | 'X' | 'x') && threads_of(pid).len() < 2 {
            return Ok(());
        }
        checks::refuse_traced(pid, &found)?;
        admit(pid)?;
        for _ in 0..ROUNDS {
            let mut news = false;
            for thread in threads_of(pid) {
                if let Some(known) = self.threads.get_mut(&thread) {
                    (known.target, known.process) = (target, Some(pid));
                    continue;
                }
                match call(libc::PTRACE_SEIZE as _, thread, OPTIONS) {
                    Ok(()) => {
                        self.threads.insert(thread, Thread { target, process: Some(pid), state: State::Running });
                        news = true;
                    }
                    Err(libc::ESRCH) => {}
                    Err(_) if has_ended(thread) => {}
                    Err(libc::EPERM | libc::EACCES) => {
                        // It may have been seized at birth meanwhile; its first stop is then still to come.
                        match checks::status(thread) {
                            Some(Status { tracer, .. }) if tracer == std::process::id() as Pid => news = true,
                            Some(found) => {
                                checks::refuse_traced(pid, &found)?;
                                return Err(Refusal::NotPermitted(pid));
                            }
                            None => {}
                        }
                    }
                    Err(other) => return Err(Refusal::System(other)),
                }
            }
            self.hear_all();
            if !news {
                break;
            }
        }
        Ok(())
    }

    /// Returns the processes of a target.
    pub fn members(&mut self, target: usize) -> BTreeSet<Pid> {
        let mut found = BTreeSet::new();
        for (thread, known) in &mut self.threads {
            if known.target == target {
                if known.process.is_none() {
                    known.process = checks::status(*thread).map(|found| found.process);
                }
                found.extend(known.process);
            }
        }
        found
    }

    /// Stops every thread of a target and returns whether all were stopped within this time.
    pub fn freeze(&mut self, target: usize, within_ns: u64, signals: &OwnedFd) -> bool {
        self.frozen.insert(target);
        let mut waiting: VecDeque<Pid> = VecDeque::new();
        for (thread, known) in &self.threads {
            if known.target == target && known.state == State::Running {
                let _ = call(libc::PTRACE_INTERRUPT as _, *thread, 0); // if it has ended, that is seen below
                waiting.push_back(*thread);
            }
        }
        let begun = now_ns();
        while let Some(thread) = waiting.front().copied() {
            match self.threads.get(&thread).map(|known| known.state) {
                Some(State::Running) => {}
                _ => {
                    waiting.pop_front();
                    continue;
                }
            }
            match next(Some(thread)) {
                Ok(Some((thread, status))) => {
                    if let Some(born) = self.hear(thread, status) {
                        waiting.push_back(born);
                    }
                }
                Ok(None) => {
                    let spent = now_ns().saturating_sub(begun);
                    if spent >= within_ns {
                        return false;
                    }
                    if spent >= SLOW_NS {
                        match checks::status(thread).map(|found| found.state) {
                            // In an uninterruptible call it does not run, and it stops when the call ends.
                            Some('D') => {
                                waiting.pop_front();
                            }
                            Some('Z' | 'X' | 'x') | None => self.note(thread, State::Ended),
                            Some(_) => waiting.rotate_left(1),
                        }
                    }
                    wait_for_child(signals, SLOW_NS);
                }
                Err(_) => {
                    self.threads.remove(&thread); // another thread of its process called exec
                }
            }
        }
        true
    }

    /// Continues every thread of a target.
    pub fn thaw(&mut self, target: usize) {
        self.frozen.remove(&target);
        for (thread, known) in &mut self.threads {
            if let (true, State::Trapped(signal)) = (known.target == target, known.state) {
                let _ = call(libc::PTRACE_CONT as _, *thread, signal as usize); // if it was killed, that is seen later
                known.state = State::Running;
            }
        }
    }

    /// Continues every thread of a target and detaches from it.
    pub fn release(&mut self, target: usize, within_ns: u64, signals: &OwnedFd) {
        let listening: Vec<Pid> = self.of(target, |state| state == State::Listening);
        for thread in listening {
            self.note(thread, State::Running); // it stops again, in a state that can be released
        }
        self.releasing = Some(target);
        self.freeze(target, within_ns, signals);
        self.releasing = None;
        for thread in self.of(target, |_| true) {
            if let Some(Thread { state: State::Trapped(signal), .. }) = self.threads.remove(&thread) {
                let _ = call(libc::PTRACE_DETACH as _, thread, signal as usize);
            }
        }
        self.frozen.remove(&target);
    }

    fn of(&self, target: usize, which: impl Fn(State) -> bool) -> Vec<Pid> {
        let wanted = self.threads.iter().filter(|(_, known)| known.target == target && which(known.state));
        wanted.map(|(thread, _)| *thread).collect()
    }

    fn note(&mut self, thread: Pid, state: State) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.state = state;
        }
    }

    /// Handles all pending events of threads.
    pub fn hear_all(&mut self) {
        while let Ok(Some((thread, status))) = next(None) {
            self.hear(thread, status);
        }
    }

    /// Whether a thread is stopped whose parent has not reported its birth.
    pub fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Detaches from threads whose parent ended before it reported their birth.
    pub fn let_unknown_go(&mut self) {
        for (thread, status) in std::mem::take(&mut self.unknown) {
            let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
            let _ = call(libc::PTRACE_DETACH as _, thread, signal as usize);
        }
    }

    /// Handles an event of a thread. Returns the new thread, if it created one.
    fn hear(&mut self, thread: Pid, status: i32) -> Option<Pid> {
        if !libc::WIFSTOPPED(status) {
            self.threads.remove(&thread);
            self.unknown.remove(&thread);
            return None;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if event == libc::PTRACE_EVENT_EXEC {
            self.hear_exec(thread);
        }
        let Some(target) = self.threads.get(&thread).map(|known| known.target).or_else(|| self.adopt(thread)) else {
            self.unknown.insert(thread, status);
            return None;
        };
        match event {
            0 => self.hold_or_continue(thread, signal),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP && self.releasing != Some(target) => {
                let _ = call(libc::PTRACE_LISTEN as _, thread, 0);
                self.note(thread, State::Listening);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                let born = message(thread);
                if let Some(born) = born {
                    let process = (event != libc::PTRACE_EVENT_CLONE).then_some(born);
                    self.threads.entry(born).or_insert(Thread { target, process, state: State::Running });
                    if let Some(earlier) = self.unknown.remove(&born) {
                        self.hear(born, earlier);
                    }
                }
                self.hold_or_continue(thread, 0);
                return born;
            }
            _ => self.hold_or_continue(thread, 0),
        }
        None
    }

    /// Handles exec by a thread: it now has its process's id, and the other threads have ended.
    fn hear_exec(&mut self, thread: Pid) {
        let former = message(thread).unwrap_or(thread);
        if former != thread {
            if let Some(known) = self.threads.remove(&former) {
                self.threads.insert(thread, known);
            }
        }
    }

    /// Registers a thread that stopped before its parent's event was handled. Returns its target.
    fn adopt(&mut self, thread: Pid) -> Option<usize> {
        let process = checks::status(thread)?.process;
        let (parent, _) = crate::processes::parent_and_state(process)?;
        let known = self.threads.get(&process).or_else(|| self.threads.get(&parent))?;
        let target = known.target;
        self.threads.insert(thread, Thread { target, process: Some(process), state: State::Running });
        Some(target)
    }

    fn hold_or_continue(&mut self, thread: Pid, signal: i32) {
        let Some(known) = self.threads.get_mut(&thread) else { return };
        if self.frozen.contains(&known.target) {
            known.state = State::Trapped(signal);
        } else {
            let _ = call(libc::PTRACE_CONT as _, thread, signal as usize); // if it was killed, that is seen later
            known.state = State::Running;
        }
    }
}

/// Whether a thread has ended, although its id may still exist.
fn has_ended(thread: Pid) -> bool {
    checks::status(thread).is_none_or(|found| matches!(found.state, 'Z' | 'X' | 'x'))
}

/// Waits for an event of a thread, at most this long.
fn wait_for_child(signals: &OwnedFd, within_ns: u64) {
    let mut watched = [crate::waiting::watch(signals.as_raw_fd(), true, false)];
    if crate::waiting::wait(&mut watched, Some(within_ns)).is_ok() && crate::waiting::readable(&watched[0]) {
        crate::signals::discard(signals);
    }
}
