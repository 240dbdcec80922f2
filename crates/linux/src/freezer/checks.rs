//! Checks before freezing: refuses processes and groups that are already stopped, traced or frozen, or frozen by
//! another session.
//!
//! Sessions exclude each other by locks on directories: `/proc/PID` of each process, and the control group. Such a
//! lock needs no file of its own, ends with its owner, and cannot belong to an earlier process of the same id.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::group::thaw_leftover;
use super::refusal::Refusal;
use crate::processes::{Pid, group_of};

const MOUNT_OF_VERSION_1: &str = "/sys/fs/cgroup/freezer";

pub struct Status {
    pub state: char,
    pub process: Pid,
    pub tracer: Pid,
}

/// Reads a process's status; `None` once it has ended.
pub fn status(pid: Pid) -> Option<Status> {
    let bytes = fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&bytes); // a name may contain any bytes
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Status {
        state: field("State:")?.chars().next()?,
        process: field("Tgid:")?.parse().ok()?,
        tracer: field("TracerPid:")?.parse().ok()?,
    })
}

/// Returns a process's name, on one line.
pub fn name(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim().replace(char::is_control, "?");
    if text.is_empty() { "?".into() } else { text }
}

/// Opens and locks `/proc/PID`. The descriptor also serves to signal this process, and never a later one of the same
/// id.
pub fn lock_process(pid: Pid) -> Result<OwnedFd, Refusal> {
    let found = open_process(pid)?;
    if lock(&found) { Ok(found) } else { Err(Refusal::InUse(format!("process {pid} ({})", name(pid)))) }
}

/// As [`lock_process`], without the lock.
pub fn open_process(pid: Pid) -> Result<OwnedFd, Refusal> {
    open(Path::new(&format!("/proc/{pid}"))).map_err(|errno| Refusal::of(errno, pid))
}

/// Locks the directory of a control group.
pub fn lock_group(group: &Path) -> Result<OwnedFd, Refusal> {
    let found = open(group).map_err(|errno| Refusal::of(errno, 0))?;
    if lock(&found) { Ok(found) } else { Err(Refusal::InUse(group.display().to_string())) }
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Whether no other session has the lock. Where there are no locks, no session has it.
fn lock(fd: &OwnedFd) -> bool {
    flock(fd, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Whether another session freezes this group.
fn is_locked(group: &Path) -> bool {
    open(group).is_ok_and(|fd| flock(fd, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

/// Refuses a requested process that must not be frozen now.
pub fn refuse_root(pid: Pid) -> Result<(), Refusal> {
    let found = status(pid).ok_or(Refusal::Gone(pid))?;
    if found.process != pid {
        return Err(Refusal::Thread(pid, found.process));
    }
    if matches!(found.state, 'Z' | 'X' | 'x') {
        return Err(Refusal::Zombie(pid));
    }
    refuse_traced(pid, &found)?;
    if found.state == 'T' {
        lock_process(pid)?; // another session may be the reason
        return Err(Refusal::Stopped(pid));
    }
    refuse_frozen(pid)
}

/// Refuses a process that another process traces.
pub fn refuse_traced(pid: Pid, found: &Status) -> Result<(), Refusal> {
    if found.tracer == 0 || found.tracer == std::process::id() as Pid {
        return Ok(());
    }
    Err(Refusal::Traced(pid, found.tracer, name(found.tracer)))
}

/// Refuses a process whose control group is frozen, or which another session freezes.
fn refuse_frozen(pid: Pid) -> Result<(), Refusal> {
    if let Some(path) = frozen_in_version_1(pid) {
        return Err(Refusal::Frozen(path));
    }
    let Some(group) = group_of(pid) else { return Ok(()) };
    for each in with_above(&group) {
        if is_locked(each) {
            return Err(Refusal::InUse(each.display().to_string()));
        }
        thaw_leftover(each);
    }
    refuse_frozen_group(&group)
}

/// Returns a group and its visible ancestors.
fn with_above(group: &Path) -> impl Iterator<Item = &Path> {
    group.ancestors().take_while(|each| each.join("cgroup.procs").exists())
}

/// Whether this group itself was frozen, rather than an ancestor.
pub fn has_freeze_request(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
}

/// Refuses a control group that is frozen, itself or by an ancestor.
pub fn refuse_frozen_group(group: &Path) -> Result<(), Refusal> {
    let refused = |group: &Path, file: &str| Err(Refusal::Frozen(group.join(file).display().to_string()));
    if let Some(frozen) = with_above(group).find(|each| has_freeze_request(each)) {
        return refused(frozen, "cgroup.freeze");
    }
    match fs::read_to_string(group.join("cgroup.events")) {
        Ok(events) if events.contains("frozen 1") => refused(group, "cgroup.events"),
        _ => Ok(()),
    }
}

fn frozen_in_version_1(pid: Pid) -> Option<String> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = own.lines().find_map(|line| line.split_once(":freezer:")).map(|(_, path)| path)?;
    let group = Path::new(MOUNT_OF_VERSION_1).join(path.trim_start_matches('/'));
    let state = fs::read_to_string(group.join("freezer.state")).ok()?;
    (state.trim() != "THAWED").then(|| {
        let frozen = frozen_itself_in_version_1(&group).unwrap_or(&group);
        frozen.join("freezer.state").display().to_string()
    })
}

/// Returns the group that was frozen: this one or an ancestor.
fn frozen_itself_in_version_1(group: &Path) -> Option<&Path> {
    let is_frozen =
        |group: &&Path| fs::read_to_string(group.join("freezer.self_freezing")).is_ok_and(|text| text.trim() == "1");
    group.ancestors().take_while(|each| each.starts_with(MOUNT_OF_VERSION_1)).find(is_frozen)
}
