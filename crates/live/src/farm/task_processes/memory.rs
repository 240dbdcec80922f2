//! Memory limits of tasks: a control group for each command, of version 1 or 2.
//!
//! There is no substitute if no group can be created. An address-space limit (`RLIMIT_AS`) counts reserved memory, not
//! used memory, and applies to each process separately.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crosswind_linux::owner;
use crosswind_linux::processes::own_group;

/// Prefix of group names; their owner and a number follow. `crosswind record` and `inject` remove the groups of owners
/// that have ended.
const PREFIX: &str = "crosswind-task";
/// Number of attempts to remove a group whose processes are still ending.
const TRIES: u32 = 200;

/// A place where groups with a limit can be created.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The directory that contains the groups.
    above: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The control group of one command.
#[derive(Debug)]
pub struct Group {
    directory: PathBuf,
    version: Version,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Groups {
    /// Finds a place where a group with this limit can be created, and tests it.
    ///
    /// # Errors
    /// Why there is no such place.
    pub fn find(bytes: u64) -> Result<Self, String> {
        let mut why = "no control group with a memory controller is mounted".into();
        for groups in places() {
            match groups.make(bytes) {
                Ok(group) => {
                    group.remove();
                    return Ok(groups);
                }
                Err(error) => why = format!("{}: {error}", groups.above.display()),
            }
        }
        Err(why)
    }

    /// Creates a group with this limit.
    ///
    /// # Errors
    /// The error of the system. No group is left behind.
    pub fn make(&self, bytes: u64) -> std::io::Result<Group> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = self.above.join(format!("{}-{number}", owner::name(PREFIX)));
        fs::create_dir(&directory)?;
        let group = Group { directory, version: self.version };
        let limited = group.limit(bytes);
        if limited.is_err() {
            group.remove();
        }
        limited.map(|()| group)
    }
}

impl Group {
    /// Returns the bytes of which [`Self::of_bytes`] makes the same group in another process.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&[self.version as u8], self.directory.as_os_str().as_bytes()].concat()
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, directory) = bytes.split_first()?;
        let version = if *version == Version::Two as u8 { Version::Two } else { Version::One };
        Some(Self { directory: PathBuf::from(OsStr::from_bytes(directory)), version })
    }

    fn limit(&self, bytes: u64) -> std::io::Result<()> {
        let set = |file: &str, value: &str| fs::write(self.directory.join(file), value);
        let optional = |file: &str, value: &str| {
            if self.directory.join(file).exists() { set(file, value) } else { Ok(()) }
        };
        match self.version {
            Version::Two => {
                set("memory.max", &bytes.to_string())?;
                optional("memory.swap.max", "0")?;
                optional("memory.oom.group", "1")
            }
            Version::One => {
                set("memory.limit_in_bytes", &bytes.to_string())?;
                // This limit includes swap. Where the kernel supports it, it must not be below the limit without swap.
                optional("memory.memsw.limit_in_bytes", &bytes.to_string())
            }
        }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Opens the file through which a process joins the group. `None` if it cannot be opened.
    pub(super) fn procs(&self) -> Option<File> {
        File::options().write(true).open(self.directory.join("cgroup.procs")).ok()
    }

    /// Returns whether the kernel killed a process because the group exceeded its limit.
    #[must_use]
    pub fn was_exceeded(&self) -> bool {
        let file = if self.version == Version::Two { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        let ended = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        ended.is_some_and(|count| count.trim() != "0")
    }

    /// Removes the group. A group whose last process does not end remains.
    pub fn remove(&self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

/// Returns the places where a group could be created, the likeliest first.
fn places() -> Vec<Groups> {
    let mut found = Vec::new();
    if let Some(own) = own_group() {
        let divides = |group: &Path| {
            fs::read_to_string(group.join("cgroup.subtree_control"))
                .is_ok_and(|text| text.split_ascii_whitespace().any(|word| word == "memory"))
        };
        // A group that contains processes cannot divide its memory among subgroups, so the task's group is a sibling.
        let beside = own.parent().filter(|above| above.join("cgroup.procs").exists());
        let above = [Some(own.as_path()), beside].into_iter().flatten().find(|group| divides(group));
        found.extend(above.map(|above| Groups { above: above.to_owned(), version: Version::Two }));
    }
    found.extend(own_group_of_version_1().map(|above| Groups { above, version: Version::One }));
    found
}

/// Returns this process's group in the version 1 hierarchy with the memory controller.
fn own_group_of_version_1() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|word| word == "memory").then_some(path)
    })?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut kind = after.split(' ');
        if kind.next() != Some("cgroup") || !kind.nth(1)?.split(',').any(|word| word == "memory") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        // In a container the mount shows only part of the hierarchy, and the group's path is relative to that part.
        let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        Some(Path::new(at).join(inside.strip_prefix("/").unwrap_or(inside)))
    })
}
