//! The process between an agent and its commands' shells. It is forked without exec: it takes no lock of the agent, runs no
//! Python, and leaves through `_exit`. glibc prepares its allocator for a forked child, so allocating is allowed.
//!
//! Copying an agent's page tables takes longer than many commands, so a supervisor is forked once and takes one command
//! after the other. It is ready for the next one once all processes of the last have ended. Shells share its memory until
//! their program begins (`CLONE_VFORK`), so nothing is copied for them.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_void};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, sendmsg,
};
use rustix::process::{
    PidfdFlags, WaitOptions, getpid, getppid, pidfd_open, set_child_subreaper, set_parent_process_death_signal, setsid,
};

use super::memory::Group;
use super::pipes::{Output, Pipes};
use super::program::Program;
use super::{EXITED, End, FAILED, OVER_MEMORY, OVER_TIME, Pid, READY, Wanted, end};
use crate::farm::command::{Direct, Workplace};
use crosswind_linux as linux;
use crosswind_linux::children::{close_all_but, fork};
use crosswind_linux::processes::{parent_and_state, with_descendants};
use crosswind_linux::signals::{Block, Signal, discard, kill, of_children};

/// The first descriptor above those of standard input and output.
const FIRST_FREE: RawFd = 3;
/// Interval at which new descendants are looked up while a tree of processes ends.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait after SIGKILL. By then only processes that sleep in the kernel or belong to another user are left.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// How long a supervisor stays stopped at most.
const STOPPED: Duration = Duration::from_secs(1);
/// How long a supervisor that has reported the end of a command is waited for before another one is forked, ns. That
/// would take longer.
const SOON_NS: u64 = 5_000_000;
/// Length of a supervisor's report, bytes.
const REPORT: usize = 5;
/// Bytes of a shell's stack until its program begins.
const STACK: usize = 64 << 10;

/// A supervisor, as its agent holds it. It ends when the stream is closed.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub pid: Pid,
    pub stream: UnixStream,
    /// For its next command.
    pub workplace: Option<Workplace>,
    /// Whether it was waited for since its last command: what that left behind takes long to end.
    was_awaited: bool,
}

impl Supervisor {
    /// Forks a supervisor and returns its handle.
    pub fn start() -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        // SAFETY: see the head of this file.
        let pid = unsafe { fork(move || supervise(theirs)) }?;
        Ok(Self { pid, stream, workplace: None, was_awaited: false })
    }

    /// Hands a command over. Reports follow on the stream.
    pub fn hand_over(&mut self, wanted: &Wanted<'_>, pipes: &Pipes) -> io::Result<()> {
        self.was_awaited = false;
        let descriptors: Vec<_> = pipes.ends().collect();
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let group = wanted.group.as_ref().map(Group::to_bytes).unwrap_or_default();
        let direct = wanted.direct.as_ref().map(Direct::to_bytes).unwrap_or_default();
        let header = Header {
            line: wanted.line.len() as u64,
            group: group.len() as u64,
            direct: direct.len() as u64,
            timeout_ns: wanted.limits.timeout_s.map_or(u64::MAX, |s| ns(Duration::from_secs_f64(s))),
            grace_ns: ns(Duration::from_secs_f64(wanted.limits.grace_s)),
        };
        let header = header.to_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        // So short a message is taken whole or not at all.
        sendmsg(&self.stream, &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL)?;
        self.stream.write_all(&[&group, wanted.line, &direct].concat())
    }

    /// Waits for the end of the command, and passes on what it prints meanwhile. `None` when it was dropped, or the
    /// supervisor was ended.
    ///
    /// # Errors
    /// Why the command could not be started.
    pub fn report(&mut self, pipes: &mut Pipes, output: &mut dyn Output) -> io::Result<Option<End>> {
        while !pipes.pass_until(self.stream.as_fd(), STOPPED, output)? {
            self.continue_if_stopped();
        }
        let mut report = [0; REPORT];
        if self.stream.read_exact(&mut report).is_err() {
            return Ok(None);
        }
        let [kind, status @ ..] = report;
        let status = i32::from_ne_bytes(status);
        match kind {
            OVER_TIME => Ok(Some(End::OverTime)),
            OVER_MEMORY => Ok(Some(End::OverMemory)),
            FAILED => Err(io::Error::from_raw_os_error(status)),
            _ => Ok(Some(End::Exited(ExitStatus::from_raw(status)))),
        }
    }

    /// Its command may have stopped it (`kill -STOP $PPID`): then neither an end nor a limit would be seen.
    fn continue_if_stopped(&self) {
        if parent_and_state(self.pid).is_some_and(|(_, state)| state == 'T') {
            let _ = kill(self.pid, Signal::CONT);
        }
    }

    /// Whether it waits for another command, after its report. `None` when it has ended. If it is `needed`, it gets some
    /// time for that, once after each command.
    pub fn is_ready(&mut self, needed: bool) -> Option<bool> {
        if needed && !std::mem::replace(&mut self.was_awaited, true) {
            let _ = linux::wait(&mut [linux::watch(self.stream.as_raw_fd(), true, false)], Some(SOON_NS)); // or a signal
        }
        let mut report = [0; REPORT];
        match recv(&self.stream, &mut report, RecvFlags::DONTWAIT) {
            Ok((_, REPORT)) => (report[0] == READY).then_some(true),
            Err(Errno::AGAIN) => Some(false),
            _ => None,
        }
    }
}

