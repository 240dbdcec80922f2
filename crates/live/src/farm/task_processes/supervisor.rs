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
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, sendmsg,
};

use super::memory::Group;
use super::{EXITED, End, FAILED, OVER_MEMORY, OVER_TIME, Pid, READY, Wanted};
use crosswind_linux::processes::with_descendants;

/// Descriptor numbers in the supervisor.
const AGENT_END: RawFd = 3;
const AGENT: RawFd = 4;
const FIRST_FREE: RawFd = 5;
/// Interval at which new descendants are looked up while a tree of processes ends.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait after SIGKILL. By then only processes that sleep in the kernel or belong to another user are left.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// Length of a supervisor's report, bytes.
const REPORT: usize = 5;
/// Bytes of a shell's stack until its program begins.
const STACK: usize = 64 << 10;

/// A supervisor, as its agent holds it. It ends when the stream is closed.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub pid: Pid,
    pub stream: UnixStream,
}

impl Supervisor {
    /// Forks a supervisor and returns its handle.
    pub fn start() -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        // SAFETY: see the head of this file.
        match unsafe { libc::fork() } {
            0 => supervise(theirs.as_raw_fd()),
            pid if pid > 0 => Ok(Self { pid, stream }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Hands a command over. Reports follow on the stream.
    pub fn hand_over(&mut self, wanted: &Wanted<'_>) -> io::Result<()> {
        let mut descriptors = vec![wanted.stderr.as_fd()];
        descriptors.extend(wanted.stdout.as_ref().map(AsFd::as_fd));
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let group = wanted.group.as_ref().map(Group::to_bytes).unwrap_or_default();
        let header = Header {
            line: wanted.line.len() as u64,
            group: group.len() as u64,
            timeout_ns: wanted.limits.timeout_s.map_or(u64::MAX, |s| ns(Duration::from_secs_f64(s))),
            grace_ns: ns(Duration::from_secs_f64(wanted.limits.grace_s)),
        };
        let header = header.to_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        // So short a message is taken whole or not at all.
        sendmsg(&self.stream, &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL)?;
        self.stream.write_all(&group)?;
        self.stream.write_all(wanted.line)
    }

    /// Waits for the end of the command. `None` when it was dropped, or the supervisor was ended.
    ///
    /// # Errors
    /// Why the command could not be started.
    pub fn report(&mut self) -> io::Result<Option<End>> {
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

    /// Whether it waits for another command, after its report. `None` when it has ended.
    pub fn is_ready(&mut self) -> Option<bool> {
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
    /// `u64::MAX` means no time limit.
    timeout_ns: u64,
    grace_ns: u64,
}

impl Header {
    const BYTES: usize = 32;

    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = [self.line, self.group, self.timeout_ns, self.grace_ns].map(u64::to_ne_bytes);
        words.concat().try_into().unwrap_or([0; Self::BYTES])
    }

    fn of(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| bytes[8 * at..8 * at + 8].try_into().map_or(0, u64::from_ne_bytes);
        Self { line: word(0), group: word(1), timeout_ns: word(2), grace_ns: word(3) }
    }
}

/// A command, as its supervisor has received it.
struct Task {
    line: CString,
    group: Option<Group>,
    stdout: Option<OwnedFd>,
    stderr: OwnedFd,
    timeout: Option<Duration>,
    grace: Duration,
}

/// What a supervisor waits for.
struct Ends {
    /// Readable once the agent has ended; -1 before Linux 5.3, where only the end of `AGENT_END` shows that.
    agent: RawFd,
    /// Descriptor that is readable after SIGCHLD.
    children: RawFd,
}

impl Ends {
    /// Waits for the end of the agent, for what it says (or does not want any more), or for a child.
    fn wait(&self, time: Option<Duration>) -> Result<[bool; 3], i32> {
        wait([self.agent, AGENT_END, self.children], time)
    }
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
    // SAFETY: open as long as this process lives.
    let agent = unsafe { BorrowedFd::borrow_raw(AGENT_END) };
    let mut header = [0; Header::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut header)];
    let received = recvmsg(agent, slices, &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL).ok()?;
    let mut descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    let (stderr, stdout) = (descriptors.next(), descriptors.next());
    drop(descriptors);
    if received.bytes != Header::BYTES {
        return None;
    }
    let header = Header::of(&header);
    // SAFETY: as above; it is not dropped.
    let mut stream = std::mem::ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(AGENT_END) });
    let mut bytes = |count: u64| {
        let mut bytes = vec![0; count as usize];
        stream.read_exact(&mut bytes).ok().map(|()| bytes)
    };
    let group = bytes(header.group)?;
    Some(Task {
        line: CString::new(bytes(header.line)?).ok()?,
        group: Group::of_bytes(&group),
        stdout,
        stderr: stderr?,
        timeout: (header.timeout_ns != u64::MAX).then(|| Duration::from_nanos(header.timeout_ns)),
        grace: Duration::from_nanos(header.grace_ns),
    })
}

