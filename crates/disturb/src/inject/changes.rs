//! What an injection changes on this machine, and how that is undone.

use std::sync::Arc;

use super::group::Groups;
use super::ledger::{Held, Ledger};
use super::priority;
use crosswind_linux::processes::{Pid, all, parent_and_state, with_descendants};

use super::processes;
use crosswind_linux::now_ns;
use crosswind_linux::watchdog::Undo;

/// How late a process may be continued before the watchdog does it.
const LATE_NS: u64 = 1_000_000_000;
/// How often the processes are looked through: those that were just being born are found at the second time.
const ROUNDS: usize = 3;

/// What is to be undone.
#[derive(Debug)]
pub struct Changes {
    /// What is held now.
    pub ledger: Arc<Ledger>,
    /// The command's mark, which all of its processes carry.
    pub mark: String,
    /// The groups that were, or may be, made.
    pub groups: Option<Groups>,
    /// CPUs that the command's processes had before they were pinned; none: they were not.
    pub cpus: Option<Vec<usize>>,
}

impl Undo for Changes {
    /// Continues, thaws, unpins, removes.
    fn perform(&self) {
        for held in self.ledger.held() {
            self.let_go(held);
        }
        if let Some(groups) = &self.groups {
            let _ = groups.remove(); // another process made a group of its own below: nothing more can be done
        }
        for _ in 0..ROUNDS {
            let marked: Vec<Pid> = all().filter(|pid| processes::is_marked(*pid, &self.mark)).collect();
            for pid in with_descendants(&marked) {
                if parent_and_state(pid).is_some_and(|(_, state)| state == 'T') {
                    // SAFETY: a process of the command.
                    unsafe { libc::kill(pid, libc::SIGCONT) };
                }
                if let Some(cpus) = &self.cpus {
                    priority::place_all_threads(pid, cpus);
                }
            }
        }
    }

    fn can_be_late(&self) -> bool {
        true
    }

    fn heed_lateness(&self) {
        for held in self.ledger.due_before(now_ns().saturating_sub(LATE_NS)) {
            self.let_go(held);
        }
    }
}

impl Changes {
    fn let_go(&self, held: Held) {
        match held {
            // SAFETY: a process that the injector stopped.
            Held::Process(pid) => unsafe {
                libc::kill(pid, libc::SIGCONT);
            },
            Held::Group(rank) => {
                if let Some(groups) = &self.groups {
                    let _ = groups.freeze(rank, false); // removed meanwhile: then it is empty
                }
            }
        }
    }
}
