//! The process between an agent and a command's shell. It is forked without exec: it takes no lock of the agent, runs no
//! Python, and leaves through `_exit`. glibc prepares its allocator for a forked child, so allocating is allowed.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::memory::Group;
use super::{EXITED, FAILED, OVER_MEMORY, OVER_TIME, Pid};
use crosswind_linux::processes::with_descendants;

/// Descriptor numbers in the supervisor and, until its program begins, in the shell.
const REPORT: RawFd = 3;
const STDOUT: RawFd = 4;
const STDERR: RawFd = 5;
const GROUP: RawFd = 6;
const FIRST_FREE: RawFd = 7;
/// Above all of these, so that no copy overwrites another.
const ASIDE: RawFd = 64;
/// Interval at which new descendants are looked up while a tree of processes ends.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait after SIGKILL. By then only processes that sleep in the kernel or belong to another user are left.
const LAST_PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Start<'a> {
    pub line: &'a CStr,
    pub report: RawFd,
    pub stdout: Option<RawFd>,
    pub stderr: RawFd,
    pub group: Option<&'a Group>,
    pub timeout: Option<Duration>,
    pub grace: Duration,
}

/// Forks a supervisor, which starts the command.
pub(super) fn start(start: &Start<'_>) -> io::Result<Pid> {
    // SAFETY: see the head of this file.
    match unsafe { libc::fork() } {
        0 => supervise(start),
        pid if pid > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

fn supervise(start: &Start<'_>) -> ! {
    // SAFETY: async-signal-safe calls on integers and live values; the agent is our parent unless it has ended already.
    let agent = unsafe {
        let agent = libc::getppid();
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"crosswind-task".as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1u64, 0u64, 0u64, 0u64);
        libc::syscall(libc::SYS_pidfd_open, agent, 0) as RawFd
    };
    let agent = arrange(start, agent);
    let children = hear_of_children().unwrap_or_else(|errno| {
        report(FAILED, errno);
        // SAFETY: ends the process; nothing was started.
        unsafe { libc::_exit(0) }
    });
    // SAFETY: as above.
    let shell = unsafe { libc::fork() };
    if shell == 0 {
        become_the_shell(start);
    }
    if shell < 0 {
        report(FAILED, errno());
    }
    // SAFETY: descriptors that only the shell needs.
    unsafe {
        for fd in [STDOUT, STDERR, GROUP] {
            libc::close(fd);
        }
    }
    let until = start.timeout.map(|timeout| Instant::now() + timeout);
    let end = if shell < 0 { Watched::Gone } else { watch(shell, until, agent, children) };
    let is_over_memory = || start.group.is_some_and(Group::was_exceeded);
    match end {
        Watched::Exited(_) if is_over_memory() => report(OVER_MEMORY, 0),
        Watched::Exited(status) => report(EXITED, status),
        Watched::Failed(errno) => report(FAILED, errno),
        Watched::OverTime | Watched::Gone => {}
    }
    end_the_rest(start.grace, children);
    if matches!(end, Watched::OverTime) {
        // Reported only now: a retry must not run beside processes of the first attempt.
        report(OVER_TIME, 0);
    }
    if let Some(group) = start.group {
        group.remove();
    }
    // SAFETY: ends the process without running the agent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Moves the descriptors to their numbers and closes all others. Returns the new descriptor of the agent.
fn arrange(start: &Start<'_>, agent: RawFd) -> RawFd {
    let group = start.group.and_then(Group::procs);
    // SAFETY: integers and a live string; a failure leaves a closed descriptor, on which the calls below fail.
    unsafe {
        let aside = |fd: RawFd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, ASIDE);
        let nowhere = aside(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC));
        let kept = [
            (aside(start.report), REPORT),
            (start.stdout.map_or(nowhere, aside), STDOUT),
            (aside(start.stderr), STDERR),
            (group.map_or(-1, aside), GROUP),
            (aside(agent), FIRST_FREE),
        ];
        for fd in 0..3 {
            libc::dup2(nowhere, fd);
        }
        for (from, to) in kept {
            if from < 0 || libc::dup2(from, to) < 0 {
                libc::close(to);
            }
        }
        libc::syscall(libc::SYS_close_range, FIRST_FREE as libc::c_uint + 1, libc::c_uint::MAX, 0);
    }
    // Before Linux 5.3 there is no pidfd, and only the end of REPORT shows that the agent has ended.
    if agent < 0 { -1 } else { FIRST_FREE }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Blocks every signal that can be blocked, and returns a descriptor that is readable after SIGCHLD. The descriptor is
/// above [`ASIDE`]: the kernel assigns the lowest free number, which would be one of those closed after the fork.
fn hear_of_children() -> Result<RawFd, i32> {
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
        let low = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        let high = if low < 0 { -1 } else { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, ASIDE) };
        let failed = errno();
        if low >= 0 {
            libc::close(low);
        }
        if high < 0 { Err(failed) } else { Ok(high) }
    }
}

/// Starts the shell in its own session and process group, with only descriptors 0 to 2 and with default signal handling.
fn become_the_shell(start: &Start<'_>) -> ! {
    // SAFETY: async-signal-safe calls on integers, live strings, and a list that ends with null.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64, 0u64, 0u64, 0u64);
        libc::setsid();
        for signal in 1..65 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if start.group.is_some() && libc::write(GROUP, c"0".as_ptr().cast(), 1) != 1 {
            libc::_exit(126);
        }
        libc::dup2(STDOUT, 1);
        libc::dup2(STDERR, 2);
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        let words = [c"sh".as_ptr(), c"-c".as_ptr(), start.line.as_ptr(), std::ptr::null()];
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

fn watch(shell: Pid, until: Option<Instant>, agent: RawFd, children: RawFd) -> Watched {
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
        match wait([agent, REPORT, children], left) {
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
fn reap(mut told: impl FnMut(Pid, i32)) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: a live integer.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return true,
            pid if pid > 0 => told(pid, status),
            _ => return false,
        }
    }
}

fn report(kind: u8, status: i32) {
    let [a, b, c, d] = status.to_ne_bytes();
    let said = [kind, a, b, c, d];
    // SAFETY: a live buffer. If the agent is gone, the write fails (SIGPIPE is blocked).
    unsafe { libc::write(REPORT, said.as_ptr().cast(), said.len()) };
}

/// Ends all descendants of this process: SIGTERM first, SIGKILL after the grace period.
fn end_the_rest(grace: Duration, children: RawFd) {
    let begun = Instant::now();
    let mut asked: HashSet<Pid> = HashSet::new();
    while reap(|_, _| {}) {
        let since = begun.elapsed();
        if since > grace + LAST_PATIENCE {
            return;
        }
        // SAFETY: takes integers only. None of these numbers can belong to another process: each is of a process that has
        // not been reaped, or whose parent, which would reap it, existed a moment ago.
        unsafe {
            let own = libc::getpid();
            for pid in with_descendants(&[own]).into_iter().filter(|pid| *pid != own) {
                if since >= grace {
                    libc::kill(pid, libc::SIGKILL);
                } else if asked.insert(pid) {
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
}
