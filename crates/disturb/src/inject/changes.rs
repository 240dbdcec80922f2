//! Changes that an injection makes to this machine, and how to undo them.

use super::group::Groups;
use super::priority;
use super::processes;
use crosswind_linux::processes::{Pid, all, with_descendants};
use crosswind_linux::watchdog::Undo;

/// Passes over the processes: one that is just being forked is found in a later pass.
const ROUNDS: usize = 3;

/// Changes to undo, other than held processes, which the freezer releases.
#[derive(Debug)]
pub struct Changes {
    /// The command's mark, which all of its processes carry.
    pub mark: String,
    /// The groups that exist or may be created.
    pub groups: Option<Groups>,
    /// CPUs that the command's processes had before they were pinned; `None`: they were not pinned.
    pub cpus: Option<Vec<usize>>,
}

impl Undo for Changes {
    /// Thaws and removes groups, unpins.
    fn perform(&self) {
        if let Some(groups) = &self.groups {
            let _ = groups.remove(); // another process created a group below: nothing more can be done
        }
        let Some(cpus) = &self.cpus else { return };
        for _ in 0..ROUNDS {
            let marked: Vec<Pid> = all().filter(|pid| processes::is_marked(*pid, &self.mark)).collect();
            with_descendants(&marked).into_iter().for_each(|pid| priority::place_all_threads(pid, cpus));
        }
    }
}

impl Changes {
    /// Whether there is anything to undo.
    #[must_use]
    pub fn any(&self) -> bool {
        self.groups.is_some() || self.cpus.is_some()
    }
}
