//! Network namespaces: a socket belongs to the namespace of the thread that creates it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Runs `work` in a network namespace, on a separate thread: only that thread enters it.
///
/// # Errors
/// When the namespace cannot be entered, or `work` fails.
pub fn in_namespace<T: Send>(namespace: &Path, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let opened = File::open(namespace)?;
    let entered = move || {
        move_into_link_name_space(opened.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(entered).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_namespace_is_not_entered() {
        let refused = in_namespace(Path::new("/proc/self/exe"), || Ok(()));
        assert!(refused.is_err());
    }
}
