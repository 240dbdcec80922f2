//! Time 0 of a disturbance: the start of the command, or a time that the command sets by creating a file.
//!
//! Launchers take time, and so do programs that read input. A program that creates the file when it begins to compute
//! is disturbed from then on. An empty file means now. Otherwise it holds the time in ns of the monotonic clock, a
//! moment ahead so that the first interval is on time too.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use crosswind_linux::{Watched, now_ns, watch};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Time 0 of a disturbance.
#[derive(Debug)]
pub(super) struct Start {
    file: Option<(PathBuf, OwnedFd)>,
    zero_ns: Option<u64>,
}

impl Start {
    pub(super) fn at(began_ns: u64) -> Self {
        Self { file: None, zero_ns: Some(began_ns) }
    }

    /// Time 0 is when this file is created.
    ///
    /// # Errors
    /// When it exists already, or its directory cannot be watched.
    pub(super) fn watched_file(file: &Path) -> io::Result<Self> {
        if file.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // Written and closed, or moved here complete: a reader then sees all of it.
        inotify::add_watch(&descriptor, directory, WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO)?;
        Ok(Self { file: Some((file.to_owned(), descriptor)), zero_ns: None })
    }

    /// Returns time 0 on the monotonic clock, ns; `None`: not known yet.
    pub(super) fn zero_ns(&self) -> Option<u64> {
        self.zero_ns
    }

    /// Returns a descriptor that becomes readable when the file may have been created.
    pub(super) fn watched(&self) -> Option<Watched> {
        let (_, descriptor) = self.file.as_ref().filter(|_| self.zero_ns.is_none())?;
        Some(watch(descriptor.as_raw_fd(), true, false))
    }

    /// Checks for the file. Returns whether time 0 has just become known.
    ///
    /// # Errors
    /// When the file contains anything but a number.
    pub(super) fn listen(&mut self) -> Result<bool, String> {
        let Some((file, descriptor)) = self.file.as_ref().filter(|_| self.zero_ns.is_none()) else {
            return Ok(false);
        };
        let mut events = [0u8; 4096];
        // What happened does not matter: the file is looked at.
        while rustix::io::read(descriptor, &mut events).is_ok_and(|read| read > 0) {}
        let Ok(said) = std::fs::read_to_string(file) else { return Ok(false) };
        let said = said.trim();
        let when = if said.is_empty() { Ok(now_ns()) } else { said.parse() };
        let when = when.map_err(|_| format!("{} holds {said:?}, not a number of ns", file.display()))?;
        self.zero_ns = Some(when);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("crosswind-start-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    #[test]
    fn time_begins_when_the_file_says_so_and_only_once() {
        let directory = place("told");
        let file = directory.join("go");
        let mut start = Start::watched_file(&file).expect("watched");
        assert_eq!((start.listen(), start.zero_ns()), (Ok(false), None));
        std::fs::write(directory.join("other"), "1").expect("written");
        assert_eq!((start.listen(), start.zero_ns()), (Ok(false), None));
        std::fs::write(&file, "12345\n").expect("written");
        assert_eq!((start.listen(), start.zero_ns()), (Ok(true), Some(12345)));
        std::fs::write(&file, "99").expect("written");
        assert_eq!((start.listen(), start.zero_ns()), (Ok(false), Some(12345)));
        assert!(start.watched().is_none());
        std::fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn an_empty_file_means_now_and_what_is_no_number_is_refused() {
        let directory = place("empty");
        let mut start = Start::watched_file(&directory.join("go")).expect("watched");
        let before = now_ns();
        std::fs::write(directory.join("go"), "").expect("written");
        assert_eq!(start.listen(), Ok(true));
        assert!(start.zero_ns().is_some_and(|zero| (before..=now_ns()).contains(&zero)));
        let mut start = Start::watched_file(&directory.join("then")).expect("watched");
        std::fs::write(directory.join("then"), "soon").expect("written");
        assert!(start.listen().is_err_and(|why| why.contains("soon")));
        assert!(Start::watched_file(&directory.join("then")).is_err(), "it is there already");
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
