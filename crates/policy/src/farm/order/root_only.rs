//! `root-only`: no child is served; the root computes everything.

use super::candidate::Candidate;

/// Returns no key.
#[must_use]
pub fn key(_: &Candidate) -> Option<f64> {
    None
}
