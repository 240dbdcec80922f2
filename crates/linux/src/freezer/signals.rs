//! Stops processes by SIGSTOP, where they may not be traced. Stopped processes are continued from the record,
//! whatever their parents are by then.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::pidfd_send_signal;

use super::checks;
use super::refusal::{Refusal, limit, most_processes};
use crate::processes::{Pid, with_descendants};
use crate::signals::{Signal, is_forbidden};
use crate::time::{now_ns, sleep_until};

/// Passes over a tree, to find processes forked while their parents were being stopped.
const ROUNDS: usize = 8;
const LOOK_NS: u64 = 20_000;

/// Processes and all their descendants.
#[derive(Debug)]
pub struct Signalled {
    pub roots: Vec<Pid>,
    /// Processes that got SIGSTOP and have not been continued.
    stopped: BTreeMap<Pid, OwnedFd>,
}

impl Signalled {
    pub fn new(roots: &[Pid]) -> Self {
        Self { roots: roots.to_vec(), stopped: BTreeMap::new() }
    }

    /// Refuses processes that this user may not stop. `admit` is called for each process.
    pub fn check(&self, mut admit: impl FnMut(Pid) -> Result<(), Refusal>) -> Result<(), Refusal> {
        for pid in self.members() {
            let Some(found) = checks::status(pid).filter(|found| !matches!(found.state, 'Z' | 'X' | 'x')) else {
                continue;
            };
            checks::refuse_traced(pid, &found)?;
            if is_forbidden(pid) {
                return Err(Refusal::NotPermitted(pid));
            }
            admit(pid)?;
        }
        Ok(())
    }

    pub fn members(&self) -> BTreeSet<Pid> {
        let mut found = with_descendants(&self.roots);
        found.retain(|pid| crate::processes::parent_and_state(*pid).is_some());
        found
    }

    pub fn stopped(&self) -> impl Iterator<Item = Pid> {
        self.stopped.keys().copied()
    }

    /// Stops all and returns whether all were stopped within this time. Processes that were stopped already are left
    /// alone.
    ///
    /// # Errors
    /// When one may not be signalled or opened; processes stopped until then stay in the record.
    pub fn freeze(&mut self, within_ns: u64) -> Result<bool, Refusal> {
        let until = now_ns() + within_ns;
        for _ in 0..ROUNDS {
            let new: Vec<Pid> = self.members().into_iter().filter(|pid| !self.stopped.contains_key(pid)).collect();
            let mut any = false;
            for pid in new {
                match checks::status(pid) {
                    None => continue,
                    Some(found) if matches!(found.state, 'Z' | 'X' | 'x' | 'T' | 't') => continue,
                    Some(_) => {}
                }
                if self.stopped.len() >= most_processes() {
                    return Err(Refusal::TooMany(limit()));
                }
                let process = match checks::open_process(pid) {
                    Err(Refusal::Gone(_)) => continue,
                    other => other?,
                };
                let place = self.stopped.entry(pid).or_insert(process); // recorded first, so that none is missed
                match pidfd_send_signal(place, Signal::STOP) {
                    Ok(()) => any = true,
                    Err(error) => {
                        self.stopped.remove(&pid);
                        if error == Errno::PERM {
                            return Err(Refusal::NotPermitted(pid));
                        }
                    }
                }
            }
            if !any {
                break;
            }
        }
        let mut waiting: BTreeSet<Pid> = self.stopped().collect();
        loop {
            waiting.retain(|pid| {
                crate::processes::parent_and_state(*pid).is_some_and(|(_, state)| !"TtZXx".contains(state))
            });
            if waiting.is_empty() {
                return Ok(true);
            }
            if now_ns() >= until {
                return Ok(false);
            }
            sleep_until(now_ns() + LOOK_NS);
        }
    }

    /// Continues everything that was stopped, and skips processes that cannot be continued.
    pub fn thaw(&mut self) {
        for process in std::mem::take(&mut self.stopped).into_values() {
            let _ = pidfd_send_signal(&process, Signal::CONT);
        }
    }
}
