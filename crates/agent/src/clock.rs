//! Estimate of the root's clock: the agent's own clock plus an offset, measured by the fastest ping round trip.
//!
//! The error is at most half of that round-trip time. Drift between clocks is not corrected within a run.

/// Estimate of the root's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    shift_ns: i64,
    quickest_ns: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { shift_ns: 0, quickest_ns: u64::MAX }
    }
}

impl Clock {
    /// Takes the reply to a ping sent at `sent_ns` and received at `now_ns`. `root_ns` is the parent's estimate of the
    /// root's clock when it replied.
    pub fn pong(&mut self, sent_ns: u64, root_ns: u64, now_ns: u64) {
        let taken = now_ns.saturating_sub(sent_ns);
        if taken <= self.quickest_ns {
            self.quickest_ns = taken;
            self.shift_ns = root_ns.wrapping_sub(sent_ns + taken / 2) as i64;
        }
    }

    /// Converts a time on the agent's own clock to the root's.
    pub fn root_ns(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.shift_ns)
    }

    /// Converts a time on the root's clock to the agent's own.
    pub fn own_ns(&self, root_ns: u64) -> u64 {
        root_ns.saturating_add_signed(-self.shift_ns)
    }

    /// Offset added to the agent's own clock, ns.
    #[must_use]
    pub fn shift_ns(&self) -> i64 {
        self.shift_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_ping_tells_the_shift() {
        let mut clock = Clock::default();
        clock.pong(1_000, 501_100, 1_200);
        assert_eq!(clock.root_ns(1_100), 501_100);
        clock.pong(2_000, 900_000, 9_000); // slow, so less precise
        assert_eq!(clock.root_ns(1_100), 501_100);
        clock.pong(3_000, 503_010, 3_020);
        assert_eq!(clock.root_ns(3_010), 503_010);
        assert_eq!(clock.own_ns(503_010), 3_010);
    }

    #[test]
    fn a_root_that_booted_later_has_the_smaller_clock() {
        let mut clock = Clock::default();
        clock.pong(10_000, 100, 10_020);
        assert_eq!(clock.root_ns(10_010), 100);
        assert_eq!(clock.own_ns(100), 10_010);
    }
}
