//! `planned`: the exact rates of the plan, followed by deficit counters.
//!
//! A child to which the plan gives x tasks/s is due its n-th task at n / x. Of the children that asked, the one that was due
//! first is served (stride scheduling), so numbers of tasks follow the rates to within one task, whatever their sizes. A child
//! that has not asked is passed over and catches up later. A child without a rate is never served.

use super::candidate::Candidate;

/// Seconds between the child's tasks in the plan.
#[must_use]
pub fn key(candidate: &Candidate) -> Option<f64> {
    (candidate.planned_tasks_per_s > 0.0).then(|| 1.0 / candidate.planned_tasks_per_s)
}
