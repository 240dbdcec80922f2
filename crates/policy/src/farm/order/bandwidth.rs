//! `bandwidth`: highest receive limit first (BWC of the paper).

use super::candidate::Candidate;

/// See the module's head.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // as the other orders
pub fn key(candidate: &Candidate) -> Option<f64> {
    Some(-candidate.receive_limit_mb_per_s)
}
