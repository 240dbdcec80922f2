//! Clocks and exact sleeping.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the time of the monotonic clock, ns.
#[must_use]
pub fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// Returns the CPU time of the calling thread, ns.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads a clock by its number. rustix has names for clocks of this thread and process only.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until an absolute time of the monotonic clock.
pub fn sleep_until(deadline_ns: u64) {
    let time = Timespec { tv_sec: (deadline_ns / 1_000_000_000) as _, tv_nsec: (deadline_ns % 1_000_000_000) as _ };
    // A signal ends the sleep early; every caller checks the clock again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

/// Makes this thread's timers fire when they are due, rather than up to 50 us later.
pub fn exact_timers() {
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN)); // a sandbox may refuse it
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
