//! A loop that only reads the clock: if two readings lie far apart, the processor was away in between.
//!
//! It is bound to one CPU and runs at ordinary priority, as a rank would, so it is disturbed as a rank would be.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use super::quota::Quota;
use crate::inject::priority;
use crosswind_linux::children::Usage;
use crosswind_linux::now_ns;

/// A time in which the loop did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Last clock reading before it, monotonic clock, ns.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Whether another thread had the CPU meanwhile; false if not checked.
    pub preempted: bool,
    /// Whether a quota was used up meanwhile; false if not checked.
    pub throttled: bool,
}

/// Shorter gaps are not caused by a quota, whose shortest period is 1 ms.
const QUOTA_NS: u64 = 1_000_000;
const BATCH: usize = 256;
/// Interval at which the loop hands over its gaps and checks for its end.
const HAND_OVER_NS: u64 = 100_000_000;

#[derive(Clone, Debug)]
pub struct Watch {
    /// The CPU that it is bound to.
    pub cpu: usize,
    /// Start and end, monotonic clock, ns.
    pub from_ns: u64,
    pub until_ns: u64,
    /// Shorter gaps are the loop's own time.
    pub threshold_ns: u64,
    /// Whether to ask the kernel after each gap if another thread had the CPU.
    pub asks: bool,
    /// The quotas that apply to it, checked with `asks` after each long gap in which the loop was preempted.
    pub quota: Quota,
}

/// Returns how often this thread was preempted.
fn preemptions() -> i64 {
    Usage::of_thread().preemptions
}

/// Watches for gaps until the end. Returns the time when it actually ended, monotonic clock, ns.
///
/// # Errors
/// When the thread can't be bound to its CPU.
pub fn watch_gaps(watch: Watch, over: &AtomicBool, to: &Sender<(usize, Vec<Gap>)>) -> io::Result<u64> {
    priority::place(0, &[watch.cpu])?;
    while now_ns() < watch.from_ns {
        std::hint::spin_loop();
    }
    let mut batch = Vec::with_capacity(BATCH);
    let mut preempted = if watch.asks { preemptions() } else { 0 };
    let asks_quota = watch.asks && watch.quota.holds();
    let mut throttled = if asks_quota { watch.quota.throttled() } else { 0 };
    let mut handed_ns = watch.from_ns;
    let mut before = now_ns();
    loop {
        let now = now_ns();
        if now - before <= watch.threshold_ns && now - handed_ns < HAND_OVER_NS {
            before = now;
            continue;
        }
        if now - before > watch.threshold_ns && before < watch.until_ns {
            let end_ns = now.min(watch.until_ns);
            let so_far = if watch.asks { preemptions() } else { 0 };
            let mut gap = Gap { start_ns: before, end_ns, preempted: so_far > preempted, throttled: false };
            preempted = so_far;
            if asks_quota && gap.preempted && end_ns - before >= QUOTA_NS {
                let so_far = watch.quota.throttled();
                (gap.throttled, throttled) = (so_far > throttled, so_far);
            }
            batch.push(gap);
        }
        let ends = now >= watch.until_ns || over.load(Ordering::Relaxed);
        if now - handed_ns >= HAND_OVER_NS || batch.len() == BATCH || ends {
            // If the receiver is gone, the gaps are no longer needed.
            let _ = to.send((watch.cpu, std::mem::replace(&mut batch, Vec::with_capacity(BATCH))));
            handed_ns = now;
        }
        if ends {
            return Ok(now.min(watch.until_ns));
        }
        before = now_ns(); // the hand-over is not noise
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn gaps_are_sorted_lie_within_the_watch_and_are_longer_than_the_threshold() {
        let (to, from) = channel();
        let cpu = priority::cpus_of(0).expect("we are here")[0];
        let from_ns = now_ns() + 1_000_000;
        let watch = Watch {
            cpu,
            from_ns,
            until_ns: from_ns + 50_000_000,
            threshold_ns: 2_000,
            asks: true,
            quota: Quota::default(),
        };
        let task = watch.clone();
        let thread = std::thread::spawn(move || watch_gaps(task, &AtomicBool::new(false), &to));
        let ended = thread.join().expect("ends").expect("one of our CPUs");
        assert_eq!(ended, watch.until_ns);
        let gaps: Vec<Gap> = from.iter().flat_map(|(_, gaps)| gaps).collect();
        assert!(gaps.iter().all(|gap| gap.end_ns > gap.start_ns && gap.start_ns >= watch.from_ns));
        assert!(gaps.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
        assert!(gaps.iter().all(|gap| gap.end_ns <= watch.until_ns));
    }

    #[test]
    fn a_loop_that_is_told_to_end_does() {
        let (to, _from) = channel();
        let cpu = priority::cpus_of(0).expect("we are here")[0];
        let watch =
            Watch { cpu, from_ns: 0, until_ns: u64::MAX, threshold_ns: 2_000, asks: false, quota: Quota::default() };
        assert!(watch_gaps(watch, &AtomicBool::new(true), &to).is_ok());
    }
}