fn supervise(agent_end: RawFd) -> ! {
    // SAFETY: async-signal-safe calls on integers and live values; the agent is our parent unless it has ended already.
    let agent = unsafe {
        let agent = libc::getppid();
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"crosswind-task".as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1u64, 0u64, 0u64, 0u64);
        libc::syscall(libc::SYS_pidfd_open, agent, 0) as RawFd
    };
    let agent = arrange(agent_end, agent);
    match watch_children() {
        Ok(children) => {
            let (ends, mut stack) = (Ends { agent, children }, vec![0; STACK]);
            while let Some(task) = next(&ends)
                && perform(task, &ends, &mut stack)
            {
                report(READY, 0);
            }
        }
        Err(errno) => report(FAILED, errno),
    }
    // SAFETY: ends the process without running the agent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Runs a command and ends what it leaves. Returns whether another may follow.
fn perform(task: Task, ends: &Ends, stack: &mut [u8]) -> bool {
    let Task { line, group, stdout, stderr, timeout, grace } = task;
    let procs = group.as_ref().and_then(Group::procs);
    let shell = Shell {
        line: &line,
        // Descriptor 0 is /dev/null.
        stdout: stdout.as_ref().map_or(0, |stdout| stdout.as_raw_fd()),
        stderr: stderr.as_raw_fd(),
        group: procs.as_ref().map(|procs| procs.as_raw_fd()).or(group.as_ref().map(|_| -1)),
    };
    let shell = shell.start(stack);
    drop((stdout, stderr, procs)); // only the shell needs them
    let until = timeout.map(|timeout| Instant::now() + timeout);
    let end = match shell {
        Ok(shell) => watch(shell, until, ends),
        Err(errno) => Watched::Failed(errno),
    };
    let is_over_memory = || group.as_ref().is_some_and(Group::was_exceeded);
    match end {
        Watched::Exited(_) if is_over_memory() => report(OVER_MEMORY, 0),
        Watched::Exited(status) => report(EXITED, status),
        Watched::Failed(errno) => report(FAILED, errno),
        Watched::OverTime | Watched::Gone => {}
    }
    let have_all_ended = end_the_rest(grace, ends.children);
    if matches!(end, Watched::OverTime) {
        // Reported only now: a retry must not run beside processes of the first attempt.
        report(OVER_TIME, 0);
    }
    if let Some(group) = group {
        group.remove();
    }
    have_all_ended && matches!(end, Watched::Exited(_) | Watched::OverTime)
}

/// Moves the descriptors to their numbers and closes all others. Returns the new descriptor of the agent.
fn arrange(agent_end: RawFd, agent: RawFd) -> RawFd {
    // SAFETY: integers and a live string; a failure leaves a closed descriptor, on which the calls below fail.
    unsafe {
        // Above the numbers that they get, so that no copy overwrites another.
        let aside = |fd: RawFd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FIRST_FREE);
        let nowhere = aside(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC));
        let kept = [(aside(agent_end), AGENT_END), (aside(agent), AGENT)];
        for fd in 0..3 {
            libc::dup2(nowhere, fd);
        }
        for (from, to) in kept {
            if from < 0 || libc::dup3(from, to, libc::O_CLOEXEC) < 0 {
                libc::close(to);
            }
        }
        libc::syscall(libc::SYS_close_range, FIRST_FREE as libc::c_uint, libc::c_uint::MAX, 0);
    }
    if agent < 0 { -1 } else { AGENT }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Blocks every signal that can be blocked, and returns a descriptor that is readable after SIGCHLD.
fn watch_children() -> Result<RawFd, i32> {
    // SAFETY: a live set of signals.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        // Python may have set it to be ignored, in which case children cannot be reaped.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        let children = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if children < 0 { Err(errno()) } else { Ok(children) }
    }
}

/// What a shell needs before its program begins.
struct Shell<'a> {
    line: &'a CStr,
    stdout: RawFd,
    stderr: RawFd,
    /// Through which it joins its control group, if it has one; negative if that cannot be opened.
    group: Option<RawFd>,
}

