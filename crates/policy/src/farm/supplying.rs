//! How far ahead the root takes tasks from its user.

/// Tasks that wait at the root beyond those that all children may request.
const AHEAD: u64 = 64;
/// Maximum size of inputs in memory at the root, bytes. Two tasks may exceed it.
const AHEAD_BYTES: u64 = 256 << 20;

/// Whether to take one more task when `waiting` tasks with `held_bytes` bytes in memory wait and children request at
/// most `wanted`.
#[must_use]
pub fn takes_another(waiting: u64, held_bytes: u64, wanted: u64) -> bool {
    waiting < AHEAD + wanted && (held_bytes <= AHEAD_BYTES || waiting <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tasks_are_taken_two_at_a_time_and_small_ones_as_many_as_are_asked_for() {
        assert!(takes_another(70, 0, 10) && !takes_another(74, 0, 10));
        assert!(takes_another(1, u64::MAX, 10) && !takes_another(2, u64::MAX, 10));
    }
}
