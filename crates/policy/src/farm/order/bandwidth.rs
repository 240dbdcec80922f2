//! `bandwidth`: highest receive limit first (BWC of the paper).

use super::candidate::Candidate;

/// Returns a child's key, lowest first.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // same signature as the other orders
pub fn key(candidate: &Candidate) -> Option<f64> {
    Some(-candidate.receive_limit_mb_per_s)
}
