//! Memory of large values that are no longer needed, for the next ones.
//!
//! Making memory takes the kernel longer than copying a value into it. The kernel may take what is kept here whenever it
//! needs memory (`MADV_FREE`).

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::memory;

/// Most bytes that are kept.
const MOST: usize = 256 << 20;
/// Memory with fewer bytes is left to the allocator.
const LEAST: usize = 1 << 20;

/// What is kept, the memory that was put here first in front.
static KEPT: Mutex<Vec<Vec<MaybeUninit<u8>>>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Vec<MaybeUninit<u8>>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that is kept for others when it is dropped.
#[derive(Debug)]
pub struct Memory(Vec<MaybeUninit<u8>>);

impl Memory {
    /// Returns memory of `size` bytes that `fill` initializes, in large pages where that pays.
    ///
    /// # Errors
    /// Those of `fill`, and when there is not enough memory.
    pub fn filled(size: usize, fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<()>) -> io::Result<Self> {
        let mut bytes = take(size).unwrap_or_default();
        bytes.try_reserve_exact(size).map_err(|_| Errno::NOMEM)?;
        // SAFETY: it has that capacity, and these bytes need no value.
        unsafe { bytes.set_len(size) };
        memory::prefer_large_pages(&mut bytes);
        fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: all of it was initialized from the start.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        put(std::mem::take(&mut self.0));
    }
}

/// Returns empty memory for `size` bytes, at most twice as large. `None` if there is none.
fn take(size: usize) -> Option<Vec<MaybeUninit<u8>>> {
    let mut kept = kept();
    let at = kept.iter().rposition(|one| (size..=size.saturating_mul(2)).contains(&one.capacity()))?;
    Some(kept.remove(at))
}

/// Keeps memory for later values, in place of the oldest where there is too much.
fn put(mut memory: Vec<MaybeUninit<u8>>) {
    if !(LEAST..=MOST).contains(&memory.capacity()) {
        return;
    }
    memory::leave_to_the_kernel(&mut memory);
    memory.clear();
    let mut kept = kept();
    kept.push(memory);
    while kept.iter().map(Vec::capacity).sum::<usize>() > MOST {
        kept.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_for_values_of_about_its_size_and_the_oldest_goes_first() {
        let address = |memory: &Vec<MaybeUninit<u8>>| memory.as_ptr() as usize;
        let new = |mb: usize| Vec::with_capacity(mb << 20);
        let (small, large, other) = (new(100), new(150), new(101));
        let (first, second, third) = (address(&small), address(&large), address(&other));
        put(small);
        assert!(take(49 << 20).is_none() && take(101 << 20).is_none());
        let small = take(50 << 20).expect("fits");
        assert_eq!((address(&small), small.len()), (first, 0));
        put(small);
        put(large);
        assert_eq!(take(76 << 20).map(|one| address(&one)), Some(second));
        put(other);
        put(new(100));
        assert_eq!(take(101 << 20).map(|one| address(&one)), Some(third));
        assert_ne!(take(100 << 20).map(|one| address(&one)), Some(first));
        assert!(take(100 << 20).is_none());
        put(new(257));
        put(Vec::new());
        assert!(kept().is_empty());
    }
}
