//! Memory of many thousands of ranks: their state is in no near cache, and in more small pages than the TLB holds.
//! So it is prefetched (the calendar knows which rank is next), and lies in large pages.

/// Bytes that come together.
const LINE: usize = 64;

/// Asks for a value's memory. Changes nothing; does nothing where the processor cannot be asked.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Asks for the memory of a slice's last values, up to `most` of them.
#[inline(always)]
pub fn prefetch_tail<T>(values: &[T], most: usize) {
    let tail = &values[values.len().saturating_sub(most)..];
    prefetch_bytes(tail.as_ptr().cast(), size_of_val(tail));
}

/// Asks for the memory behind the last value, where the next one goes; it need not belong to the slice.
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

/// Asks the system for large pages for what a vector has room for and does not hold yet. Changes nothing but the time that it
/// takes.
pub fn in_large_pages<T>(vector: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        /// The system is asked for whole small pages.
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
