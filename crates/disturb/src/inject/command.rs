//! The command under injection: how it starts and ends.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::priority;
use crosswind_linux::freezer::permit_tracing_by;
use crosswind_linux::processes::Pid;

use super::processes::MARK;
use crosswind_linux::watchdog::process_descriptor;

/// How a process ended: its exit status or the signal, and the CPU seconds (user, system) of it and those it waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    pub status: Option<i32>,
    pub signal: Option<i32>,
    /// CPU time in user and system mode, s.
    pub cpu_s: (f64, f64),
}

#[derive(Debug)]
pub struct Running {
    pub pid: Pid,
    descriptor: OwnedFd,
    end: Option<End>,
}

/// Environment that the command gets before its program starts.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The mark that its processes carry.
    pub mark: String,
    /// The only CPU that it may use.
    pub cpu: Option<usize>,
    /// The file `cgroup.procs` of its control group.
    pub group: Option<std::path::PathBuf>,
    /// The process that may trace it.
    pub tracer: Pid,
    /// Whether its output goes to this process's stderr, because stdout has another use.
    pub stdout_to_stderr: bool,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// When the program does not exist, or a setting cannot be applied.
    pub fn start(words: &[OsString], around: &Surroundings) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
        let mut command = Command::new(program);
        command.args(arguments).env(MARK, &around.mark);
        if around.stdout_to_stderr {
            // SAFETY: a copy of an open descriptor has no other owner.
            let copy = unsafe { libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 3) };
            if copy >= 0 {
                // SAFETY: as above.
                command.stdout(Stdio::from(unsafe { OwnedFd::from_raw_fd(copy) }));
            }
        }
        let group = around.group.as_ref().map(|path| std::fs::OpenOptions::new().write(true).open(path)).transpose()?;
        let cpus: Option<Vec<usize>> = around.cpu.map(|cpu| vec![cpu]);
        let tracer = around.tracer;
        // SAFETY: async-signal-safe calls on data created before the fork.
        unsafe {
            command.pre_exec(move || {
                // Python ignores these two, and ignored signals stay ignored across exec.
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                permit_tracing_by(tracer);
                if let Some(file) = &group {
                    let joined = libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1);
                    if joined != 1 {
                        return Err(io::Error::last_os_error());
                    }
                }
                cpus.as_ref().map_or(Ok(()), |cpus| priority::place(0, cpus))
            });
        }
        let pid = command.spawn()?.id() as Pid;
        Ok(Self { pid, descriptor: process_descriptor(pid)?, end: None })
    }

    /// Returns a descriptor that becomes readable once the command has ended.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Returns how it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<End> {
        if self.end.is_none() {
            let mut status = 0;
            // SAFETY: all-zero numbers are valid; both pointers are to live locals; the process is our child.
            let (found, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(self.pid, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
            };
            if found == self.pid {
                let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
                let exited = libc::WIFEXITED(status);
                self.end = Some(End {
                    status: exited.then(|| libc::WEXITSTATUS(status)),
                    signal: (!exited).then(|| libc::WTERMSIG(status)),
                    cpu_s: (seconds(usage.ru_utime), seconds(usage.ru_stime)),
                });
            } else if found < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // Another part of this process has reaped the child: it has ended with an unknown status.
                self.end = Some(End { status: None, signal: None, cpu_s: (f64::NAN, f64::NAN) });
            }
        }
        self.end
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&mut self, signal: i32) {
        if self.ended().is_none() {
            // SAFETY: a child of this process that is not reaped yet.
            unsafe { libc::kill(self.pid, signal) };
        }
    }
}
