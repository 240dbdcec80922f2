//! Virtual time: integer nanoseconds since the start of the run.

pub type Nanos = u64;

/// Later than the end of any run: 292 years.
pub const NEVER: Nanos = u64::MAX / 2;

/// Converts a time to seconds.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 * 1e-9
}

/// Converts seconds to nanoseconds, rounded up.
pub fn nanos(seconds: f64) -> Nanos {
    after(0, seconds * 1e9)
}

/// Returns the first whole nanosecond at least `delay` ns after `now`, at most [`NEVER`]. `delay` need not be whole.
#[inline]
pub fn after(now: Nanos, delay: f64) -> Nanos {
    // A delay within rounding of an integer counts as that integer. `f64::max` is avoided because it spends extra
    // instructions on NaN.
    let delay = delay * (1.0 - 1e-15);
    let delay = if delay > 0.0 { delay } else { 0.0 };
    let up = if delay < WHOLE / 2.0 { ceil_of_small(delay) } else { ceil_of_large(delay) };
    now.saturating_add(up).min(NEVER)
}

/// From here on every `f64` is an integer.
const WHOLE: f64 = (1u64 << 52) as f64;

/// On the critical path to the next event: converting to an integer and back takes four times as long as an addition.
/// The addition rounds, and the integer is read from the low bits of the sum.
#[inline]
fn ceil_of_small(delay: f64) -> Nanos {
    let sum = delay + WHOLE;
    (sum.to_bits() - WHOLE.to_bits()) + Nanos::from(sum - WHOLE < delay)
}

/// The cast saturates at [`NEVER`], since it goes through signed integers.
#[cold]
fn ceil_of_large(delay: f64) -> Nanos {
    let whole = delay as i64;
    whole as Nanos + Nanos::from((whole as f64) < delay)
}

/// Returns the ns from one time to a later one. Converts as signed, since times are below [`NEVER`].
#[inline]
pub fn span(from: Nanos, to: Nanos) -> f64 {
    (to - from) as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_rounding_up_are_one() {
        let near = |whole: f64| [whole, whole.next_up(), whole.next_down().max(0.0), whole + 0.5, whole + 0.4999];
        for bits in 0..51 {
            for delay in near((1u64 << bits) as f64).into_iter().chain(near(bits as f64)).chain(near(1e15 / 7.0)) {
                if delay < WHOLE / 2.0 {
                    assert_eq!(ceil_of_small(delay), ceil_of_large(delay), "{delay}");
                }
            }
        }
        assert_eq!(after(0, f64::NAN), 0);
    }

    #[test]
    fn times_are_rounded_up_and_never_overflow() {
        assert_eq!((after(5, 0.0), after(5, 2.0), after(5, 2.1), after(5, -1.0)), (5, 7, 8, 5));
        assert_eq!((after(5, f64::INFINITY), after(NEVER, 1e30)), (NEVER, NEVER));
        assert_eq!((nanos(0.5), seconds(500_000_000)), (500_000_000, 0.5));
    }
}