impl Shell<'_> {
    /// Starts it. This process waits until its program has begun.
    fn start(&self, stack: &mut [u8]) -> Result<Pid, i32> {
        let end = stack.as_mut_ptr_range().end;
        let top = end.wrapping_sub(end as usize % 16); // as all processors want it aligned
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack and the shell live until the call returns, when the child no longer uses them.
        let pid =
            unsafe { libc::clone(become_the_shell, top.cast(), flags, std::ptr::from_ref(self).cast_mut().cast()) };
        if pid < 0 { Err(errno()) } else { Ok(pid) }
    }
}

/// Begins the shell's program in its own session and process group, with only descriptors 0 to 2 and with default signal
/// handling. It runs in the memory of its parent, which waits: it neither allocates nor returns.
extern "C" fn become_the_shell(shell: *mut c_void) -> libc::c_int {
    // SAFETY: from `Shell::start`; async-signal-safe calls on integers, live strings, and a list that ends with null.
    unsafe {
        let shell = &*shell.cast::<Shell<'_>>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64, 0u64, 0u64, 0u64);
        libc::setsid();
        for signal in 1..65 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if shell.group.is_some_and(|group| libc::write(group, c"0".as_ptr().cast(), 1) != 1) {
            libc::_exit(126);
        }
        libc::dup2(shell.stdout, 1);
        libc::dup2(shell.stderr, 2);
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
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
    Failed(i32),
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
            Err(errno) => return Watched::Failed(errno),
        }
    }
}

/// Waits until a descriptor is readable or at its end, or the time is over, and returns which are. A closed or failed
/// descriptor is an error, because it would always be ready and waiting for it would take a whole CPU.
fn wait<const N: usize>(fds: [RawFd; N], time: Option<Duration>) -> Result<[bool; N], i32> {
    let mut watched = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // Rounded up, so that the time is over when poll returns.
    let ms = time.map_or(-1, |time| i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX));
    let mut signals = [0u8; 1024];
    // SAFETY: live entries and a live buffer. The SIGCHLDs are consumed; their number does not matter.
    unsafe {
        if libc::poll(watched.as_mut_ptr(), N as libc::nfds_t, ms) < 0 {
            return Err(errno());
        }
        if watched.iter().any(|watched| watched.revents & (libc::POLLNVAL | libc::POLLERR) != 0) {
            return Err(libc::EBADF);
        }
        if let Some(children) = fds.last() {
            libc::read(*children, signals.as_mut_ptr().cast(), signals.len());
        }
    }
    Ok(watched.map(|watched| watched.revents != 0))
}

/// Reaps all children that have ended. Returns whether any is left.
fn reap(mut on_end: impl FnMut(Pid, i32)) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: a live integer.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return true,
            pid if pid > 0 => on_end(pid, status),
            _ => return false,
        }
    }
}

fn report(kind: u8, status: i32) {
    let [a, b, c, d] = status.to_ne_bytes();
    let report: [u8; REPORT] = [kind, a, b, c, d];
    // SAFETY: a live buffer. If the agent is gone, the write fails (SIGPIPE is blocked).
    unsafe { libc::write(AGENT_END, report.as_ptr().cast(), report.len()) };
}

/// Ends all descendants of this process: SIGTERM first, SIGKILL after the grace period. Returns whether all have ended.
fn end_the_rest(grace: Duration, children: RawFd) -> bool {
    let begun = Instant::now();
    let mut signalled: HashSet<Pid> = HashSet::new();
    while reap(|_, _| {}) {
        let since = begun.elapsed();
        if since > grace + LAST_PATIENCE {
            return false;
        }
        // SAFETY: takes integers only. None of these numbers can belong to another process: each is of a process that has
        // not been reaped, or whose parent, which would reap it, existed a moment ago.
        unsafe {
            let own = libc::getpid();
            for pid in with_descendants(&[own]).into_iter().filter(|pid| *pid != own) {
                if since >= grace {
                    libc::kill(pid, libc::SIGKILL);
                } else if signalled.insert(pid) {
                    libc::kill(pid, libc::SIGTERM);
                    libc::kill(pid, libc::SIGCONT);
                }
            }
        }
        let pause = LOOK.min(grace.saturating_sub(since)).max(Duration::from_millis(1));
        if wait([children], Some(pause)).is_err() {
            std::thread::sleep(pause);
        }
    }
    true
}
