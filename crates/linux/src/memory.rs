//! Memory of other processes of this user.

use std::io;
use std::mem::MaybeUninit;

use crate::processes::Pid;

/// Most bytes of one system call: the kernel copies less than 2 GiB at a time.
const PIECE: usize = 1 << 30;
/// Size of a large page, bytes, and of memory for which asking for such pages pays.
const LARGE_PAGE: usize = 2 << 20;
const WORTHWHILE: usize = 2 * LARGE_PAGE;

/// Copies memory of another process.
///
/// # Errors
/// When the process has ended, has no such memory, or may not be read by this one.
pub fn read(pid: Pid, address: usize, into: &mut [MaybeUninit<u8>]) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        let piece = &mut into[done..];
        let count = piece.len().min(PIECE);
        let here = libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: count };
        let there = libc::iovec { iov_base: (address + done) as *mut _, iov_len: count };
        // SAFETY: the kernel writes `count` bytes at most, into a live slice; it checks the other process's address.
        let copied = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
        match usize::try_from(copied) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(copied) => done += copied,
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// Asks the kernel for large pages where memory has none yet: filling it then takes fewer page faults.
pub fn prefer_large_pages(memory: &mut [MaybeUninit<u8>]) {
    if memory.len() >= WORTHWHILE {
        advise(memory, libc::MADV_HUGEPAGE);
    }
}

/// Lets the kernel take memory whose content is not needed, when it has none left. What is written later stays.
pub fn leave_to_the_kernel(memory: &mut [MaybeUninit<u8>]) {
    advise(memory, libc::MADV_FREE);
}

/// Gives advice about the large pages that are wholly in memory.
fn advise(memory: &mut [MaybeUninit<u8>], advice: libc::c_int) {
    let skipped = memory.as_ptr().align_offset(LARGE_PAGE);
    let Some(rest) = memory.get_mut(skipped..) else { return };
    let whole = rest.len() / LARGE_PAGE * LARGE_PAGE;
    // SAFETY: the range is within a live slice whose bytes need no value. Without the advice nothing changes.
    unsafe { libc::madvise(rest.as_mut_ptr().cast(), whole, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::{fork, kill_and_reap};

    fn copied(pid: Pid, from: &[u8]) -> io::Result<Vec<u8>> {
        let mut into = vec![MaybeUninit::new(0); from.len()];
        prefer_large_pages(&mut into);
        read(pid, from.as_ptr() as usize, &mut into)?;
        // SAFETY: all of it was initialized from the start.
        Ok(into.into_iter().map(|byte| unsafe { byte.assume_init() }).collect())
    }

    #[test]
    fn memory_of_a_child_is_copied_until_it_has_ended() {
        let content: Vec<u8> = (0..5_000_000u32).map(|number| number as u8).collect();
        // SAFETY: the child only waits.
        let child = unsafe { fork(|| std::thread::sleep(std::time::Duration::from_secs(600))) }.expect("a process");
        assert!(copied(child, &content).expect("our own child") == content);
        let mut into = [MaybeUninit::new(0)];
        assert_eq!(read(child, 8, &mut into).expect_err("no memory").raw_os_error(), Some(libc::EFAULT));
        kill_and_reap(child);
        assert_eq!(copied(child, &content).expect_err("no process").raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn memory_left_to_the_kernel_may_be_written_again_and_nothing_beside_it_changes() {
        let mut bytes = vec![MaybeUninit::new(7); 9_000_000];
        leave_to_the_kernel(&mut bytes[500_000..8_500_000]);
        bytes[500_000..8_500_000].fill(MaybeUninit::new(8));
        // SAFETY: all of it was initialized, and what the kernel took was written again.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert!(bytes[..500_000].iter().chain(&bytes[8_500_000..]).all(|byte| *byte == 7));
        assert!(bytes[500_000..8_500_000].iter().all(|byte| *byte == 8));
    }

    #[test]
    fn nothing_and_little_need_no_large_pages() {
        prefer_large_pages(&mut []);
        prefer_large_pages(&mut [MaybeUninit::new(0); 100]);
        leave_to_the_kernel(&mut []);
        leave_to_the_kernel(&mut [MaybeUninit::new(0); 100]);
        assert!(read(0, 0, &mut []).is_ok());
    }
}
