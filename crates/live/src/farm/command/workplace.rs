//! Where a command works: a directory with `in` for its input and `out` for its output.
//!
//! Making directories costs more than many commands do, on file systems that keep a journal. So a command takes over the
//! directory of the last one, if no process of that is left and it is as it was when it was new.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::farm::payload::{Spool, TaskDirectory};

const IN: &str = "in";
const OUT: &str = "out";

#[derive(Debug)]
pub struct Workplace {
    directory: TaskDirectory,
    /// Mode and owner of the directories in it.
    state: (u32, u32),
}

impl Workplace {
    /// Creates a directory in a spool.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn new(spool: &mut Spool) -> io::Result<Self> {
        let directory = spool.task_directory()?;
        for name in [IN, OUT] {
            fs::create_dir(directory.path().join(name))?;
        }
        let found = fs::symlink_metadata(directory.path().join(IN))?;
        Ok(Self { directory, state: (found.mode(), found.uid()) })
    }

    /// Returns the directory of the input.
    pub fn input(&self) -> PathBuf {
        self.directory.path().join(IN)
    }

    /// Returns the directory of the output.
    pub fn output(&self) -> PathBuf {
        self.directory.path().join(OUT)
    }

    /// Whether it is one of this spool, and as it was when it was new.
    pub fn is_as_new(&self, spool: &Spool) -> bool {
        let path = self.directory.path();
        let holds = |path: PathBuf, count: usize| fs::read_dir(path).is_ok_and(|entries| entries.count() == count);
        let is_empty = |path: PathBuf| {
            let found = fs::symlink_metadata(&path);
            found.is_ok_and(|found| (found.mode(), found.uid()) == self.state) && holds(path, 0)
        };
        spool.holds(path) && holds(path.to_owned(), 2) && is_empty(self.input()) && is_empty(self.output())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn one_that_a_command_has_changed_is_not_as_new() {
        let spool = || Spool::below(&std::env::temp_dir(), 0).expect("a name");
        let mut own = spool();
        let changed = |change: &dyn Fn(&Workplace) -> io::Result<()>| {
            let mut own = spool();
            let one = Workplace::new(&mut own).expect("made");
            assert!(one.is_as_new(&own));
            change(&one).expect("changed");
            !one.is_as_new(&own)
        };
        let put = |path: PathBuf| fs::write(path, "left");
        assert!(changed(&|one| put(one.input().join(".left"))));
        assert!(changed(&|one| put(one.output().join("left"))));
        assert!(changed(&|one| put(one.directory.path().join("left"))));
        assert!(changed(&|one| fs::remove_dir(one.input())));
        assert!(changed(&|one| fs::set_permissions(one.input(), fs::Permissions::from_mode(0o500))));
        assert!(changed(&|one| {
            fs::remove_dir(one.output())?;
            std::os::unix::fs::symlink("/", one.output())
        }));
        assert!(!changed(&|_| Ok(())));
        let one = Workplace::new(&mut own).expect("made");
        assert!(!one.is_as_new(&spool()), "of another spool");
        let path = one.directory.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
