//! How long a node waits for its children before time 0.

/// Share of the patience after which an inner node proceeds without missing children, so that the root still waits for
/// it.
const INNER_SHARE: f64 = 0.8;
/// How long an agent that joins late waits for children that may have followed it, s.
const REJOIN_S: f64 = 2.0;

/// How long a node waits for its children, s. `start_s` is how long the root waits.
#[must_use]
pub fn patience_s(root: bool, joins_late: bool, start_s: f64) -> f64 {
    let patience_s = if root { start_s } else { start_s * INNER_SHARE };
    if joins_late { patience_s.min(REJOIN_S) } else { patience_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_waits_longer_than_those_below_it_and_one_that_joins_late_hardly_at_all() {
        assert!(patience_s(true, false, 30.0) > patience_s(false, false, 30.0));
        assert!(patience_s(false, true, 30.0) <= 2.0);
        assert!(patience_s(false, true, 1.0) < 1.0);
    }
}
