//! How much memory a task may take: a control group of its own for each command, of version 2 or 1.
//!
//! There is no substitute where no group can be made: an address-space limit (`RLIMIT_AS`) counts what is reserved, not what
//! is used, and counts each process alone.

use std::ffi::CString;
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crosswind_linux::owner;
use crosswind_linux::processes::own_group;

/// Begins the names of groups; their owner and a number follow. `crosswind record` and `inject` remove those whose owner
/// has ended.
const PREFIX: &str = "crosswind-task";
/// How often the removal of a group is tried whose processes are just ending.
const TRIES: u32 = 200;

/// Where groups with a limit can be made.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The directory above them.
    above: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group of one command.
#[derive(Debug)]
pub struct Group {
    directory: PathBuf,
    procs: CString,
    version: Version,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Groups {
    /// Finds where a group with this limit can be made, and tries it.
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

    /// Makes a group with this limit.
    ///
    /// # Errors
    /// What the system said. Nothing of the group is left.
    pub fn make(&self, bytes: u64) -> std::io::Result<Group> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = self.above.join(format!("{}-{number}", owner::name(PREFIX)));
        let procs = CString::new(directory.join("cgroup.procs").as_os_str().as_bytes())?;
        fs::create_dir(&directory)?;
        let group = Group { directory, procs, version: self.version };
        let limited = group.limit(bytes);
        if limited.is_err() {
            group.remove();
        }
        limited.map(|()| group)
    }
}

impl Group {
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
                // With swap: where the kernel counts that, it must not be more than without.
                optional("memory.memsw.limit_in_bytes", &bytes.to_string())
            }
        }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Opens the file by which a process joins.
    pub(super) fn procs(&self) -> Option<RawFd> {
        // SAFETY: a live string.
        let fd = unsafe { libc::open(self.procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        (fd >= 0).then_some(fd)
    }

    /// Whether the kernel ended a process here because the group was full.
    #[must_use]
    pub fn was_exceeded(&self) -> bool {
        let file = if self.version == Version::Two { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        let ended = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        ended.is_some_and(|count| count.trim() != "0")
    }

    /// Takes the group away; one whose last process does not end stays.
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

/// Where a group could be made, the likeliest first.
fn places() -> Vec<Groups> {
    let mut found = Vec::new();
    if let Some(own) = own_group() {
        let divides = |group: &Path| {
            fs::read_to_string(group.join("cgroup.subtree_control"))
                .is_ok_and(|text| text.split_ascii_whitespace().any(|word| word == "memory"))
        };
        // A group that holds processes cannot divide its memory among groups below it, so the task's is made beside it.
        let beside = own.parent().filter(|above| above.join("cgroup.procs").exists());
        let above = [Some(own.as_path()), beside].into_iter().flatten().find(|group| divides(group));
        found.extend(above.map(|above| Groups { above: above.to_owned(), version: Version::Two }));
    }
    found.extend(own_group_of_version_1().map(|above| Groups { above, version: Version::One }));
    found
}

/// This process's group in the hierarchy of version 1 that has the memory controller.
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
        // In a container the mount shows only a part of the hierarchy: the group's path counts from that part.
        let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        Some(Path::new(at).join(inside.strip_prefix("/").unwrap_or(inside)))
    })
}
