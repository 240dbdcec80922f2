//! `root-only`: no child is served; the root computes everything.

use super::candidate::Candidate;

/// Returns no key, so nothing is ever sent.
#[must_use]
pub fn key(_: &Candidate) -> Option<f64> {
    None
}
