//! Takes the processor away from a rank's processes and gives it back: stops them with the freezer, or freezes their
//! group.
//!
//! Processes are traced only while they are held. Between two intervals the program runs without a tracer, so its
//! forks and signals cost no more than otherwise.

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
    /// The groups; `None`: its processes are stopped one by one.
    groups: Option<Groups>,
    freezer: Arc<Freezer>,
    held: Option<Target>,
    /// Whether anything was held that only a watchdog would have released.
    pub exposed: bool,
}

/// State of a rank that has just been held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Start of the hold on the monotonic clock, ns.
    pub since_ns: u64,
    /// Whether all of its threads had stopped by then, or soon after.
    pub all: bool,
}

impl Hold {
    /// Prepares to hold a rank: by its group, which must exist, or without groups process by process.
    #[must_use]
    pub fn new(rank: u32, groups: Option<Groups>, freezer: Arc<Freezer>) -> Self {
        Self { rank, groups, freezer, held: None, exposed: false }
    }

    /// Holds these processes and all their descendants until [`Hold::let_go`], planned for `due_ns`. If the rank is
    /// held already, extends the hold to then.
    ///
    /// # Errors
    /// When one of them may not be held, or the freezer process has ended.
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
                let _ = self.let_go(); // if the freezer process has ended, nothing is held
                if matches!(refusal, Refusal::Gone(_)) {
                    return Ok(Held { since_ns: now_ns(), all: true });
                }
                Err(refused(refusal))
            }
        }
    }

    /// Seizes those of these processes that still run; `None` when all have ended.
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

    /// Returns the held ones among these processes and their descendants.
    #[must_use]
    pub fn held(&self, leaders: &[Pid]) -> BTreeSet<Pid> {
        let members = self.held.and_then(|target| self.freezer.members(target).ok());
        members.map_or_else(|| with_descendants(leaders), |members| members.into_iter().collect())
    }

    /// Releases the rank.
    ///
    /// # Errors
    /// When the freezer process has ended; then nothing is held.
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

/// Whether programs started by this process may be traced; otherwise they are stopped by signals.
///
/// # Errors
/// When no process or descriptor is available for the trial.
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
