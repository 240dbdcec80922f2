//! The command under injection: how it starts and ends.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::priority;
use crosswind_linux::children;
use crosswind_linux::freezer::permit_tracing_by;
use crosswind_linux::processes::Pid;
use crosswind_linux::signals::{Signal, kill, reset};

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
            if let Ok(copy) = io::stderr().as_fd().try_clone_to_owned() {
                command.stdout(Stdio::from(copy));
            }
        }
        let group = around.group.as_ref().map(|path| std::fs::OpenOptions::new().write(true).open(path)).transpose()?;
        let cpus: Option<Vec<usize>> = around.cpu.map(|cpu| vec![cpu]);
        let tracer = around.tracer;
        // SAFETY: async-signal-safe calls on data created before the fork.
        unsafe {
            command.pre_exec(move || {
                // Python ignores these two, and ignored signals stay ignored across exec.
                reset(libc::SIGXFSZ);
                reset(libc::SIGPIPE);
                permit_tracing_by(tracer);
                if let Some(file) = &group {
                    rustix::io::write(file, b"0")?;
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
            self.end = match children::ended(self.pid) {
                Ok(ended) => ended.map(|ended| {
                    let exited = libc::WIFEXITED(ended.status);
                    End {
                        status: exited.then(|| libc::WEXITSTATUS(ended.status)),
                        signal: (!exited).then(|| libc::WTERMSIG(ended.status)),
                        cpu_s: (ended.usage.user.as_secs_f64(), ended.usage.system.as_secs_f64()),
                    }
                }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                // Another part of this process has reaped the child: it has ended with an unknown status.
                Err(_) => Some(End { status: None, signal: None, cpu_s: (f64::NAN, f64::NAN) }),
            };
        }
        self.end
    }

    /// Sends it a signal, unless it has ended; SIGTERM for a number that is none.
    pub fn signal(&mut self, signal: i32) {
        if self.ended().is_none() {
            let _ = kill(self.pid, Signal::from_named_raw(signal).unwrap_or(Signal::TERM)); // a child not reaped yet
        }
    }
}
