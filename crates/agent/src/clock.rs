//! The root's clock, as an agent knows it: its own, shifted by what the quickest ping there and back showed.
//!
//! The error is at most half of that ping's time. Clocks that run at different speeds are not corrected within a run.

/// A view of the root's clock.
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
    /// A ping that left at `sent_ns` came back at `now_ns`; the parent's view of the root's clock was `root_ns`.
    pub fn pong(&mut self, sent_ns: u64, root_ns: u64, now_ns: u64) {
        let taken = now_ns.saturating_sub(sent_ns);
        if taken <= self.quickest_ns {
            self.quickest_ns = taken;
            self.shift_ns = root_ns.wrapping_sub(sent_ns + taken / 2) as i64;
        }
    }

    /// The root's clock at a time of the own one.
    pub fn root_ns(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.shift_ns)
    }

    /// The own clock at a time of the root's.
    pub fn own_ns(&self, root_ns: u64) -> u64 {
        root_ns.saturating_add_signed(-self.shift_ns)
    }

    /// What is added to the own clock, ns.
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
        clock.pong(2_000, 900_000, 9_000); // slow: says less
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
