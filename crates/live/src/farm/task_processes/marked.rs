//! Processes that tasks leave behind when their agent ends: those in the agent's session, and those with its mark.
//!
//! A Python function may start processes, which are the agent's own children. While the agent runs, they cannot be
//! distinguished from processes that a later task still needs. So a watchdog ends them with the agent, even after
//! SIGKILL. A process that both started a session of its own and cleared its environment is not found.

use std::collections::HashSet;
use std::fs;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::{Pid, end};
use crate::farm::capture::Rest;
use crosswind_linux::processes::{all, parent_and_state, session_of};
use crosswind_linux::watchdog::{Undo, Watchdog};

/// Environment variable that an agent sets for all processes that it starts.
pub const MARK: &str = "CROSSWIND_AGENT";
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait after SIGKILL. By then only processes that sleep in the kernel or belong to another user are left.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// The processes that end with an agent.
#[derive(Debug)]
pub struct Marked {
    agent: Pid,
    /// `NAME=value` as in the environment of its processes.
    mark: Vec<u8>,
    /// The agent's session, if the agent is its leader. All processes in it then descend from the agent.
    session: Option<Pid>,
    grace: Duration,
    /// Descriptor whose end is that of the process that started the agent.
    starter: Option<RawFd>,
    /// What the agent had printed when it ended.
    printed: Option<Rest>,
}

impl Marked {
    /// Creates the set for this process, which has set [`MARK`] to `mark`.
    #[must_use]
    pub fn new(mark: &str, grace: Duration, starter: Option<RawFd>, printed: Option<Rest>) -> Self {
        let agent = std::process::id() as Pid;
        let leads = session_of(agent) == Some(agent);
        let (mark, session) = (format!("{MARK}={mark}").into_bytes(), leads.then_some(agent));
        Self { agent, mark, session, grace, starter, printed }
    }

    /// Starts the watchdog that ends the processes.
    ///
    /// # Errors
    /// When no process or descriptor is available.
    pub fn watched(&self) -> std::io::Result<Watchdog> {
        Watchdog::start(self)
    }

    fn is_one(&self, pid: Pid) -> bool {
        let in_session = self.session.is_some() && session_of(pid) == self.session;
        let is_marked = || {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.mark)
        };
        (in_session || is_marked()) && parent_and_state(pid).is_some_and(|(_, state)| state != 'Z')
    }

    fn left(&self) -> Vec<Pid> {
        let own = std::process::id() as Pid;
        all().filter(|pid| *pid != own && *pid != self.agent && self.is_one(*pid)).collect()
    }
}

impl Undo for Marked {
    fn starter(&self) -> Option<RawFd> {
        self.starter
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.printed.iter().flat_map(Rest::descriptors).collect()
    }

    fn perform(&self) {
        if let Some(printed) = &self.printed {
            printed.save();
        }
        let begun = Instant::now();
        let mut signalled: HashSet<Pid> = HashSet::new();
        loop {
            let (left, since) = (self.left(), begun.elapsed());
            if left.is_empty() || since > self.grace + LAST_PATIENCE {
                return;
            }
            for pid in left {
                end(pid, since >= self.grace, &mut signalled);
            }
            std::thread::sleep(LOOK);
        }
    }
}
