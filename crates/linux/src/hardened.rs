//! A forked process that survives what ends the command that forked it.
//!
//! A guard that dies with the command undoes nothing. So it leads its own session and ignores all signals except
//! SIGCHLD and those of faults. It has another name and command line than the command (`pkill -f`, `killall`). It
//! leaves the command's control groups if this user may (`systemctl kill`, an OOM kill of the group, the end of a
//! job).

use std::ffi::CStr;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use rustix::process::{chdir, set_parent_process_death_signal, setsid};
use rustix::thread::set_name;

use crate::children::close_all_but;
use crate::signals::{Signal, ignore, reset};

/// Its name in `ps`, at most 15 bytes.
const NAME: &CStr = c"undo-watchdog";
/// Its command line. It must not contain the name of the command that it outlives.
const TITLE: &str = "undo-watchdog: continues and restores what a measurement changed, then ends";
/// Hierarchies of version 1 that freeze, kill or count a group of processes.
const HIERARCHIES: [&str; 4] = ["freezer", "memory", "pids", "name=systemd"];

/// Turns the calling process, a child that was just forked, into such a guard. Keeps only these descriptors open.
pub fn outlive(keep: &mut [RawFd]) {
    let _ = setsid(); // it leads a session already
    for signal in 1..32 {
        let always = [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        if signal != libc::SIGCHLD && !always.contains(&signal) {
            ignore(signal);
        }
    }
    reset(libc::SIGCHLD);
    // None of these fails for such values. If this guard is stopped when the command ends, it continues.
    let _ = (set_parent_process_death_signal(Some(Signal::CONT)), set_name(NAME), chdir(c"/"));
    close_all_but(keep);
    replace_command_line();
    let _ = fs::write("/proc/self/oom_score_adj", "-1000"); // works for root only; the kernel then prefers to kill the command
    leave_groups();
}

/// Overwrites the arguments that this process shows in `/proc`; a forked child has its own copy.
fn replace_command_line() {
    let Ok(text) = fs::read_to_string("/proc/self/stat") else { return };
    let Some((_, after)) = text.rsplit_once(')') else { return };
    let words: Vec<&str> = after.split_ascii_whitespace().collect();
    let place = |field: usize| words.get(field - 3).and_then(|word| word.parse::<usize>().ok());
    let (Some(begin), Some(end)) = (place(48), place(49)) else { return };
    if begin == 0 || end <= begin {
        return;
    }
    let title = &TITLE.as_bytes()[..TITLE.len().min(end - begin - 1)];
    // SAFETY: the kernel put the arguments there, on this process's own stack, which stays mapped and writable; nothing
    // in this child reads them any longer.
    unsafe {
        let at = begin as *mut u8;
        std::ptr::write_bytes(at, 0, end - begin);
        std::ptr::copy_nonoverlapping(title.as_ptr(), at, title.len());
    }
}

/// Moves this process to the outermost group that permits it, in each hierarchy.
fn leave_groups() {
    let (Ok(own), Ok(mounts)) = (fs::read_to_string("/proc/self/cgroup"), fs::read_to_string("/proc/self/mountinfo"))
    else {
        return;
    };
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let wanted = controllers.is_empty() || controllers.split(',').any(|each| HIERARCHIES.contains(&each));
        if let Some(root) = Some(()).filter(|()| wanted).and_then(|()| mounted_at(&mounts, controllers)) {
            leave(&root, path.trim_start_matches('/'));
        }
    }
}

fn leave(root: &Path, path: &str) {
    let mut group = root.to_path_buf();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if fs::write(group.join("cgroup.procs"), "0").is_ok() {
            return;
        }
        group.push(part);
    }
}

/// Returns where a hierarchy is mounted: that of version 2 (no controllers), or one of version 1.
fn mounted_at(mounts: &str, controllers: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
        let is_it = if controllers.is_empty() {
            kind == "cgroup2"
        } else {
            kind == "cgroup" && controllers.split(',').all(|each| options.split(',').any(|option| option == each))
        };
        is_it.then(|| before.split(' ').nth(4)).flatten().map(PathBuf::from)
    })
}

/// Whether this process outlives the end of everything in a control group of version 2. The outermost group cannot be
/// killed as a whole.
#[must_use]
pub fn outlives(group: Option<&Path>) -> bool {
    let (Some(group), Some(own)) = (group, crate::processes::own_group()) else { return true };
    let is_outermost = !group.parent().is_some_and(|above| above.join("cgroup.procs").exists());
    is_outermost || !own.starts_with(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchies_of_both_versions_are_found() {
        let mounts = "25 20 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
                      26 20 0:23 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      27 20 0:24 / /sys/fs/cgroup/systemd rw shared:5 - cgroup systemd rw,xattr,name=systemd\n";
        let at = |controllers| mounted_at(mounts, controllers);
        assert_eq!(at(""), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(at("cpu,cpuacct"), Some(PathBuf::from("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(at("name=systemd"), Some(PathBuf::from("/sys/fs/cgroup/systemd")));
        assert_eq!(at("memory"), None);
    }

    #[test]
    fn its_command_line_names_no_command() {
        assert!(!TITLE.to_ascii_lowercase().contains("crosswind"));
        assert!(NAME.to_bytes().len() <= 15);
    }
}
