//! Which ranks those of a scan wait for.
//!
//! What a scan gives to a rank needs the ranks at lower places of the communicator. Whether a rank waits for some at higher
//! places, too, depends on the MPI: along a chain it does not; where pairs exchange what they have, it does. The recording
//! shows it: a rank that leaves before another has arrived does not wait for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::matching::SEND_SLACK_NS;

/// Pairs of ranks that are looked at; of more, those of each second, third scan and so on.
const PAIRS: usize = 20_000_000;
/// A rank waits for another if it left before that had come at most once in this many times.
const SELDOM: u32 = 20;

/// When a rank arrived at a scan and left it, on the common clock, ns; and the error of its clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    pub start: i64,
    pub end: i64,
    pub slack: i64,
}

type Scan = (u32, Arc<str>, u64);

/// For the scans of each communicator, name and size: the highest place that the rank at each place waits for.
#[derive(Debug, Default)]
pub struct Reach(BTreeMap<Scan, Vec<usize>>);

impl Reach {
    /// `scans`: for each, its ranks in the order of their places.
    #[must_use]
    pub fn new(scans: &BTreeMap<Scan, Vec<Vec<Arrived>>>) -> Self {
        Self(scans.iter().map(|(scan, times)| (scan.clone(), reach(times))).collect())
    }

    /// Returns the highest places that the ranks of a scan wait for.
    #[must_use]
    pub fn of(&self, comm: u32, name: &Arc<str>, size: u64) -> Option<&[usize]> {
        self.0.get(&(comm, Arc::clone(name), size)).map(Vec::as_slice)
    }
}

fn reach(scans: &[Vec<Arrived>]) -> Vec<usize> {
    let ranks = scans.iter().map(Vec::len).max().unwrap_or_default();
    let every = (scans.len() * ranks * ranks / 2).div_ceil(PAIRS).max(1);
    let of = |own: usize| {
        // For each higher place: how often the rank left before that one had come, and how often it did not.
        let mut seen = vec![(0u32, 0u32); ranks];
        for scan in scans.iter().step_by(every).filter(|scan| scan.len() > own) {
            let one = scan[own];
            let ready = scan[..=own].iter().map(|one| one.start).max().unwrap_or(i64::MIN);
            for (other, (left, stayed)) in scan.iter().zip(&mut seen).skip(own + 1) {
                let slack = one.slack.saturating_add(other.slack).saturating_add(SEND_SLACK_NS);
                let is_before = one.end < other.start.saturating_sub(slack);
                *left += u32::from(is_before);
                *stayed += u32::from(!is_before && other.start > ready.saturating_add(slack));
            }
        }
        let waits = |(left, stayed): &(u32, u32)| *stayed > 0 && left.saturating_mul(SELDOM) <= *stayed;
        seen.iter().rposition(waits).unwrap_or(own)
    };
    (0..ranks).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans of four ranks that come in turn 1 ms later than the others; `waits` says for how many places each waits.
    fn of(waits: [usize; 4]) -> Vec<usize> {
        let scan = |number: i64| {
            let start = |place: i64| 10_000_000 * number + if number % 4 == place { 1_000_000 } else { 3_000 * place };
            let end = |place: usize| (0..=waits[place] as i64).map(start).max().unwrap() + 5_000;
            (0..4).map(|place| Arrived { start: start(place as i64), end: end(place), slack: 0 }).collect()
        };
        reach(&(0..40).map(scan).collect::<Vec<_>>())
    }

    #[test]
    fn a_rank_waits_for_higher_places_only_if_it_never_leaves_before_them() {
        for waits in [[0, 1, 2, 3], [3, 3, 3, 3], [1, 2, 3, 3], [2, 1, 2, 3]] {
            assert_eq!(of(waits), waits);
        }
    }

    #[test]
    fn simultaneous_arrivals_are_no_evidence_about_higher_places() {
        let scan = (0..3).map(|place| Arrived { start: 100 * place, end: 5_000, slack: 0 }).collect::<Vec<_>>();
        assert_eq!(reach(&[scan]), [0, 1, 2]);
    }
}
