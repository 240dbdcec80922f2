//! Names of objects that a process leaves in the kernel if it is killed. They identify their owner and show whether
//! it still runs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::processes::Pid;
use crate::signals::exists;

/// The process that a name identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub pid: Pid,
    /// Start time in ticks since boot, since process ids are reused; `None` in names of earlier versions.
    started: Option<u64>,
    /// PID namespace of its id, as the inode of `/proc/PID/ns/pid`.
    namespace: Option<u64>,
}

fn started(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|entry| entry.ino())
}

/// Returns `PREFIX-PID-START-NAMESPACE` of this process.
#[must_use]
pub fn name(prefix: &str) -> String {
    let pid = std::process::id();
    let start = started(pid as Pid).unwrap_or_default();
    format!("{prefix}-{pid}-{start}-{}", own_namespace().unwrap_or_default())
}

impl Owner {
    /// Parses such a name, or one of an earlier version, `PREFIX-PID`.
    #[must_use]
    pub fn of(name: &str, prefix: &str) -> Option<Self> {
        let mut words = name.strip_prefix(prefix)?.strip_prefix('-')?.split('-').map(str::parse::<u64>);
        let pid = Pid::try_from(words.next()?.ok()?).ok().filter(|pid| *pid > 0)?;
        let mut rest = || words.next().map_or(Some(None), |word| word.ok().map(|word| Some(word).filter(|w| *w > 0)));
        let (started, namespace) = (rest()?, rest()?);
        words.next().is_none().then_some(Self { pid, started, namespace })
    }

    /// Whether it has certainly ended; false if its id may belong to another namespace.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        if self.namespace.is_some_and(|namespace| own_namespace() != Some(namespace)) {
            return false;
        }
        !exists(self.pid) || matches!((self.started, started(self.pid)), (Some(then), Some(now)) if then != now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_owns_its_name_and_one_of_the_same_number_that_started_later_does_not() {
        let own = name("x-y");
        let owner = Owner::of(&own, "x-y").expect("its own name");
        assert_eq!(owner.pid, std::process::id() as Pid);
        assert!(!owner.has_ended());
        assert!(Owner { started: owner.started.map(|start| start + 1), ..owner }.has_ended());
        assert!(!Owner { started: Some(1), namespace: Some(1), ..owner }.has_ended(), "another namespace");
    }

    #[test]
    fn a_process_that_has_ended_owns_nothing() {
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        let pid = child.id();
        child.wait().expect("a child of this process");
        assert!(Owner::of(&format!("crosswind-{pid}"), "crosswind").expect("an earlier name").has_ended());
    }

    #[test]
    fn what_others_named_has_no_owner() {
        for name in
            ["crosswind", "crosswind-", "crosswind-x", "crosswind-1-2-3-4", "crosswind-0", "other-7", "crosswind-7-x"]
        {
            assert_eq!(Owner::of(name, "crosswind"), None, "{name}");
        }
    }
}
