//! Independent tasks on equal machines: longest task first, its bound, and the optimum of small cases.
//!
//! Source: the homework sheet (K0-H0): `Indep(p)` and "Greedy-offline". Times may be in any unit.

use crate::error::{ModelError, at_least_zero};

/// The machine of each job, and the makespan.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Time at which the last machine ends, in the unit of the times.
    pub makespan: f64,
    /// Machine of each job, in the order of the times.
    pub machine: Vec<u32>,
}

fn check(times: &[f64], machines: usize) -> Result<(), ModelError> {
    if machines == 0 || machines > u32::MAX as usize {
        return Err(ModelError::argument("machines", format!("is {machines}; it must be within 1 to {}", u32::MAX)));
    }
    for (at, &time) in times.iter().enumerate() {
        at_least_zero(|| format!("times[{at}]"), time, "s", false)?;
    }
    Ok(())
}

/// Returns the indices of the times, longest first. Ties keep their order.
fn longest_first(times: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..times.len() as u32).collect();
    order.sort_by(|&a, &b| times[b as usize].total_cmp(&times[a as usize]));
    order
}

/// Assigns each job, longest first, to the machine with the least load (longest processing time first).
///
/// Ties go to the machine with the lowest number. At most [`lpt_ratio_bound`] times the optimum.
///
/// # Errors
/// There is no machine, or a time is negative or not finite.
///
/// # Examples
/// ```
/// use crosswind_model::papers::homework::lpt;
/// assert_eq!(lpt(&[3.0, 3.0, 2.0, 2.0, 2.0], 2)?.makespan, 7.0);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn lpt(times: &[f64], machines: usize) -> Result<Assignment, ModelError> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    check(times, machines)?;
    // Times are finite and at least 0, where the bits of an `f64` sort like the numbers.
    let mut loads: BinaryHeap<Reverse<(u64, u32)>> =
        (0..machines.min(times.len().max(1)) as u32).map(|m| Reverse((0, m))).collect();
    let mut assignment = Assignment { makespan: 0.0, machine: vec![0; times.len()] };
    for job in longest_first(times) {
        let Some(Reverse((load, machine))) = loads.pop() else { break };
        let load = f64::from_bits(load) + times[job as usize].abs();
        assignment.machine[job as usize] = machine;
        assignment.makespan = assignment.makespan.max(load);
        loads.push(Reverse((load.to_bits(), machine)));
    }
    Ok(assignment)
}

/// Returns the maximum ratio of longest-first to the optimum on p machines: `4/3 - 1/(3p)`.
#[must_use]
pub fn lpt_ratio_bound(machines: usize) -> f64 {
    4.0 / 3.0 - 1.0 / (3.0 * machines as f64)
}

/// Returns jobs on which longest-first reaches its worst ratio: two each of 2p-1, ..., p+1 and three of p.
///
/// Longest-first takes 4p - 1, the optimum 3p.
#[must_use]
pub fn tight_family(machines: u32) -> Vec<f64> {
    let p = machines;
    let mut times: Vec<f64> = (p + 1..2 * p).rev().flat_map(|t| [f64::from(t); 2]).collect();
    times.extend([f64::from(p); 3]);
    times
}

/// Usual budget of [`exact_makespan`], steps: about a second.
pub const EXACT_BUDGET: u64 = 50_000_000;