/// What precedes the bytes of a command: their lengths, and its limits.
struct Header {
    line: u64,
    group: u64,
    direct: u64,
    /// `u64::MAX` means no time limit.
    timeout_ns: u64,
    grace_ns: u64,
}

impl Header {
    const BYTES: usize = 40;

    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = [self.line, self.group, self.direct, self.timeout_ns, self.grace_ns].map(u64::to_ne_bytes);
        words.concat().try_into().unwrap_or([0; Self::BYTES])
    }

    fn of(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| bytes[8 * at..8 * at + 8].try_into().map_or(0, u64::from_ne_bytes);
        Self { line: word(0), group: word(1), direct: word(2), timeout_ns: word(3), grace_ns: word(4) }
    }
}

/// A command, as its supervisor has received it.
struct Task {
    line: CString,
    /// What is executed without a shell.
    direct: Option<Program>,
    group: Option<Group>,
    /// Both ends of the pipes for standard error and, if that is wanted, for standard output: first the command's. They stay
    /// open until all processes have ended: writing ends none of them, and for the agent no pipe ends before the command.
    pipes: Vec<OwnedFd>,
    timeout: Option<Duration>,
    grace: Duration,
}

/// What a supervisor waits for.
struct Ends {
    /// Readable once the agent has ended. `None` before Linux 5.3, where only the end of the stream shows that.
    agent: Option<OwnedFd>,
    stream: UnixStream,
    /// Readable after SIGCHLD.
    children: OwnedFd,
}

impl Ends {
    /// Waits for the end of the agent, for what it says (or does not want any more), or for a child.
    fn wait(&self, time: Option<Duration>) -> io::Result<[bool; 3]> {
        let agent = self.agent.as_ref().map_or(-1, |agent| agent.as_raw_fd());
        let ready = wait([agent, self.stream.as_raw_fd(), self.children.as_raw_fd()], time);
        discard(&self.children);
        ready
    }

    /// Waits for a child.
    fn wait_for_child(&self, time: Duration) -> io::Result<()> {
        let ready = wait([self.children.as_raw_fd()], Some(time));
        discard(&self.children);
        ready.map(drop)
    }
}

fn report(stream: &UnixStream, kind: u8, status: i32) {
    let [a, b, c, d] = status.to_ne_bytes();
    let report: [u8; REPORT] = [kind, a, b, c, d];
    let _ = rustix::io::write(stream, &report); // the agent may be gone (SIGPIPE is blocked)
}

/// Waits for a command. `None` when the agent has ended or wants no other.
fn next(ends: &Ends) -> Option<Task> {
    loop {
        match ends.wait(None).ok()? {
            [true, ..] => return None,
            [_, true, _] => break,
            _ => {}
        }
    }
    let mut header = [0; Header::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut header)];
    let received = recvmsg(&ends.stream, slices, &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL).ok()?;
    let mut descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    let pipes: Vec<OwnedFd> = descriptors.by_ref().collect();
    drop(descriptors);
    if received.bytes != Header::BYTES {
        return None;
    }
    let header = Header::of(&header);
    let bytes = |count: u64| {
        let mut bytes = vec![0; count as usize];
        (&ends.stream).read_exact(&mut bytes).ok().map(|()| bytes)
    };
    let (group, line, direct) = (bytes(header.group)?, bytes(header.line)?, bytes(header.direct)?);
    Some(Task {
        line: CString::new(line).ok()?,
        direct: Direct::of_bytes(&direct).and_then(Program::of),
        group: Group::of_bytes(&group),
        pipes: (!pipes.is_empty()).then_some(pipes)?,
        timeout: (header.timeout_ns != u64::MAX).then(|| Duration::from_nanos(header.timeout_ns)),
        grace: Duration::from_nanos(header.grace_ns),
    })
}

