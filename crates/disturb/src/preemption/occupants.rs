//! Which process had a processor: its name, its number and its control group, looked up while it still runs.

use std::collections::HashMap;
use std::fs;

use super::events::Comms;
use super::threads::{Absence, Kind, Occupant};
use crate::process::cgroup_of;

const MOST_MET: usize = 100_000;

/// What kept ranks from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub name: String,
    /// `None`: no process, or not known.
    pub pid: Option<i32>,
    pub cgroup: String,
    /// Length of all absences, ns.
    pub ns: u64,
}

/// All causes, in order of first appearance.
#[derive(Debug, Default)]
pub struct Causes {
    all: Vec<Cause>,
    of_occupant: HashMap<Occupant, u32>,
    /// Process and control group of every thread that has had a processor.
    met: HashMap<Occupant, (i32, String)>,
    of_name: HashMap<String, u32>,
}

impl Causes {
    /// Looks up a thread that has a processor, as long as it exists.
    pub fn meet(&mut self, one: Occupant) {
        if one.tid == 0 || self.met.contains_key(&one) {
            return;
        }
        if self.met.len() >= MOST_MET {
            self.met.clear(); // those that still run are met again
        }
        self.met.insert(one, looked_up(one.tid));
    }

    /// Returns the index of what kept a thread from running.
    pub fn of(&mut self, absence: &Absence, comms: &Comms) -> Option<u32> {
        let index = match (absence.kind, absence.by) {
            (Kind::Preempted | Kind::Stopped, Some(by)) => Some(self.of_occupant(by, comms)),
            (Kind::Preempted, None) => None,
            (Kind::Stopped, None) => Some(self.of_name("stopped by a signal or a tracer")),
            (Kind::Uninterruptible, _) => Some(self.of_name("disk or page")),
            (Kind::Withheld, _) => Some(self.of_name("idle processor")),
        };
        if let Some(cause) = index.and_then(|index| self.all.get_mut(index as usize)) {
            cause.ns += absence.end_ns - absence.start_ns;
        }
        index
    }

    #[must_use]
    pub fn all(self) -> Vec<Cause> {
        self.all
    }

    fn of_name(&mut self, name: &str) -> u32 {
        if let Some(index) = self.of_name.get(name) {
            return *index;
        }
        let index = self.add(Cause { name: name.to_owned(), pid: None, cgroup: String::new(), ns: 0 });
        self.of_name.insert(name.to_owned(), index);
        index
    }

    fn of_occupant(&mut self, by: Occupant, comms: &Comms) -> u32 {
        if let Some(index) = self.of_occupant.get(&by) {
            return *index;
        }
        let (pid, cgroup) = self.met.get(&by).cloned().unwrap_or_else(|| looked_up(by.tid));
        let cause = Cause { name: comms.name(by.comm).to_owned(), pid: Some(pid), cgroup, ns: 0 };
        // Threads of one process and name are one cause.
        let same = |one: &Cause| (&one.name, one.pid, &one.cgroup) == (&cause.name, cause.pid, &cause.cgroup);
        let index = match self.all.iter().position(same) {
            Some(index) => index as u32,
            None => self.add(cause),
        };
        self.of_occupant.insert(by, index);
        index
    }

    fn add(&mut self, cause: Cause) -> u32 {
        self.all.push(cause);
        (self.all.len() - 1) as u32
    }
}

/// Returns a thread's process and control group; the thread itself, and none, if it has ended.
fn looked_up(tid: i32) -> (i32, String) {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    (pid.unwrap_or(tid), cgroup_of(tid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once_and_its_time_adds_up() {
        let mut comms = Comms::default();
        let by = Occupant { tid: i32::MAX, comm: comms.place("gone") };
        let absence = |kind, by| Absence { start_ns: 0, end_ns: 10, tid: 1, cpu: 0, kind, by };
        let mut causes = Causes::default();
        assert_eq!(causes.of(&absence(Kind::Preempted, Some(by)), &comms), Some(0));
        assert_eq!(causes.of(&absence(Kind::Stopped, None), &comms), Some(1));
        assert_eq!(causes.of(&absence(Kind::Preempted, Some(by)), &comms), Some(0));
        assert_eq!(causes.of(&absence(Kind::Preempted, None), &comms), None);
        let all = causes.all();
        let told: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.pid, one.ns)).collect();
        assert_eq!(told, [("gone", Some(i32::MAX), 20), ("stopped by a signal or a tracer", None, 10)]);
    }
}
