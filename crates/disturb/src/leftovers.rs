//! Objects that an earlier command left in the kernel because it and all its guards were killed at once: trace
//! instances, control groups, stopped processes. Their names identify the process that made them ([`owner`]). Those
//! of a running process are left alone.

use std::fs;
use std::path::{Path, PathBuf};

use crosswind_linux::owner::{self, Owner};
use crosswind_linux::processes::{Pid, all, parent_and_state};

use crate::inject::group::Groups;
use crate::inject::processes::marked_by;
use crate::noise::trace;

/// Prefix of the names of a process's groups and trace instances.
const PREFIX: &str = "crosswind";
/// Prefix of the names of trial objects.
const TRIED: &str = "crosswind-try";
/// Prefix of the names of groups of single tasks; a number follows the owner's.
const TASK: &str = "crosswind-task";
/// Most control groups examined, the outermost first.
const MOST_GROUPS: usize = 20_000;

/// Returns the name of this process's objects, the same for as long as it lives.
#[must_use]
pub fn own_name() -> String {
    owner::name(PREFIX)
}

/// Returns the name of this process's trial objects.
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
    /// A stopped process that carries the mark of an ended injection. Another program may have stopped it.
    Stopped(Pid),
}

impl Leftover {
    /// Returns its kind in one word, and its path or process.
    #[must_use]
    pub fn described(&self) -> (&'static str, String) {
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

/// Finds all leftovers on this host that this user can see.
#[must_use]
pub fn find() -> Vec<Leftover> {
    let mut found: Vec<Leftover> = trace::with_instances(traces).unwrap_or_default();
    found.extend(groups());
    found.extend(stopped());
    found
}

/// Removes the leftovers of ended processes and returns them: trace instances, and control groups, which are thawed
/// and whose processes move to the group above. Stopped processes are left alone, since another program may have
/// stopped them.
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
        // A process in the group itself is no rank but a task that outlived its agent, and the group limits its
        // memory.
        Leftover::Group(path, _) if holds_processes(path) => false,
        Leftover::Group(path, _) => path.parent().is_some_and(|above| Groups::left(above, path).remove().is_ok()),
        _ => false,
    }));
    removed
}

fn traces(instances: &Path) -> Vec<Leftover> {
    named(instances).map(Leftover::Trace).collect()
}

/// Returns the directories here whose owner has ended.
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
    use crosswind_linux::signals::{Signal, kill};

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
        kill(pid, Signal::STOP).expect("our own child");
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
