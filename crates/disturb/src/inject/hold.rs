//! Takes the processor away from a rank's processes and gives it back: stopped by a signal, or frozen in their group.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use super::group::Groups;
use super::ledger::{Held, Ledger};
use crosswind_linux::now_ns;
use crosswind_linux::processes::{Pid, with_descendants};

/// How often the tree is looked through for processes that were born while their parents were being stopped.
const ROUNDS: usize = 8;

/// The processes of one rank, held or not.
#[derive(Debug)]
pub struct Hold {
    rank: u32,
    /// The rank's group; none: by signals.
    groups: Option<Groups>,
    ledger: Arc<Ledger>,
    /// Processes that are stopped, with their places in the ledger.
    stopped: BTreeMap<Pid, usize>,
    /// The frozen group's place in the ledger.
    frozen: Option<usize>,
}

impl Hold {
    /// Of a rank; in its group, which is there already, or by signals.
    #[must_use]
    pub fn new(rank: u32, groups: Option<Groups>, ledger: Arc<Ledger>) -> Self {
        Self { rank, groups, ledger, stopped: BTreeMap::new(), frozen: None }
    }

    /// Holds these processes and all that descend from them, until [`Hold::let_go`], which is to be at `due_ns`. Those that
    /// are held already stay so until then. Returns since when the leaders are held, on the monotonic clock, ns.
    ///
    /// # Errors
    /// When the group can't be frozen.
    pub fn take(&mut self, leaders: &[Pid], due_ns: u64) -> io::Result<u64> {
        if let Some(groups) = &self.groups {
            if let Some(place) = self.frozen {
                self.ledger.put_off(place, due_ns);
                return Ok(now_ns());
            }
            self.frozen = Some(self.ledger.note(Held::Group(self.rank), due_ns).ok_or_else(full)?);
            groups.freeze(self.rank, true)?;
            return Ok(now_ns());
        }
        self.stopped.values().for_each(|place| self.ledger.put_off(*place, due_ns));
        // The processes that compute first: to walk the tree takes longer than to stop them.
        let mut found: BTreeSet<Pid> = leaders.iter().copied().collect();
        let mut since_ns = None;
        for _ in 0..ROUNDS {
            found.retain(|pid| !self.stopped.contains_key(pid));
            for pid in &found {
                self.stopped.insert(*pid, self.ledger.note(Held::Process(*pid), due_ns).ok_or_else(full)?);
                // SAFETY: sends a signal to a process that descends from the command or carries its mark.
                unsafe { libc::kill(*pid, libc::SIGSTOP) };
            }
            since_ns = since_ns.or_else(|| Some(now_ns()));
            found = with_descendants(leaders);
            if found.iter().all(|pid| self.stopped.contains_key(pid)) {
                break;
            }
        }
        Ok(since_ns.unwrap_or_else(now_ns))
    }

    /// The processes that are held, of these and their descendants.
    #[must_use]
    pub fn held(&self, leaders: &[Pid]) -> BTreeSet<Pid> {
        if self.groups.is_some() { with_descendants(leaders) } else { self.stopped.keys().copied().collect() }
    }

    /// Gives the processor back.
    ///
    /// # Errors
    /// When the group can't be thawed.
    pub fn let_go(&mut self) -> io::Result<()> {
        for (pid, place) in std::mem::take(&mut self.stopped) {
            // SAFETY: a process that we stopped; should its number belong to another by now, to continue it does no harm.
            unsafe { libc::kill(pid, libc::SIGCONT) };
            self.ledger.forget(place);
        }
        if let (Some(groups), Some(place)) = (&self.groups, self.frozen) {
            groups.freeze(self.rank, false)?;
            self.frozen = None;
            self.ledger.forget(place);
        }
        Ok(())
    }
}

fn full() -> io::Error {
    io::Error::other("too many processes to keep account of")
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.let_go(); // what could not be thawed stays in the ledger, and the watchdog tries again
    }
}
