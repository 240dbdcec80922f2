//! Slowdowns of parallel programs under one kind of disturbance. Symbols: `w` is the work between two barriers, `P` the
//! number of ranks.
//!
//! Statements about "no program" refer to the schedule in which all ranks halt whenever one is away. No program is
//! slower than that, since ranks that may continue do not end later. The slowdown of that schedule is 1 over the
//! fraction of time in which all ranks are present.

use crate::error::{ModelError, at_least_zero};

fn argument(field: &str, sentence: String) -> ModelError {
    ModelError::argument(field, sentence)
}

fn part(field: &str, value: f64) -> Result<f64, ModelError> {
    if (0.0..1.0).contains(&value) {
        return Ok(value);
    }
    Err(argument(field, format!("is {value}; it must be at least 0 and less than 1")))
}

fn positive(field: &str, value: f64) -> Result<f64, ModelError> {
    at_least_zero(|| field.to_owned(), value, "s", true)
}

/// Returns the slowdown by local scheduling of a barrier program of many ranks whose quanta are spread evenly:
/// `(w + ceil(w / Q) A) / (J w)` with `A = (J - 1) Q + c`.
///
/// After each barrier some rank is about to lose its processor, and loses it again after each of its quanta, while all
/// others wait for it. For two jobs and `w <= Q` this is `(Q + w) / (2 w)` (D2-7). It is an upper bound for few ranks,
/// or ranks that drift.
///
/// `quantum_s` (Q) and `work_s` (w) must be above 0, `jobs` (J) at least 1, and `return_cost_s` (c) at least 0 and
/// below Q.
///
/// # Errors
/// An argument is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::slowdown::local;
/// assert!((local(0.1, 2, 0.0071, 0.0)? - 7.54).abs() < 0.01);
/// assert!((local(0.5, 2, 0.0071, 0.0)? - 35.7).abs() < 0.02);
/// assert!((local(0.001, 2, 1.0, 0.0)? - 1.0).abs() < 1e-9);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn local(quantum_s: f64, jobs: u32, work_s: f64, return_cost_s: f64) -> Result<f64, ModelError> {
    let (quantum, work) = (positive("quantum_s", quantum_s)?, positive("work_s", work_s)?);
    let cost = at_least_zero(|| "return_cost_s".into(), return_cost_s, "s", false)?;
    if jobs == 0 {
        return Err(argument("jobs", "is 0; it must be at least 1".into()));
    }
    if cost >= quantum {
        return Err(argument("return_cost_s", format!("is {cost} s; it must be less than quantum_s, {quantum} s")));
    }
    if jobs == 1 {
        return Ok(1.0);
    }
    let jobs = f64::from(jobs);
    // Each return leaves Q - c of the quantum.
    let turns = (work / (quantum - cost)).ceil();
    Ok((work + turns * ((jobs - 1.0) * quantum + cost)) / (jobs * work))
}

/// Returns the same for few ranks, each with a phase drawn uniformly, `w <= Q` and no return cost:
/// `(w + A - JQ / (P + 1) [(1 - w / JQ)^(P + 1) - (1 - (w + A) / JQ)^(P + 1)]) / (J w)` with `A = (J - 1) Q`.
///
/// The term with the bracket is the difference between A and the mean of the longest absence among P, where a fraction
/// `(w + A - a) / JQ` of phases is away for more than `a`. It assumes that phases are drawn anew after each barrier,
/// which is not quite true; from 8 ranks on, the error is within 2 %.
///
/// # Errors
/// An argument is out of range, or `w > Q`.
pub fn local_of_ranks(quantum_s: f64, jobs: u32, work_s: f64, ranks: u32) -> Result<f64, ModelError> {
    let all = local(quantum_s, jobs, work_s, 0.0)?;
    if work_s > quantum_s {
        return Err(argument("work_s", format!("is {work_s} s; it must be at most quantum_s, {quantum_s} s")));
    }
    let (jobs, more) = (f64::from(jobs), f64::from(ranks) + 1.0);
    let (period, away) = (jobs * quantum_s, (jobs - 1.0) * quantum_s);
    let missing = (1.0 - work_s / period).powf(more) - (1.0 - (work_s + away) / period).max(0.0).powf(more);
    Ok(all - period / more * missing / (jobs * work_s))
}

/// Estimates the slowdown by coscheduling with skew of a barrier program of many ranks: `1 / (1 - l / Q)`, where a
/// quantum loses `l = s - w / 2` if `w < s` and `l = s^2 / (2 w)` otherwise. Assumes that the work left when a quantum
/// ends is uniform; within 1.5 % over many lengths of the work.
///
/// Each rank's quanta are late by a uniform 0 to s, drawn once. While some rank is away, the others get no further than
/// the next barrier. Work in progress hides part of the skew, more if it lasts longer.
///
/// `quantum_s` (Q) must be above 0, `skew_s` (s) at least 0 and below Q, and `work_s` (w) above 0.
///
/// # Errors
/// An argument is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::slowdown::skew_of_barriers;
/// assert!((skew_of_barriers(0.1, 0.01, 0.008)? - 1.064).abs() < 0.001);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn skew_of_barriers(quantum_s: f64, skew_s: f64, work_s: f64) -> Result<f64, ModelError> {
    let most = skew(quantum_s, skew_s, 0.0)?;
    let work = positive("work_s", work_s)?;
    if skew_s == 0.0 {
        return Ok(most);
    }
    let lost = if work < skew_s { skew_s - work / 2.0 } else { skew_s * skew_s / (2.0 * work) };
    Ok(1.0 / (1.0 - lost / quantum_s))
}

