//! `arrival`: first come, first served (FCFS of the paper).
//!
//! Requests queue up, so there is no key to compute: see `Waiting`. With several ports all children that asked are served
//! immediately, and the links decide how much each gets.

use super::candidate::Candidate;

#[must_use]
#[allow(clippy::unnecessary_wraps)] // as the other orders
pub fn key(_: &Candidate) -> Option<f64> {
    Some(0.0)
}
