//! Asks for memory before it is needed: at many thousands of ranks their state lies in no near cache, and the calendar knows
//! who is next.

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
