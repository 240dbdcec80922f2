//! Freezes a control group of version 2 as a whole. Neither its processes nor their parents can see it.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, XattrFlags, access, getxattr_query, removexattr, setxattr};
use rustix::io::Errno;

use super::checks;
use super::refusal::Refusal;
use crate::processes::Pid;
use crate::time::{now_ns, sleep_until};

const LOOK_NS: u64 = 1_000_000;
/// Attribute of a group's directory while it is frozen here. If the command and its guard are killed at once, the
/// next session thaws the groups with this attribute.
const MARK: &CStr = c"user.frozen-by-undo-watchdog";
/// Longest time that a group takes to thaw, ns.
const THAWED_WITHIN_NS: u64 = 100_000_000;

/// A control group that may be frozen.
#[derive(Debug)]
pub struct Group {
    pub directory: PathBuf,
    freeze: File,
    events: File,
    _lock: OwnedFd,
    frozen: bool,
}

impl Group {
    pub fn new(directory: &Path) -> Result<Self, Refusal> {
        let failed = |error: std::io::Error| match error.raw_os_error().unwrap_or(0) {
            libc::EACCES | libc::EPERM => Refusal::NotPermitted(0),
            libc::ENOENT | libc::ENODEV => Refusal::Gone(0),
            other => Refusal::System(other),
        };
        let lock = checks::lock_group(directory)?;
        thaw_marked(directory);
        checks::refuse_frozen_group(directory)?;
        Ok(Self {
            freeze: OpenOptions::new().read(true).write(true).open(directory.join("cgroup.freeze")).map_err(failed)?,
            events: File::open(directory.join("cgroup.events")).map_err(failed)?,
            _lock: lock,
            directory: directory.to_path_buf(),
            frozen: false,
        })
    }

    /// Freezes the group and returns whether all processes were frozen within this time. A group that was frozen
    /// already is left alone.
    ///
    /// # Errors
    /// When the group no longer exists.
    pub fn freeze(&mut self, within_ns: u64) -> Result<bool, Refusal> {
        let gone = |_| Refusal::Gone(0);
        if !self.frozen {
            if self.read(&self.freeze).map_err(gone)?.starts_with('1') {
                return Ok(true);
            }
            self.frozen = true;
            set_mark(&self.directory, true);
            self.freeze.write_all_at(b"1", 0).map_err(|error| {
                self.frozen = false;
                gone(error)
            })?;
        }
        let until = now_ns() + within_ns;
        while !self.read(&self.events).map_err(gone)?.contains("frozen 1") {
            if now_ns() >= until {
                return Ok(false);
            }
            let mut changed = libc::pollfd { fd: self.events.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
            let _ = crate::waiting::wait(std::slice::from_mut(&mut changed), Some(LOOK_NS));
        }
        Ok(true)
    }

    fn read(&self, file: &File) -> std::io::Result<String> {
        let mut bytes = [0u8; 256];
        let read = file.read_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }

    /// Thaws it, if it was frozen here.
    pub fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            let _ = self.freeze.write_all_at(b"0", 0); // a removed group has nothing left to thaw
            set_mark(&self.directory, false);
        }
    }

    pub fn members(&self) -> BTreeSet<Pid> {
        members(&self.directory)
    }
}

/// Sets or removes the mark, if the kernel supports attributes of groups (Linux 5.7).
fn set_mark(directory: &Path, set: bool) {
    let _ = if set { setxattr(directory, MARK, b"1", XattrFlags::empty()) } else { removexattr(directory, MARK) };
}

/// Returns the length of the mark.
fn mark(directory: &Path) -> Result<usize, Errno> {
    getxattr_query(directory, MARK)
}

fn is_marked(directory: &Path) -> bool {
    mark(directory).is_ok_and(|length| length > 0)
}

/// Whether this process may set the mark and the kernel supports it.
fn can_be_marked(directory: &Path) -> bool {
    access(directory, Access::WRITE_OK).is_ok() && matches!(mark(directory), Ok(_) | Err(Errno::NODATA))
}

/// Thaws a group that was frozen by an earlier session whose command and guard were killed at once.
pub fn thaw_leftover(directory: &Path) {
    if is_marked(directory) {
        if let Ok(_lock) = checks::lock_group(directory) {
            thaw_marked(directory);
        }
    }
}

/// Thaws a group frozen by a guard that was killed. If marks can be set on the group, a frozen group without a mark
/// was frozen by another program.
pub fn undo(directory: &Path) {
    let Ok(_lock) = checks::lock_group(directory) else { return }; // the next session has already thawed it
    if is_marked(directory) {
        thaw_marked(directory);
    } else if !can_be_marked(directory) {
        let _ = fs::write(directory.join("cgroup.freeze"), "0"); // a removed group is not frozen
    }
}

/// Thaws a marked group and removes the mark. The caller holds the group's lock.
fn thaw_marked(directory: &Path) {
    if !is_marked(directory) {
        return;
    }
    if checks::has_freeze_request(directory) {
        if fs::write(directory.join("cgroup.freeze"), "0").is_err() {
            return; // belongs to another user: it is refused as frozen
        }
        let events = directory.join("cgroup.events");
        let is_frozen = || fs::read_to_string(&events).is_ok_and(|text| text.contains("frozen 1"));
        let until = now_ns() + THAWED_WITHIN_NS;
        while is_frozen() && now_ns() < until {
            sleep_until(now_ns() + LOOK_NS);
        }
    }
    set_mark(directory, false);
}

/// Returns the processes of a group and of its descendants.
pub fn members(directory: &Path) -> BTreeSet<Pid> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(group) = waiting.pop() {
        let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        found.extend(procs.split_ascii_whitespace().filter_map(|word| word.parse::<Pid>().ok()));
        let below = fs::read_dir(&group).into_iter().flatten().flatten();
        waiting.extend(below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
    found
}
