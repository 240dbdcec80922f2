//! `arrival`: first come, first served (FCFS of the paper).
//!
//! Requests queue up, so no key is computed: see `Waiting`. With several ports all requesting children are served
//! immediately, and the links determine how much each gets.

use super::candidate::Candidate;

#[must_use]
#[allow(clippy::unnecessary_wraps)] // same signature as the other orders
pub fn key(_: &Candidate) -> Option<f64> {
    Some(0.0)
}
