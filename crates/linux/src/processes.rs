//! Processes as listed in `/proc`: all of them, their descendants, and their control groups.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::children::exit_now;

pub type Pid = libc::pid_t;

/// Returns the children of all threads of a process; empty once it has ended.
fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        if let Ok(text) = fs::read_to_string(thread.path().join("children")) {
            found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<Pid>().ok()));
        }
    }
    found
}

/// Whether this kernel lists children (`CONFIG_PROC_CHILDREN`).
fn lists_children() -> bool {
    fs::metadata("/proc/self/task").is_ok() && fs::read_to_string("/proc/thread-self/children").is_ok()
}

/// Returns parent and state of a process; `None` once it has ended.
#[must_use]
pub fn parent_and_state(pid: Pid) -> Option<(Pid, char)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?; // the name may contain any characters
    let mut words = after.split_ascii_whitespace();
    Some((words.next().and_then(|state| state.chars().next())?, words.next()?.parse().ok()?)).map(|(s, p)| (p, s))
}

/// Returns the session of a process, 0 for a thread of the kernel; `None` once it has ended.
#[must_use]
pub fn session_of(pid: Pid) -> Option<Pid> {
    // SAFETY: takes and returns integers only. rustix has no number for the session of the kernel's threads.
    let session = unsafe { libc::getsid(pid) };
    (session >= 0).then_some(session)
}

/// Ends this process after a delay, on a thread of its own, whatever other threads do or hold. Nothing is flushed, and no
/// exit handler runs.
pub fn end_process_after(delay: Duration, status: i32) {
    let end = move || {
        std::thread::sleep(delay);
        exit_now(status)
    };
    // Without a thread, the process ends as it would have: when nothing holds it any more.
    drop(std::thread::Builder::new().name("cw-end".into()).spawn(end));
}

pub fn all() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns these processes and all their descendants.
#[must_use]
pub fn with_descendants(roots: &[Pid]) -> BTreeSet<Pid> {
    let mut found: BTreeSet<Pid> = BTreeSet::new();
    let mut waiting: Vec<Pid> = roots.to_vec();
    if lists_children() {
        while let Some(pid) = waiting.pop() {
            if found.insert(pid) {
                waiting.extend(children(pid));
            }
        }
        return found;
    }
    let mut below: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in all() {
        if let Some((parent, _)) = parent_and_state(pid) {
            below.entry(parent).or_default().push(pid);
        }
    }
    while let Some(pid) = waiting.pop() {
        if found.insert(pid) {
            waiting.extend(below.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Returns the directory of this process's control group in the hierarchy of version 2; `None` if it is not mounted.
#[must_use]
pub fn own_group() -> Option<PathBuf> {
    group_at("/proc/self/cgroup")
}

/// Returns the directory of a process's control group in the hierarchy of version 2; `None` if it is not mounted.
#[must_use]
pub fn group_of(pid: Pid) -> Option<PathBuf> {
    group_at(&format!("/proc/{pid}/cgroup"))
}

fn group_at(file: &str) -> Option<PathBuf> {
    let own = fs::read_to_string(file).ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    for line in mounts.lines() {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            continue;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        // In a container the mount shows only part of the hierarchy: the group's path is relative to that part.
        let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let inside = inside.strip_prefix("/").unwrap_or(inside);
        return Some(Path::new(at).join(inside));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn descendants_are_found_whether_or_not_the_kernel_lists_children() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().expect("a shell");
        let pid = child.id() as Pid;
        while with_descendants(&[pid]).len() < 2 {
            std::thread::yield_now();
        }
        let found = with_descendants(&[pid]);
        for other in &found {
            crate::signals::kill(*other, crate::signals::Signal::KILL).expect("our own child or grandchild");
        }
        child.wait().expect("a child of this process");
        assert!(found.contains(&pid));
    }

    #[test]
    fn every_process_has_a_session_and_one_that_has_ended_has_none() {
        assert_eq!(session_of(0), session_of(std::process::id() as Pid));
        assert!(all().filter_map(session_of).all(|session| session >= 0), "those of the kernel too");
        let mut child = Command::new("true").spawn().expect("starts");
        child.wait().expect("a child of this process");
        assert_eq!(session_of(child.id() as Pid), None);
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_hide_the_parent() {
        let (parent, state) = parent_and_state(std::process::id() as Pid).expect("we are here");
        assert!(parent > 0 && "RS".contains(state));
    }
}