/// Finds the smallest makespan by branch and bound. About 25 jobs are usually within the budget.
///
/// Jobs are placed longest first. A branch is cut when it cannot beat the best so far, and among machines with equal
/// load only the first is tried. The search stops at a lower bound (mean load, longest job, the p-th and (p+1)-th job
/// together).
///
/// # Errors
/// Those of [`lpt`], and [`ModelError::TooHard`] if the optimum is not proven within `budget` steps.
pub fn exact_makespan(times: &[f64], machines: usize, budget: u64) -> Result<Assignment, ModelError> {
    let mut best = lpt(times, machines)?;
    if times.is_empty() {
        return Ok(best);
    }
    let order = longest_first(times);
    let sorted: Vec<f64> = order.iter().map(|&j| times[j as usize]).collect();
    let pair = if sorted.len() > machines { sorted[machines - 1] + sorted[machines] } else { 0.0 };
    let mean = sorted.iter().sum::<f64>() / machines as f64;
    let least = sorted[0].max(pair).max(mean);
    let mut rest = vec![0.0; sorted.len() + 1]; // work of the jobs from here on
    for at in (0..sorted.len()).rev() {
        rest[at] = rest[at + 1] + sorted[at];
    }
    let used = machines.min(sorted.len());
    let mut loads = vec![0.0f64; used];
    let mut choice: Vec<usize> = vec![0]; // next machine to try, per job placed so far
    let mut placed: Vec<(usize, f64)> = Vec::with_capacity(sorted.len()); // machine, its load before
    let mut steps = 0u64;
    while let Some(&from) = choice.last() {
        if best.makespan <= least {
            break;
        }
        steps += 1;
        if steps > budget {
            return Err(ModelError::TooHard { jobs: times.len(), machines, budget });
        }
        let job = choice.len() - 1;
        // The remaining work must fit below the best makespan, however it is divided.
        let room: f64 = loads.iter().map(|l| (best.makespan - l).max(0.0)).sum();
        let machine = if rest[job] < room {
            (from..used).find(|&m| {
                loads[m] + sorted[job] < best.makespan && !loads[..m].iter().any(|l| l.to_bits() == loads[m].to_bits())
            })
        } else {
            None
        };
        let Some(machine) = machine else {
            choice.pop();
            if let Some((machine, before)) = placed.pop() {
                loads[machine] = before;
            }
            continue;
        };
        choice[job] = machine + 1;
        if job + 1 < sorted.len() {
            placed.push((machine, loads[machine]));
            loads[machine] += sorted[job];
            choice.push(0);
        } else {
            let last = (machine, loads[machine] + sorted[job]);
            best.makespan = loads.iter().copied().fold(last.1, f64::max);
            for (&job, &(machine, _)) in order.iter().zip(&placed) {
                best.machine[job as usize] = machine as u32;
            }
            best.machine[order[job] as usize] = machine as u32;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn makespan_of(assignment: &Assignment, times: &[f64], machines: usize) -> f64 {
        let mut loads = vec![0.0; machines];
        for (job, &machine) in assignment.machine.iter().enumerate() {
            loads[machine as usize] += times[job];
        }
        loads.into_iter().fold(0.0, f64::max)
    }

    fn brute_force(times: &[f64], machines: usize) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..machines.pow(times.len() as u32) {
            let mut loads = vec![0.0; machines];
            let mut code = code;
            for time in times {
                loads[code % machines] += time;
                code /= machines;
            }
            best = best.min(loads.into_iter().fold(0.0, f64::max));
        }
        best
    }

    #[test]
    fn the_tight_family_reaches_the_bound_exactly() {
        for p in 2..=8u32 {
            let times = tight_family(p);
            assert_eq!(times.len(), 2 * p as usize + 1);
            let greedy = lpt(&times, p as usize).unwrap().makespan;
            let optimum = exact_makespan(&times, p as usize, EXACT_BUDGET).unwrap().makespan;
            assert_eq!((greedy, optimum), (f64::from(4 * p - 1), f64::from(3 * p)));
            assert!((greedy / optimum - lpt_ratio_bound(p as usize)).abs() < 1e-12);
        }
    }

    #[test]
    fn giving_up_says_so() {
        let times: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i * i % 37).sqrt()).collect();
        assert!(matches!(exact_makespan(&times, 7, 1000), Err(ModelError::TooHard { jobs: 40, .. })));
    }

    #[test]
    fn no_machine_is_refused_and_no_job_takes_no_time() {
        assert_eq!(lpt(&[1.0], 0).unwrap_err().to_string(), "machines is 0; it must be within 1 to 4294967295");
        assert_eq!(exact_makespan(&[], 3, 10).unwrap().makespan, 0.0);
        assert!(lpt(&[f64::NAN], 1).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn longest_first_stays_within_its_bound_of_the_optimum_found_by_trying_all(
            times in prop::collection::vec((1..40u32).prop_map(f64::from), 1..9),
            machines in 1..4usize,
        ) {
            let greedy = lpt(&times, machines).unwrap();
            let exact = exact_makespan(&times, machines, EXACT_BUDGET).unwrap();
            prop_assert_eq!(exact.makespan, brute_force(&times, machines));
            prop_assert_eq!(makespan_of(&exact, &times, machines), exact.makespan);
            prop_assert_eq!(makespan_of(&greedy, &times, machines), greedy.makespan);
            prop_assert!(greedy.makespan <= lpt_ratio_bound(machines) * exact.makespan * (1.0 + 1e-12));
        }
    }
}
