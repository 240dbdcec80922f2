//! `interference-rate`: lowest `ir_send` first for any number of ports, as in the paper's experiments (E0-10).

use super::candidate::Candidate;

/// Returns a child's key, lowest first.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // same signature as the other orders
pub fn key(candidate: &Candidate) -> Option<f64> {
    Some(candidate.ir_send_s_per_mb)
}
