//! The freezer: one control group (version 2) per rank, below the group that this process is in.
//!
//! A frozen process does not know that it was: no signal, no change of state that a parent or a shell could see. Groups
//! without controllers limit nothing, so that a rank keeps all limits of the group above it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::leftovers;
use crosswind_linux::processes::{Pid, own_group};

/// How often a group that still fills with new processes is emptied.
const ROUNDS: usize = 200;

/// Whether groups can be made and frozen here; else why not.
///
/// # Errors
/// What the system said to the try. Nothing of it is left.
pub fn permitted() -> Result<(), String> {
    let Some(own) = own_group() else { return Err("no hierarchy of control groups of version 2 is mounted".into()) };
    let tried = own.join(leftovers::tried_name());
    fs::create_dir(&tried).map_err(|error| format!("{}: {error}", own.display()))?;
    let freezes = fs::metadata(tried.join("cgroup.freeze")).is_ok();
    fs::remove_dir(&tried).map_err(|error| format!("{}: {error}", tried.display()))?;
    if freezes { Ok(()) } else { Err("this kernel has no cgroup.freeze".into()) }
}

/// The groups of one command.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Where its processes come from and go back to.
    above: PathBuf,
    /// Holds one group per rank.
    pub base: PathBuf,
}

impl Groups {
    /// Names the groups of a command that this process injects into; makes none yet.
    #[must_use]
    pub fn named() -> Option<Self> {
        let above = own_group()?;
        let base = above.join(leftovers::own_name());
        Some(Self { above, base })
    }

    /// Groups that a process made which has ended.
    #[must_use]
    pub fn left(above: &Path, base: &Path) -> Self {
        Self { above: above.to_owned(), base: base.to_owned() }
    }

    /// A rank's group.
    #[must_use]
    pub fn of(&self, rank: u32) -> PathBuf {
        self.base.join(format!("rank-{rank}"))
    }

    /// Makes a rank's group; what is there already stays.
    ///
    /// # Errors
    /// What the system said.
    pub fn make(&self, rank: u32) -> io::Result<()> {
        fs::create_dir_all(self.of(rank))
    }

    /// The file by which a process joins a rank's group.
    #[must_use]
    pub fn procs(&self, rank: u32) -> PathBuf {
        self.of(rank).join("cgroup.procs")
    }

    /// Moves a process into a rank's group. One that is gone is no error.
    ///
    /// # Errors
    /// What the system said.
    pub fn take_in(&self, rank: u32, pid: Pid) -> io::Result<()> {
        moved(pid, &self.of(rank))
    }

    /// Thaws all groups, moves their processes back to where they came from, and removes the groups.
    ///
    /// # Errors
    /// When a group is still there after many tries.
    pub fn remove(&self) -> io::Result<()> {
        let mut last = Ok(());
        for _ in 0..ROUNDS {
            let Ok(ranks) = fs::read_dir(&self.base) else { return Ok(()) };
            for rank in ranks.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                let _ = fs::write(rank.path().join("cgroup.freeze"), "0"); // said again by remove_dir, if it matters
                let inside = fs::read_to_string(rank.path().join("cgroup.procs")).unwrap_or_default();
                for pid in inside.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                    let _ = moved(pid, &self.above);
                }
                let _ = fs::remove_dir(rank.path());
            }
            last = fs::remove_dir(&self.base);
            match &last {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(_) => std::thread::sleep(Duration::from_millis(5)), // processes in it are just ending
            }
        }
        last
    }
}

fn moved(pid: Pid, group: &Path) -> io::Result<()> {
    match fs::write(group.join("cgroup.procs"), pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}
