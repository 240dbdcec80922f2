//! Clocks and exact sleeping.

use std::io;
use std::mem::zeroed;

/// Returns the time of the monotonic clock, ns.
#[must_use]
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

pub(crate) fn clock_ns(clock: libc::clockid_t) -> io::Result<u64> {
    // SAFETY: an all-zero timespec is a valid value, and the pointer is to a live local.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: as above.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until an absolute time of the monotonic clock.
pub fn sleep_until(deadline_ns: u64) {
    let time = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointer is to a live local, and the remainder is not requested. A signal ends the sleep early;
    // every caller checks the clock again.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut()) };
}

/// Makes this thread's timers fire when they are due, rather than up to 50 us later.
pub fn exact_timers() {
    // SAFETY: takes and returns integers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_until_a_time_does_not_return_before_it() {
        let deadline = now_ns() + 1_000_000;
        while now_ns() < deadline {
            sleep_until(deadline);
        }
        assert!(now_ns() >= deadline);
    }
}
