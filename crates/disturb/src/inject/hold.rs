//! Takes the processor away from a rank's processes and gives it back: stopped by the freezer, or frozen in their group.
//!
//! What is held is traced only while it is held. Between two intervals the program runs without a tracer: what it forks
//! and the signals that it gets cost no more than without.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::group::Groups;
use crosswind_linux::freezer::{Freezer, Means, Refusal, Target, permit_tracing_by};
use crosswind_linux::now_ns;
use crosswind_linux::processes::{Pid, with_descendants};

/// The processes of one rank, held or not.
#[derive(Debug)]
pub struct Hold {
    rank: u32,
    /// The rank's group; none: its processes are stopped one by one.
    groups: Option<Groups>,
    freezer: Arc<Freezer>,
    held: Option<Target>,
    /// Whether something was held that only a watchdog would have given back.
    pub exposed: bool,
}

/// Since when a rank is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// On the monotonic clock, ns.
    pub since_ns: u64,
    /// Whether all of its threads had stopped then, or soon after.
    pub all: bool,
}

impl Hold {
    /// Of a rank; in its group, which is there already, or process by process.
    #[must_use]
    pub fn new(rank: u32, groups: Option<Groups>, freezer: Arc<Freezer>) -> Self {
        Self { rank, groups, freezer, held: None, exposed: false }
    }

    /// Holds these processes and all that descend from them, until [`Hold::let_go`], which is to be at `due_ns`. Those that
    /// are held already stay so until then.
    ///
    /// # Errors
    /// When one of them may not be held, or the process that freezes has ended.
    pub fn take(&mut self, leaders: &[Pid], due_ns: u64) -> io::Result<Held> {
        if let Some(target) = self.held {
            self.freezer.defer(target, due_ns).map_err(refused)?;
            return Ok(Held { since_ns: now_ns(), all: true });
        }
        let Some(target) = self.seize(leaders).map_err(refused)? else {
            return Ok(Held { since_ns: now_ns(), all: true }); // all have ended
        };
        self.held = Some(target);
        self.exposed |= target.exposed;
        match self.freezer.freeze(target, due_ns) {
            Ok(freeze) => Ok(Held { since_ns: freeze.since_ns, all: freeze.all }),
            Err(refusal) => {
                let _ = self.let_go(); // the process that freezes may have ended: then nothing is held
                if matches!(refusal, Refusal::Gone(_)) {
                    return Ok(Held { since_ns: now_ns(), all: true });
                }
                Err(refused(refusal))
            }
        }
    }

    /// Takes what there is of these processes; none when all have ended.
    fn seize(&self, leaders: &[Pid]) -> Result<Option<Target>, Refusal> {
        if let Some(groups) = &self.groups {
            return match self.freezer.seize_group(&groups.of(self.rank)) {
                Err(Refusal::Gone(_)) => Ok(None),
                other => other.map(Some),
            };
        }
        let mut left = leaders.to_vec();
        while !left.is_empty() {
            match self.freezer.seize(&left, None) {
                Err(Refusal::Gone(pid) | Refusal::Zombie(pid)) if left.contains(&pid) => {
                    left.retain(|other| *other != pid);
                }
                Err(Refusal::Gone(_)) => return Ok(None),
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    /// The processes that are held, of these and their descendants.
    #[must_use]
    pub fn held(&self, leaders: &[Pid]) -> BTreeSet<Pid> {
        let members = self.held.and_then(|target| self.freezer.members(target).ok());
        members.map_or_else(|| with_descendants(leaders), |members| members.into_iter().collect())
    }

    /// Gives the processor back.
    ///
    /// # Errors
    /// When the process that freezes has ended; then nothing is held.
    pub fn let_go(&mut self) -> io::Result<()> {
        self.held.take().map_or(Ok(()), |target| self.freezer.release(target).map_err(refused))
    }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.to_string())
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.let_go(); // an ended freezer holds nothing
    }
}

/// Whether programs that this process starts may be traced; else they are stopped by signals.
///
/// # Errors
/// When no process or descriptor is left to try it.
pub fn permitted() -> io::Result<bool> {
    let freezer = Freezer::start()?;
    let tracer = freezer.pid();
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec the child makes one call of the kernel on an integer.
    unsafe {
        command.pre_exec(move || {
            permit_tracing_by(tracer);
            Ok(())
        });
    }
    let mut tried = command.spawn()?;
    let seized = freezer.seize(&[tried.id() as Pid], Some(Means::Tracing));
    drop(freezer);
    tried.kill()?;
    tried.wait()?;
    Ok(!matches!(seized, Err(Refusal::NotPermitted(_))))
}
