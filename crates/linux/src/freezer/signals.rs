//! Stops processes by SIGSTOP, where they may not be traced. What was stopped is continued from the record of it, whoever
//! its parent is by then.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};

use super::checks;
use super::refusal::{Refusal, errno};
use crate::processes::{Pid, with_descendants};
use crate::time::{now_ns, sleep_until};

/// How often a tree is looked through for what was born while its parents were being stopped.
const ROUNDS: usize = 8;
const LOOK_NS: u64 = 20_000;

/// Processes with all that descends from them.
#[derive(Debug)]
pub struct Signalled {
    pub roots: Vec<Pid>,
    /// What got SIGSTOP and was not continued.
    stopped: BTreeMap<Pid, OwnedFd>,
}

impl Signalled {
    pub fn new(roots: &[Pid]) -> Self {
        Self { roots: roots.to_vec(), stopped: BTreeMap::new() }
    }

    /// Refuses what this user may not stop. `admit` is asked for each process.
    pub fn check(&self, mut admit: impl FnMut(Pid) -> Result<(), Refusal>) -> Result<(), Refusal> {
        for pid in self.members() {
            let Some(found) = checks::status(pid).filter(|found| !matches!(found.state, 'Z' | 'X' | 'x')) else {
                continue;
            };
            checks::refuse_traced(pid, &found)?;
            // SAFETY: sends nothing.
            if unsafe { libc::kill(pid, 0) } != 0 && errno() == libc::EPERM {
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

    /// Stops all, and returns whether all were in this time. What somebody else has stopped is left alone.
    ///
    /// # Errors
    /// When one may not be signalled, or cannot be opened; what was stopped until then stays in the record.
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
                let process = match checks::open_process(pid) {
                    Err(Refusal::Gone(_)) => continue,
                    other => other?,
                };
                let place = self.stopped.entry(pid).or_insert(process); // noted first, so that nothing is missed
                match send(place, libc::SIGSTOP) {
                    Ok(()) => any = true,
                    Err(error) => {
                        self.stopped.remove(&pid);
                        if error == libc::EPERM {
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

    /// Continues all that was stopped, and goes on to the next where one cannot be.
    pub fn thaw(&mut self) {
        for process in std::mem::take(&mut self.stopped).into_values() {
            let _ = send(&process, libc::SIGCONT);
        }
    }
}

/// Signals exactly that process, whatever its number belongs to by now.
pub fn send(process: &OwnedFd, signal: i32) -> Result<(), i32> {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a live descriptor of `/proc/PID`; no information is passed along.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, nothing, 0 as libc::c_uint) };
    if result == 0 { Ok(()) } else { Err(errno()) }
}
