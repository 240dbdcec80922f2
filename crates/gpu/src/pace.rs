//! Computes when the next chunk is due, and how much of a chunk lies within a time window. Reads no clock.

/// Schedules chunks evenly, ns, so that the mean rate is the requested one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    step_ns: f64,
    due_ns: f64,
}

/// A lag of more than this many chunks is dropped, so that delayed traffic does not catch up in a burst.
const MOST_BEHIND: f64 = 4.0;

impl Pace {
    /// Creates a pace of `bytes_per_s` in chunks of `chunk_bytes`. `None` means no limit.
    pub(crate) fn new(chunk_bytes: usize, bytes_per_s: Option<f64>) -> Self {
        Self { step_ns: bytes_per_s.map_or(0.0, |rate| chunk_bytes as f64 / rate * 1e9), due_ns: 0.0 }
    }

    /// Returns how long to wait for the next chunk, ns, after which it must be called again. 0 means that the chunk is
    /// due; it then counts as sent.
    pub(crate) fn wait_ns(&mut self, now_ns: f64) -> f64 {
        if now_ns < self.due_ns {
            return self.due_ns - now_ns;
        }
        self.due_ns = self.due_ns.max(now_ns - MOST_BEHIND * self.step_ns) + self.step_ns;
        0.0
    }
}

/// Returns the fraction of a chunk that moved within [0, `until`], if it moved evenly from `begun` to `ended`.
pub(crate) fn part_within(begun: f64, ended: f64, until: f64) -> f64 {
    if ended <= begun {
        return if (0.0..=until).contains(&ended) { 1.0 } else { 0.0 };
    }
    ((ended.min(until) - begun.max(0.0)) / (ended - begun)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_keeps_its_mean_rate_when_it_is_looked_at_late() {
        let (mut pace, mut sent) = (Pace::new(1000, Some(1e9)), 0);
        for now in (0..1_000_000).step_by(1300) {
            while pace.wait_ns(f64::from(now)) == 0.0 {
                sent += 1;
            }
        }
        assert!((999..=1001).contains(&sent), "{sent}");
    }

    #[test]
    fn what_fell_behind_does_not_catch_up_in_a_burst() {
        let mut pace = Pace::new(1000, Some(1e9));
        let mut burst = 0;
        while pace.wait_ns(1e9) == 0.0 {
            burst += 1;
        }
        assert!(burst <= 6, "{burst}");
    }

    #[test]
    fn without_a_rate_a_chunk_is_always_due() {
        let mut pace = Pace::new(1000, None);
        assert!((0..10).all(|_| pace.wait_ns(5.0) == 0.0));
    }

    #[test]
    fn parts_of_a_chunk_across_the_ends_of_a_window_count() {
        let parts = [(-1.0, 1.0), (1.0, 3.0), (9.0, 13.0), (-2.0, -1.0), (11.0, 12.0), (-5.0, 15.0)];
        let found = parts.map(|(begun, ended)| part_within(begun, ended, 10.0));
        assert_eq!(found, [0.5, 1.0, 0.25, 0.0, 0.0, 0.5]);
    }
}
