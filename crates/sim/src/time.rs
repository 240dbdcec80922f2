//! Virtual time: integer nanoseconds since the start of the run.

/// Nanoseconds since the start.
pub type Nanos = u64;

/// Far beyond every run: 292 years.
pub const NEVER: Nanos = u64::MAX / 2;

/// Seconds of a time.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 * 1e-9
}

/// The first nanosecond at which so many seconds have passed.
pub fn nanos(seconds: f64) -> Nanos {
    after(0, seconds * 1e9)
}

/// The first nanosecond after `delay` (ns, not an integer in general).
#[inline]
pub fn after(now: Nanos, delay: f64) -> Nanos {
    // The cast saturates, at NEVER: as signed numbers, which a processor converts in one step. A delay within rounding of an
    // integer is that integer.
    let delay = (delay * (1.0 - 1e-15)).max(0.0);
    let whole = delay as i64;
    let up = whole as Nanos + Nanos::from((whole as f64) < delay);
    now.saturating_add(up).min(NEVER)
}

/// ns from one time to a later one; below [`NEVER`], so signed.
#[inline]
pub fn span(from: Nanos, to: Nanos) -> f64 {
    (to - from) as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_never_overflow() {
        assert_eq!((after(5, 0.0), after(5, 2.0), after(5, 2.1), after(5, -1.0)), (5, 7, 8, 5));
        assert_eq!((after(5, f64::INFINITY), after(NEVER, 1e30)), (NEVER, NEVER));
        assert_eq!((nanos(0.5), seconds(500_000_000)), (500_000_000, 0.5));
    }
}
