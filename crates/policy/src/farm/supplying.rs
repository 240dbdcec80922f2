//! How far ahead does the root take tasks from its user?

/// Tasks that wait at the root beyond those that all children may ask for.
const AHEAD: u64 = 64;
/// Bytes in memory that may wait at the root.
const AHEAD_BYTES: u64 = 256 << 20;

/// Whether one more task is taken, where so many wait that hold so many bytes, and children ask for `wanted` at most.
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