fn supervise(stream: UnixStream) {
    let agent = getppid(); // unless it has ended already
    // If this process is stopped when the agent ends, it continues and sees that. The end of the thread that forked it
    // counts as well, and does no harm.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    let _ = (setsid(), rustix::thread::set_name(c"crosswind-task"), set_child_subreaper(Some(getpid())));
    let agent = agent.and_then(|agent| pidfd_open(agent, PidfdFlags::empty()).ok());
    // Above the numbers of standard input and output, which get other descriptors.
    let (Ok(stream), agent) = (above(stream.into()), agent.and_then(|agent| above(agent).ok())) else { return };
    let mut kept = vec![stream.as_raw_fd()];
    kept.extend(agent.as_ref().map(|agent| agent.as_raw_fd()));
    close_all_but(&mut kept);
    let stream = UnixStream::from(stream);
    // Signals that the agent ignores, its commands would ignore as well. Here all are blocked from now on.
    let children = of_children(Block::All).inspect(|_| (1..65).for_each(linux::signals::reset));
    match children {
        Ok(children) => {
            let (ends, mut stack) = (Ends { agent, stream, children }, vec![0; STACK]);
            while let Some(task) = next(&ends)
                && perform(task, &ends, &mut stack)
            {
                report(&ends.stream, READY, 0);
            }
        }
        Err(error) => report(&stream, FAILED, number_of(&error)),
    }
}

fn number_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Returns a copy of a descriptor with a number above those of standard input and output. The original is closed with
/// all others.
fn above(descriptor: OwnedFd) -> rustix::io::Result<OwnedFd> {
    let copy = fcntl_dupfd_cloexec(&descriptor, FIRST_FREE);
    let _ = descriptor.into_raw_fd();
    copy
}

/// Runs a command and ends what it leaves. Returns whether another may follow.
fn perform(task: Task, ends: &Ends, stack: &mut [u8]) -> bool {
    let Task { line, direct, group, pipes, timeout, grace } = task;
    let procs = group.as_ref().and_then(Group::procs);
    let shell = Shell {
        line: &line,
        direct: direct.as_ref(),
        // Descriptor 0 is /dev/null.
        stdout: pipes.get(2).map_or(0, |stdout| stdout.as_raw_fd()),
        stderr: pipes[0].as_raw_fd(),
        group: procs.as_ref().map(|procs| procs.as_raw_fd()).or(group.as_ref().map(|_| -1)),
    };
    let shell = shell.start(stack);
    drop(procs); // only the shell needs it
    let until = timeout.map(|timeout| Instant::now() + timeout);
    let end = match shell {
        Ok(shell) => watch(shell, until, ends),
        Err(error) => Watched::Failed(error),
    };
    let is_over_memory = || group.as_ref().is_some_and(Group::was_exceeded);
    match &end {
        Watched::Exited(_) if is_over_memory() => report(&ends.stream, OVER_MEMORY, 0),
        Watched::Exited(status) => report(&ends.stream, EXITED, *status),
        Watched::Failed(error) => report(&ends.stream, FAILED, number_of(error)),
        Watched::OverTime | Watched::Gone => {}
    }
    let have_all_ended = end_the_rest(grace, ends);
    if matches!(end, Watched::OverTime) {
        // Reported only now: a retry must not run beside processes of the first attempt.
        report(&ends.stream, OVER_TIME, 0);
    }
    if let Some(group) = group {
        group.remove();
    }
    have_all_ended && matches!(end, Watched::Exited(_) | Watched::OverTime)
}

