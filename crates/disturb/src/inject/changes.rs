//! What an injection changes on this machine, and how that is undone.

use super::group::Groups;
use super::priority;
use super::processes;
use crosswind_linux::processes::{Pid, all, with_descendants};
use crosswind_linux::watchdog::Undo;

/// How often the processes are looked through: those that were just being born are found at the second time.
const ROUNDS: usize = 3;

/// What is to be undone beside what is held, which is the freezer's.
#[derive(Debug)]
pub struct Changes {
    /// The command's mark, which all of its processes carry.
    pub mark: String,
    /// The groups that were, or may be, made.
    pub groups: Option<Groups>,
    /// CPUs that the command's processes had before they were pinned; none: they were not.
    pub cpus: Option<Vec<usize>>,
}

impl Undo for Changes {
    /// Thaws and removes groups, unpins.
    fn perform(&self) {
        if let Some(groups) = &self.groups {
            let _ = groups.remove(); // another process made a group of its own below: nothing more can be done
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
