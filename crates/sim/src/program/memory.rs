//! Memory hints for many thousands of ranks. Their state fits into no near cache and spans more small pages than the
//! TLB holds, so it is prefetched (the calendar knows which rank is next) and placed in large pages.

const LINE: usize = 64;

/// Prefetches a value. Does nothing except on x86-64.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Prefetches a slice's last values, at most `most` of them.
#[inline(always)]
pub fn prefetch_tail<T>(values: &[T], most: usize) {
    let tail = &values[values.len().saturating_sub(most)..];
    prefetch_bytes(tail.as_ptr().cast(), size_of_val(tail));
}

/// Prefetches the memory after the last value, where the next one goes. It need not belong to the slice.
#[inline(always)]
pub fn prefetch_end<T>(values: &[T]) {
    prefetch_bytes(values.as_ptr().wrapping_add(values.len()).cast(), size_of::<T>());
}

#[inline(always)]
fn prefetch_bytes(start: *const i8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut at = 0;
        while at < bytes {
            // SAFETY: a prefetch reads nothing that the program could see and faults at no address; every x86_64 has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at)) };
            at += LINE;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes, LINE);
}

/// Asks the system for large pages for a vector's whole allocation, before it is filled. Affects only speed. Does
/// nothing except on Linux.
pub fn in_large_pages<T>(vector: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        /// The advice applies to whole small pages.
        const PAGE: usize = 4096;
        let start = (vector.as_ptr() as usize).next_multiple_of(PAGE);
        let end = (vector.as_ptr() as usize + vector.capacity() * size_of::<T>()) / PAGE * PAGE;
        if start < end {
            // SAFETY: whole pages of the vector's own memory; the advice changes nothing that a program can see. It may be refused.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = vector;
}
