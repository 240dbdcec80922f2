//! Limits after which something is given up: a task that ends agents, or a run or a subtree in which nothing computes.

/// Number of lost agents after which a task is given up.
pub const MOST_LOST: u32 = 5;

/// Whether a task is given up that was being computed each time one of `lost` agents was lost. A batch of calls is given
/// up at once: its user submits the calls one by one, so that only the one that ends agents is tried again and again.
#[must_use]
pub fn after_lost_agents(lost: u32, is_batch: bool) -> bool {
    lost >= if is_batch { 1 } else { MOST_LOST }
}

/// Whether a task is given up that exceeded its time limit in `tries` attempts, each of which ended its agent.
#[must_use]
pub fn after_over_time(tries: u32, retries: u32) -> bool {
    tries > retries
}

/// How long a node keeps tasks while nothing in its subtree can compute, s. The root then ends the run; it waits as
/// long as at the start, because agents may take that long to join. Another node leaves its parent, which reassigns the
/// tasks.
#[must_use]
pub fn without_processors_s(root: bool, start_s: f64, silence_s: f64) -> f64 {
    if root { start_s } else { silence_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_tried_once_more_than_it_is_retried_and_ends_five_agents_at_most() {
        assert!(!after_over_time(1, 1) && after_over_time(2, 1) && after_over_time(1, 0));
        assert!(!after_lost_agents(4, false) && after_lost_agents(5, false));
        assert!(!after_lost_agents(0, true) && after_lost_agents(1, true));
    }
}
