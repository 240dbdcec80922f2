//! `compute`: highest compute rate first (CompRate of the paper).

use super::candidate::Candidate;

/// See the module's head.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // as the other orders
pub fn key(candidate: &Candidate) -> Option<f64> {
    Some(-candidate.compute_per_s)
}
