//! Freezes a control group of version 2 as a whole. Neither its processes nor their parents see it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::checks;
use super::refusal::Refusal;
use crate::processes::Pid;
use crate::time::now_ns;

const LOOK_NS: u64 = 1_000_000;

/// A control group that may be frozen.
#[derive(Debug)]
pub struct Group {
    pub directory: PathBuf,
    freeze: File,
    events: File,
    /// Excludes other sessions.
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
        checks::refuse_frozen_group(directory)?;
        Ok(Self {
            freeze: OpenOptions::new().read(true).write(true).open(directory.join("cgroup.freeze")).map_err(failed)?,
            events: File::open(directory.join("cgroup.events")).map_err(failed)?,
            _lock: checks::lock_group(directory)?,
            directory: directory.to_path_buf(),
            frozen: false,
        })
    }

    /// Freezes it, and returns whether all were in this time. A group that somebody else has frozen is left alone.
    ///
    /// # Errors
    /// When the group is no more.
    pub fn freeze(&mut self, within_ns: u64) -> Result<bool, Refusal> {
        let gone = |_| Refusal::Gone(0);
        if !self.frozen {
            if self.read(&self.freeze).map_err(gone)?.starts_with('1') {
                return Ok(true);
            }
            self.frozen = true;
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
            let _ = self.freeze.write_all_at(b"0", 0); // a group that was removed has nothing left to thaw
        }
    }

    pub fn members(&self) -> BTreeSet<Pid> {
        members(&self.directory)
    }
}

/// Processes of a group and of the groups below it.
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
