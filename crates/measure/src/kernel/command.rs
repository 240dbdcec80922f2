//! Kernel `command`: the user's own command, run repeatedly; one run is one unit of work.
//!
//! Its processes inherit the computing thread's CPUs and nice level. CPU time comes from `wait4` (the process and all
//! that it waited for), run delay and switches from its `/proc/PID/schedstat` while it is a zombie (its first thread).

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crosswind_linux::children::ended;
use crosswind_linux::signals::{Signal, kill_group};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Kernel, Tally};
use crate::error::MeasureError;

/// Characters that only a shell understands.
const FOR_A_SHELL: &str = "|&;<>()$`\\\"'*?[]#~={}!\n";
/// Bytes of a failing command's stderr that are shown.
const COMPLAINT: usize = 400;

pub struct Command {
    words: Vec<String>,
    tally: Arc<Tally>,
}

impl Command {
    /// Splits at spaces, or passes the line to `/bin/sh -c` if it contains anything that only a shell understands.
    ///
    /// # Errors
    /// When the line is empty.
    pub fn new(line: &str, tally: Arc<Tally>) -> Result<Self, MeasureError> {
        let words: Vec<String> = if line.contains(|c| FOR_A_SHELL.contains(c)) {
            vec!["/bin/sh".into(), "-c".into(), line.into()]
        } else {
            line.split_whitespace().map(str::to_owned).collect()
        };
        if words.is_empty() {
            return Err(MeasureError::value("task", "empty", "a command"));
        }
        Ok(Self { words, tally })
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = std::process::Command::new(&self.words[0]);
        command.args(&self.words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        // SAFETY: the call is async-signal-safe and touches no memory of this process; the child dies with the computing
        // thread.
        unsafe {
            command.pre_exec(|| {
                crosswind_linux::end_with_starter();
                Ok(())
            });
        }
        command.spawn()
    }

    /// Waits for the end, adds its resource use to the tally, and returns its status as `wait` gives it.
    fn reap(&self, process: i32) -> io::Result<i32> {
        if let Some(pid) = Pid::from_raw(process) {
            let until_it_ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), until_it_ends)); // it stays a zombie
        }
        let scheduling = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
        let mut numbers = scheduling.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (waited, switches) = (numbers.nth(1).unwrap_or(0), numbers.next().unwrap_or(0));
        self.tally.children.wait_ns.fetch_add(waited, Ordering::Relaxed);
        self.tally.children.switches.fetch_add(switches, Ordering::Relaxed);
        // From here on no signal may be sent to this number: once reaped, it may be another process's.
        *self.tally.child.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        let end = ended(process)?.ok_or_else(|| io::Error::other("it has not ended"))?;
        let cpu_ns = end.usage.cpu().as_nanos() as u64;
        self.tally.children.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        Ok(end.status)
    }
}

impl Kernel for Command {
    fn step(&mut self) -> Result<(), MeasureError> {
        let mut child = self.spawn().map_err(|error| MeasureError::Task(format!("{}: {error}", self.words[0])))?;
        let process = child.id() as i32;
        *self.tally.child.lock().unwrap_or_else(PoisonError::into_inner) = process;
        if self.tally.ended() {
            kill_child(&self.tally); // `stop` checked before the child existed
        }
        let mut complaint = Vec::new();
        if let Some(mut pipe) = child.stderr.take() {
            // Reads to the end so that a talkative command never blocks; what cannot be read is not shown.
            let _ = pipe.by_ref().take(COMPLAINT as u64).read_to_end(&mut complaint);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let status = self.reap(process).map_err(MeasureError::system("waiting for the task"))?;
        if status == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&complaint);
        let how = match (libc::WIFEXITED(status), libc::WTERMSIG(status)) {
            (true, _) => format!("exit status {}", libc::WEXITSTATUS(status)),
            (false, signal) => format!("signal {signal}"),
        };
        Err(MeasureError::Task(format!("{}: {how}; it said: {}", self.words.join(" "), said.trim())))
    }

    fn steps_per_unit(&self) -> f64 {
        1.0
    }
}

/// Kills the running command, if any, with its process group.
pub fn kill_child(tally: &Tally) {
    let child = tally.child.lock().unwrap_or_else(PoisonError::into_inner);
    if *child > 0 {
        let _ = kill_group(*child, Signal::KILL); // a child not reaped yet, for the lock is held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> (Command, Arc<Tally>) {
        let tally = Arc::new(Tally::default());
        (Command::new(line, Arc::clone(&tally)).expect("a command"), tally)
    }

    #[test]
    fn a_command_that_computes_is_charged_its_cpu_time() {
        let (mut kernel, tally) = command("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
        kernel.step().expect("succeeds");
        assert!(tally.children.cpu_ns.load(Ordering::Relaxed) > 0);
        assert!(tally.children.switches.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_status_and_complaint() {
        let (mut kernel, _) = command("echo no such luck >&2; exit 3");
        let text = kernel.step().expect_err("fails").to_string();
        assert!(text.contains("exit status 3") && text.contains("no such luck"), "{text}");
        assert!(command("/no/such/program").0.step().is_err());
    }

    #[test]
    fn a_plain_line_is_run_without_a_shell() {
        assert_eq!(command("gzip -c data.bin").0.words, ["gzip", "-c", "data.bin"]);
        assert_eq!(command("gzip -c data.bin > /dev/null").0.words[..2], ["/bin/sh", "-c"]);
        assert!(Command::new("  ", Arc::new(Tally::default())).is_err());
    }
}
