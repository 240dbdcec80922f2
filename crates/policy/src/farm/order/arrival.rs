//! `arrival`: first come, first served (FCFS of the paper).
//!
//! Requests queue up, so there is no key to compute: see `Waiting`. With several ports all who asked are served at once,
//! and the links decide who gets how much.

use super::Candidate;

/// Everybody alike.
#[must_use]
#[allow(clippy::unnecessary_wraps)] // as the other orders
pub fn key(_: &Candidate) -> Option<f64> {
    Some(0.0)
}
