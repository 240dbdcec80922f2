//! What an earlier command left in the kernel because it and everything that guards it were killed at once: trace
//! instances, control groups, stopped processes. Its names tell whose it was ([`owner`]); what belongs to a process that
//! runs is left alone.

use std::fs;
use std::path::{Path, PathBuf};

use crosswind_linux::owner::{self, Owner};
use crosswind_linux::processes::{Pid, all, parent_and_state};

use crate::inject::group::Groups;
use crate::inject::processes::marked_by;
use crate::noise::trace;

/// Begins the names of groups and trace instances of one process.
const PREFIX: &str = "crosswind";
/// Begins the names of what was only tried.
const TRIED: &str = "crosswind-try";
/// Begins the names of groups of single tasks; a number follows the owner's.
const TASK: &str = "crosswind-task";
/// Control groups that are looked at, the outermost first.
const MOST_GROUPS: usize = 20_000;

/// Name of what this process makes, for as long as it lives.
#[must_use]
pub fn own_name() -> String {
    owner::name(PREFIX)
}

/// Name of what this process tries.
#[must_use]
pub fn tried_name() -> String {
    owner::name(TRIED)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A trace instance, which the kernel still writes to.
    Trace(PathBuf),
    /// A control group, and whether it is frozen.
    Group(PathBuf, bool),
    /// A process that carries the mark of an injection that has ended, and is stopped. Another program may have stopped it.
    Stopped(Pid),
}

impl Leftover {
    /// Its kind in a word, and what it is.
    #[must_use]
    pub fn told(&self) -> (&'static str, String) {
        match self {
            Self::Trace(path) => ("trace", path.display().to_string()),
            Self::Group(path, _) if holds_processes(path) => ("occupied-group", path.display().to_string()),
            Self::Group(path, true) => ("frozen-group", path.display().to_string()),
            Self::Group(path, false) => ("group", path.display().to_string()),
            Self::Stopped(pid) => ("stopped", pid.to_string()),
        }
    }
}

fn is_left(name: &str) -> bool {
    let task =
        name.strip_prefix(TASK).and_then(|rest| rest.rsplit_once('-')).map(|(owner, _)| format!("{TASK}{owner}"));
    let owner = Owner::of(name, TRIED)
        .or_else(|| task.and_then(|name| Owner::of(&name, TASK)))
        .or_else(|| Owner::of(name, PREFIX));
    owner.is_some_and(|owner| owner.has_ended())
}

/// All that is left on this host, as far as this user can see it.
#[must_use]
pub fn find() -> Vec<Leftover> {
    let mut found: Vec<Leftover> = trace::with_instances(traces).unwrap_or_default();
    found.extend(groups());
    found.extend(stopped());
    found
}

/// Removes what belongs to no process that runs, and returns it: trace instances, and control groups, thawed, their
/// processes moved to the group above. A stopped process is left alone, since another program may have stopped it.
#[must_use]
pub fn remove() -> Vec<Leftover> {
    let mut removed: Vec<Leftover> = trace::with_instances(|instances| {
        traces(instances)
            .into_iter()
            .filter(|one| matches!(one, Leftover::Trace(path) if fs::remove_dir(path).is_ok()))
            .collect()
    })
    .unwrap_or_default();
    removed.extend(groups().into_iter().filter(|one| match one {
        // What runs in the group itself is not of a rank: a task that outlived its agent, whose memory the group limits.
        Leftover::Group(path, _) if holds_processes(path) => false,
        Leftover::Group(path, _) => path.parent().is_some_and(|above| Groups::left(above, path).remove().is_ok()),
        _ => false,
    }));
    removed
}

fn traces(instances: &Path) -> Vec<Leftover> {
    named(instances).map(Leftover::Trace).collect()
}

/// Directories here whose owner has ended.
fn named(above: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left)).map(|entry| entry.path())
}

