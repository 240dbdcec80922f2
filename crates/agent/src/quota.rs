//! A child's quotas on requested tasks, reports and events. A child is authenticated, but must not exhaust this node's
//! memory: one that exceeds a quota is treated as lost.

/// Maximum number of outstanding requests of a child, which cover its whole subtree.
const MOST_REQUESTED: u64 = 1 << 24;
/// Quotas of reports and of events: (bytes per child, additional bytes per task sent to it).
const REPORTS: (u64, u64) = (64 << 20, 4 << 10);
const EVENTS: (u64, u64) = (4 << 20, 4 << 10);

/// A child's use of its quotas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quota {
    requested: u64,
    /// Number of tasks sent to it.
    had: u64,
    reported_bytes: u64,
    event_bytes: u64,
}

impl Quota {
    /// Counts a request for `tasks` more tasks. Returns whether it fits the quota.
    pub fn asks(&mut self, tasks: u64) -> bool {
        self.requested = self.requested.saturating_add(tasks);
        self.requested <= MOST_REQUESTED
    }

    /// Whether the child has requested tasks that it has not been sent.
    pub fn wants(&self) -> bool {
        self.requested > 0
    }

    /// Counts a task sent to the child.
    pub fn had_one(&mut self) {
        self.requested = self.requested.saturating_sub(1);
        self.had += 1;
    }

    /// Counts `bytes` of reports. Returns whether they fit the quota.
    pub fn reports(&mut self, bytes: usize) -> bool {
        self.reported_bytes += bytes as u64;
        self.reported_bytes <= REPORTS.0 + REPORTS.1 * self.had
    }

    /// Counts `bytes` of events. Returns whether they fit the quota.
    pub fn tells(&mut self, bytes: usize) -> bool {
        self.event_bytes += bytes as u64;
        self.event_bytes <= EVENTS.0 + EVENTS.1 * self.had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_may_be_asked_for_again_and_more_tasks_give_more_to_tell() {
        let mut child = Quota::default();
        assert!(child.asks(MOST_REQUESTED) && !child.asks(1) && !child.asks(u64::MAX));
        let mut child = Quota::default();
        for _ in 0..3 {
            assert!(child.asks(MOST_REQUESTED / 2 + 1) && !child.clone().asks(MOST_REQUESTED / 2));
            (0..=MOST_REQUESTED / 2).for_each(|_| child.had_one());
        }
        let mut child = Quota::default();
        assert!(
            child.reports(64 << 20) && !child.clone().reports(1) && child.tells(4 << 20) && !child.clone().tells(1)
        );
        child.had_one();
        assert!(child.reports(4 << 10) && !child.reports(1) && child.tells(4 << 10) && !child.tells(1));
    }
}
