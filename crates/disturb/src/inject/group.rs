//! Freezing by control groups (version 2): one per rank, below this process's group.
//!
//! A frozen process cannot notice it: there is no signal, and no change of state that a parent or a shell could see.
//! Groups without controllers limit nothing, so a rank keeps all limits of the group above.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::leftovers;
use crosswind_linux::processes::{Pid, own_group};

/// Attempts to empty a group that still gets new processes.
const ROUNDS: usize = 200;

/// Checks whether this process can create and freeze groups, by a trial that leaves nothing behind.
///
/// # Errors
/// The reason why not.
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
    /// Group that its processes come from and return to.
    above: PathBuf,
    /// Holds one group per rank.
    pub base: PathBuf,
}

impl Groups {
    /// Names the groups of a command that this process injects into; creates none yet.
    #[must_use]
    pub fn named() -> Option<Self> {
        let above = own_group()?;
        let base = above.join(leftovers::own_name());
        Some(Self { above, base })
    }

    /// Returns the groups that an ended process left behind.
    #[must_use]
    pub fn left(above: &Path, base: &Path) -> Self {
        Self { above: above.to_owned(), base: base.to_owned() }
    }

    /// Returns the directory of a rank's group.
    #[must_use]
    pub fn of(&self, rank: u32) -> PathBuf {
        self.base.join(format!("rank-{rank}"))
    }

    /// Creates a rank's group, unless it exists.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(&self, rank: u32) -> io::Result<()> {
        fs::create_dir_all(self.of(rank))
    }

    /// Returns the file by which a process joins a rank's group.
    #[must_use]
    pub fn procs(&self, rank: u32) -> PathBuf {
        self.of(rank).join("cgroup.procs")
    }

    /// Moves a process into a rank's group. An ended process is not an error.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take_in(&self, rank: u32, pid: Pid) -> io::Result<()> {
        moved(pid, &self.of(rank))
    }

    /// Thaws all groups, moves their processes back to the group above, and removes the groups.
    ///
    /// # Errors
    /// When this user may not remove a group, or one still exists after many attempts.
    pub fn remove(&self) -> io::Result<()> {
        let mut last = Ok(());
        for _ in 0..ROUNDS {
            last = self.try_to_remove();
            match &last {
                // Its processes are just ending.
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
            let _ = fs::write(rank.path().join("cgroup.freeze"), "0"); // if it matters, remove_dir fails too
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

/// Whether a retry would be pointless.
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

    use crosswind_linux::children::Usage;
    use rustix::process::geteuid;
    use rustix::thread::{Uid, set_thread_res_uid};

    use super::*;

    /// Runs `work` as an unprivileged user, on a separate thread: only that thread changes its user.
    fn as_ordinary_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        let unprivileged = || {
            if geteuid().is_root() {
                let nobody = Uid::from_raw(65534);
                set_thread_res_uid(nobody, nobody, nobody).expect("root may");
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(unprivileged).join()).expect("no panic")
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
                let before = Usage::of_thread().waits;
                (Groups::left(&above, &base).remove(), Usage::of_thread().waits - before)
            });
            assert_eq!(result.expect_err("forbidden").kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
            assert!(waited < ROUNDS as i64 / 2, "{mode:o}: waited {waited} times");
        }
        permit(&above, 0o755);
        permit(&base, 0o755);
        fs::remove_dir_all(&above).expect("permitted");
    }
}