/// What a shell needs before its program begins.
struct Shell<'a> {
    line: &'a CStr,
    /// The program that is executed instead, if that is possible.
    direct: Option<&'a Program>,
    stdout: RawFd,
    stderr: RawFd,
    /// Through which it joins its control group, if it has one; negative if that cannot be opened.
    group: Option<RawFd>,
}

impl Shell<'_> {
    /// Starts it. This process waits until its program has begun.
    fn start(&self, stack: &mut [u8]) -> io::Result<Pid> {
        let end = stack.as_mut_ptr_range().end;
        let top = end.wrapping_sub(end as usize % 16); // as all processors want it aligned
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack and the shell live until the call returns, when the child no longer uses them.
        let pid =
            unsafe { libc::clone(become_the_shell, top.cast(), flags, std::ptr::from_ref(self).cast_mut().cast()) };
        if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    }
}

/// Begins the program in its own session and process group, with only descriptors 0 to 2 and with default signal
/// handling. It runs in the memory of its parent, which waits: it neither allocates nor returns.
extern "C" fn become_the_shell(shell: *mut c_void) -> libc::c_int {
    // SAFETY: from `Shell::start`; async-signal-safe calls on integers, live strings, and a list that ends with null.
    unsafe {
        let shell = &*shell.cast::<Shell<'_>>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64, 0u64, 0u64, 0u64);
        libc::setsid();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if shell.group.is_some_and(|group| libc::write(group, c"0".as_ptr().cast(), 1) != 1) {
            libc::_exit(126);
        }
        libc::dup2(shell.stdout, 1);
        libc::dup2(shell.stderr, 2);
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        if let Some(direct) = shell.direct {
            direct.execute();
        }
        let words = [c"sh".as_ptr(), c"-c".as_ptr(), shell.line.as_ptr(), std::ptr::null()];
        libc::execv(c"/bin/sh".as_ptr(), words.as_ptr());
        libc::_exit(127)
    }
}

enum Watched {
    Exited(i32),
    OverTime,
    /// The command is no longer wanted, or could not be started.
    Gone,
    /// The kernel refused to wait.
    Failed(io::Error),
}

fn watch(shell: Pid, until: Option<Instant>, ends: &Ends) -> Watched {
    loop {
        let mut ended = None;
        reap(|pid, status| {
            if pid == shell {
                ended = Some(status);
            }
        });
        if let Some(status) = ended {
            return Watched::Exited(status);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Watched::OverTime;
        }
        match ends.wait(left) {
            Ok([false, false, _]) => {}
            Ok(_) => return Watched::Gone,
            Err(error) => return Watched::Failed(error),
        }
    }
}

/// Waits until a descriptor is readable or at its end, or the time is over, and returns which are. A closed or failed
/// descriptor is an error, because it would always be ready and waiting for it would take a whole CPU.
fn wait<const N: usize>(fds: [RawFd; N], time: Option<Duration>) -> io::Result<[bool; N]> {
    let mut watched = fds.map(|fd| linux::watch(fd, true, false));
    linux::wait(&mut watched, time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))?;
    if watched.iter().any(|watched| watched.revents & (libc::POLLNVAL | libc::POLLERR) != 0) {
        return Err(Errno::BADF.into());
    }
    Ok(watched.map(|watched| watched.revents != 0))
}

/// Reaps all children that have ended. Returns whether any is left.
fn reap(mut on_end: impl FnMut(Pid, i32)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => on_end(pid.as_raw_pid(), status.as_raw()),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends all descendants of this process: SIGTERM first, SIGKILL after the grace period. Returns whether all have ended.
fn end_the_rest(grace: Duration, ends: &Ends) -> bool {
    let begun = Instant::now();
    let own = std::process::id() as Pid;
    let mut signalled: HashSet<Pid> = HashSet::new();
    while reap(|_, _| {}) {
        let since = begun.elapsed();
        if since > grace + LAST_PATIENCE {
            return false;
        }
        // None of these numbers can belong to another process: each is of a process that has not been reaped, or whose
        // parent, which would reap it, existed a moment ago.
        for pid in with_descendants(&[own]).into_iter().filter(|pid| *pid != own) {
            end(pid, since >= grace, &mut signalled);
        }
        let pause = LOOK.min(grace.saturating_sub(since)).max(Duration::from_millis(1));
        if ends.wait_for_child(pause).is_err() {
            std::thread::sleep(pause);
        }
    }
    true
}
