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
    /// When this user may not remove a group, or one is still there after many tries.
    pub fn remove(&self) -> io::Result<()> {
        let mut last = Ok(());
        for _ in 0..ROUNDS {
            last = self.try_to_remove();
            match &last {
                // Processes in it are just ending.
                Err(error) if !is_forbidden(error) => std::thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        last
    }

    fn try_to_remove(&self) -> io::Result<()> {
        let ranks = match fs::read_dir(&self.base) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let mut forbidden = None;
        for rank in ranks.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let _ = fs::write(rank.path().join("cgroup.freeze"), "0"); // said again by remove_dir, if it matters
            let inside = fs::read_to_string(rank.path().join("cgroup.procs")).unwrap_or_default();
            for pid in inside.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                forbidden = forbidden.or(moved(pid, &self.above).err().filter(is_forbidden));
            }
            let _ = fs::remove_dir(rank.path());
        }
        match fs::remove_dir(&self.base) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(forbidden.unwrap_or(error)),
            Ok(()) => Ok(()),
        }
    }
}

/// Whether another try would be in vain.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn moved(pid: Pid, group: &Path) -> io::Result<()> {
    match fs::write(group.join("cgroup.procs"), pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Does something as another user than root, on a thread of its own: only that one changes its user.
    fn as_ordinary_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        let unprivileged = || {
            // SAFETY: takes integers only; by the bare call of the kernel it concerns this thread alone.
            unsafe {
                if libc::geteuid() == 0 {
                    assert_eq!(libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534), 0);
                }
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(unprivileged).join()).expect("no panic")
    }

    /// How often this thread has waited for something.
    fn waits() -> i64 {
        // SAFETY: a live structure of integers.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage.ru_nvcsw
        }
    }

    #[test]
    fn a_group_that_this_user_may_not_remove_or_read_is_not_tried_again_and_not_called_removed() {
        let above = std::env::temp_dir().join(format!("crosswind-groups-{}", std::process::id()));
        let base = above.join("left");
        fs::create_dir_all(base.join("rank-0")).expect("created");
        let permit = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
        permit(&above, 0o555);
        for mode in [0o755, 0o000] {
            permit(&base, mode);
            let (result, waited) = as_ordinary_user(|| {
                let before = waits();
                (Groups::left(&above, &base).remove(), waits() - before)
            });
            assert_eq!(result.expect_err("forbidden").kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
            assert!(waited < ROUNDS as i64 / 2, "{mode:o}: waited {waited} times");
        }
        permit(&above, 0o755);
        permit(&base, 0o755);
        fs::remove_dir_all(&above).expect("permitted");
    }
}
