//! `interference-rate`: lowest `ir_send` first, whatever the ports: what the paper's experiments used (E0-10).

use super::candidate::Candidate;

/// See the module's head.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // as the other orders
pub fn key(candidate: &Candidate) -> Option<f64> {
    Some(candidate.ir_send_s_per_mb)
}
