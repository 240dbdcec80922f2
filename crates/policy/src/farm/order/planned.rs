//! `planned`: follows the exact rates of the plan with deficit counters.
//!
//! A child with a planned rate of x tasks/s is due its n-th task at n / x. Of the requesting children, the one that was
//! due first is served (stride scheduling). The numbers of tasks follow the rates to within one task, whatever their
//! sizes. A child that has not requested a task is skipped and catches up later. A child without a rate is never
//! served.

use super::candidate::Candidate;

/// Returns the time between the child's tasks in the plan, s. `None`: it is never served.
#[must_use]
pub fn key(candidate: &Candidate) -> Option<f64> {
    (candidate.planned_tasks_per_s > 0.0).then(|| 1.0 / candidate.planned_tasks_per_s)
}