/// Returns an upper bound of the slowdown of any program by coscheduling with skew: `1 / (1 - (s + c) / Q)` (D2-7).
///
/// `skew_s` (s): each quantum begins and ends late by at most this. `return_cost_s` (c) is lost at each start. Together
/// they must be below `quantum_s` (Q).
///
/// # Errors
/// An argument is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::slowdown::skew;
/// assert!((skew(0.1, 0.01, 0.0)? - 1.111).abs() < 0.001);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn skew(quantum_s: f64, skew_s: f64, return_cost_s: f64) -> Result<f64, ModelError> {
    let quantum = positive("quantum_s", quantum_s)?;
    let skew = at_least_zero(|| "skew_s".into(), skew_s, "s", false)?;
    let cost = at_least_zero(|| "return_cost_s".into(), return_cost_s, "s", false)?;
    if skew + cost >= quantum {
        let sentence =
            format!("is {skew} s; with the return costs, {cost} s, it must be less than quantum_s, {quantum} s");
        return Err(argument("skew_s", sentence));
    }
    Ok(1.0 / (1.0 - (skew + cost) / quantum))
}

/// Returns an upper bound of the slowdown of any program by independent daemons: `1 / prod (1 - d / I)`, over all
/// daemons on all ranks (D2-7, "union"). Barrier programs approach it as their work between barriers becomes small.
///
/// `loads`: for each kind of daemon, its fraction of a processor, d / I, at least 0 and less than 1, and the number of
/// ranks on which it runs at independent times (1 if it runs on all at the same times).
///
/// # Errors
/// A fraction is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::slowdown::union;
/// assert!((union(&[(0.05 / 5.0, 64)])? - 1.90).abs() < 0.01);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn union(loads: &[(f64, u32)]) -> Result<f64, ModelError> {
    let mut there = 1.0;
    for (at, (load, ranks)) in loads.iter().enumerate() {
        there *= (1.0 - part(&format!("loads[{at}]"), *load)?).powf(f64::from(*ranks));
    }
    Ok(1.0 / there)
}

/// Returns the slowdown by independent daemons that never coincide: `1 / (1 - sum P d / I)`, or `None` if they would
/// take all the time (D2-7, "additive"). Never below [`union`]: no program is slower.
///
/// # Errors
/// A fraction is out of range, as for [`union`].
pub fn additive(loads: &[(f64, u32)]) -> Result<Option<f64>, ModelError> {
    let mut away = 0.0;
    for (at, (load, ranks)) in loads.iter().enumerate() {
        away += part(&format!("loads[{at}]"), *load)? * f64::from(*ranks);
    }
    Ok((away < 1.0).then(|| 1.0 / (1.0 - away)))
}

/// A kind of daemon on some ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Daemon {
    /// Time from start to start, s.
    pub interval_s: f64,
    /// Duration, s, less than the interval.
    pub duration_s: f64,
    /// Number of ranks on which it runs at independent times; 1 if it runs on all at the same times.
    pub ranks: u32,
}

/// Estimates the minimum slowdown of a barrier program by independent daemons: `1 + E[longest] / w`, where a rank is
/// hit with probability `w / I` while it works, and the longest daemon that hits any rank counts. At least the slowdown
/// of a single rank.
///
/// Daemons that were already running when a barrier opened are ignored, so the true value lies between this and
/// [`union`].
///
/// # Errors
/// An argument is out of range.
pub fn exposed(daemons: &[Daemon], work_s: f64) -> Result<f64, ModelError> {
    let work = positive("work_s", work_s)?;
    let mut own = 1.0;
    for daemon in daemons {
        let (interval, duration) =
            (positive("interval_s", daemon.interval_s)?, positive("duration_s", daemon.duration_s)?);
        own *= 1.0 - part("duration_s / interval_s", duration / interval)?;
    }
    let mut longest_first: Vec<&Daemon> = daemons.iter().collect();
    longest_first.sort_by(|one, other| other.duration_s.total_cmp(&one.duration_s));
    let (mut expected, mut none_yet) = (0.0, 1.0);
    for daemon in longest_first {
        let none = (1.0 - (work / daemon.interval_s).min(1.0)).powf(f64::from(daemon.ranks));
        expected += none_yet * (1.0 - none) * daemon.duration_s;
        none_yet *= none;
    }
    Ok((1.0 + expected / work).max(1.0 / own))
}

/// Returns the slowdown of a program with the same work on all ranks if one node is shared with a serial job: `1 / p`
/// (D2-7). No program is slower.
///
/// `share` (p): the program's fraction of that node, above 0, at most 1. [`effective_share`] includes return costs.
///
/// # Errors
/// The share is out of range.
pub fn shared_node(share: f64) -> Result<f64, ModelError> {
    imbalanced_node(share, 1.0)
}

/// Returns the same if the shared node's rank has `relative_work` (0 to 1) of the work of the rank with the most:
/// `max(1, relative_work / p)` (D2-7).
///
/// # Errors
/// An argument is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::slowdown::imbalanced_node;
/// assert_eq!(imbalanced_node(0.5, 1.0)?, 2.0);
/// assert_eq!(imbalanced_node(0.5, 0.4)?, 1.0);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn imbalanced_node(share: f64, relative_work: f64) -> Result<f64, ModelError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(argument("share", format!("is {share}; it must be greater than 0 and at most 1")));
    }
    if !(0.0..=1.0).contains(&relative_work) {
        return Err(argument("relative_work", format!("is {relative_work}; it must be 0 to 1")));
    }
    Ok((relative_work / share).max(1.0))
}

/// Returns what is left of a share when each return costs `return_cost_s`: `p - (1 - p) c / slice`.
#[must_use]
pub fn effective_share(share: f64, slice_s: f64, return_cost_s: f64) -> f64 {
    share - (1.0 - share) * return_cost_s / slice_s
}
