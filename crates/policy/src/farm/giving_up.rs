//! When is something not tried again: a task that ends agents, a run or a subtree without anything that computes?

/// After so many lost agents a task is not tried again.
pub const MOST_LOST: u32 = 5;

/// Whether a task is given up that was being computed so often when an agent was lost.
#[must_use]
pub fn after_lost_agents(lost: u32) -> bool {
    lost >= MOST_LOST
}

/// Whether a task is given up that was over its time in so many tries, each of which ended its agent.
#[must_use]
pub fn after_over_time(tries: u32, retries: u32) -> bool {
    tries > retries
}

/// How long a node that has tasks stays without anything that computes, s: the root ends the run then, since agents may
/// take as long to come as at the start; another one leaves its parent, which gives the tasks to others.
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
        assert!(!after_lost_agents(4) && after_lost_agents(5));
    }
}