fn groups() -> Vec<Leftover> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let hierarchies = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut kind = after.split(' ');
        let wanted = match kind.next()? {
            "cgroup2" => true,
            "cgroup" => kind.nth(1)?.split(',').any(|option| option == "memory"), // groups that limit a task's memory
            _ => false,
        };
        wanted.then(|| before.split(' ').nth(4)).flatten().map(PathBuf::from)
    });
    hierarchies.flat_map(|mount| groups_below(&mount)).collect()
}

fn groups_below(mount: &Path) -> Vec<Leftover> {
    let mut found = Vec::new();
    let mut waiting = std::collections::VecDeque::from([mount.to_owned()]);
    for _ in 0..MOST_GROUPS {
        let Some(group) = waiting.pop_front() else { break };
        for entry in fs::read_dir(&group).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_str().is_some_and(is_left) {
                let frozen = is_frozen(&entry.path());
                found.push(Leftover::Group(entry.path(), frozen));
            } else {
                waiting.push_back(entry.path());
            }
        }
    }
    found
}

fn holds_processes(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| !text.trim().is_empty())
}

fn is_frozen(group: &Path) -> bool {
    let asked = |group: &Path| fs::read_to_string(group.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1");
    let below = fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
    asked(group) || below.filter(|path| path.is_dir()).any(|path| asked(&path))
}

fn stopped() -> impl Iterator<Item = Leftover> {
    let is_stopped = |pid: &Pid| parent_and_state(*pid).is_some_and(|(_, state)| state == 'T');
    let is_left = |pid: &Pid| {
        let mark = marked_by(*pid);
        mark.and_then(|mark| Owner::of(&format!("{PREFIX}-{mark}"), PREFIX)).is_some_and(|owner| owner.has_ended())
    };
    all().filter(is_stopped).filter(is_left).map(Leftover::Stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        child.wait().expect("a child of this process");
        child.id()
    }

    #[test]
    fn what_an_ended_process_named_is_left_and_what_a_running_one_named_is_not() {
        let (ended, own) = (ended(), std::process::id());
        for name in ["crosswind-N", "crosswind-try-N", "crosswind-task-N-3", "crosswind-N-5-0"] {
            assert!(is_left(&name.replace('N', &ended.to_string())), "{name}");
        }
        for name in ["crosswind-N", "crosswind-try-N", "crosswind-task-N-3"] {
            assert!(!is_left(&name.replace('N', &own.to_string())), "{name}");
        }
        let task = owner::name(TASK);
        let (process, namespace) = task.rsplit_once('-').expect("a namespace at the end");
        assert!(!is_left(&format!("{task}-3")));
        assert!(is_left(&format!("{TASK}-{own}-1-{namespace}-3")), "another process had that number");
        assert!(!is_left(&format!("{process}-1-3")) && !is_left(&format!("{TASK}-{ended}-1-1-3")), "another namespace");
        assert!(!is_left(&own_name()) && !is_left(&tried_name()));
        assert!(!is_left("crosswind.slice") && !is_left("crosswind-data") && !is_left("other-1"));
    }

    #[test]
    fn a_stopped_process_of_an_ended_injection_is_named_and_not_continued() {
        let mark = format!("{}-5-0", ended()); // and the number of the injection
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env(crate::inject::processes::MARK, format!("{mark}-1"))
            .spawn()
            .expect("sleep is there");
        let pid = child.id() as Pid;
        while marked_by(pid).as_deref() != Some(mark.as_str()) {
            std::thread::yield_now();
        }
        // SAFETY: our own child.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        while parent_and_state(pid).is_some_and(|(_, state)| state != 'T') {
            std::thread::yield_now();
        }
        assert!(stopped().any(|one| one == Leftover::Stopped(pid)));
        assert!(!remove().contains(&Leftover::Stopped(pid)));
        assert!(parent_and_state(pid).is_some_and(|(_, state)| state == 'T'));
        child.kill().expect("runs");
        child.wait().expect("a child of this process");
    }
}
