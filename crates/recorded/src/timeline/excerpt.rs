//! The part of a timeline that a page shows: the steps in which most time is waited, and all steps in a strip.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use super::{Doing, NONE, Span, Timeline};

/// Ranks, steps and spans that are shown at most.
const MOST_RANKS: usize = 24;
const MOST_STEPS: usize = 10;
const MOST_SPANS: usize = 2_400;
/// Columns of the strip of all steps, at most.
const MOST_COLUMNS: usize = 240;
/// Ranks that the strip names as causes, at most.
const MOST_CAUSES: usize = 3;
const OTHER: &str = "other";
const NO_RANK: &str = "none";

/// Steps are counted from 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Excerpt {
    pub first_step: u32,
    pub last_step: u32,
    /// The ranks shown, by number.
    pub ranks: Vec<u32>,
    pub spans: Columns,
    /// Shorter spans of these steps and ranks that are left out.
    pub left_out: usize,
    pub steps: Strip,
    /// Waiting of all ranks by its cause: a rank, `other` ranks, or `none`, s.
    pub caused_s: BTreeMap<String, f64>,
}

/// One entry for each span.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Columns {
    pub rank: Vec<u32>,
    pub step: Vec<u32>,
    pub start_s: Vec<f64>,
    pub end_s: Vec<f64>,
    pub doing: Vec<&'static str>,
    pub operation: Vec<Option<String>>,
    pub waits_for: Vec<Option<u32>>,
    pub caused_by: Vec<Option<u32>>,
}

/// One entry for each column: one step, or several that follow each other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Strip {
    pub first: Vec<u32>,
    pub count: Vec<u32>,
    /// Mean length of the column's steps, s.
    pub length_s: Vec<f64>,
    /// Mean over ranks and steps of the time waited, by its cause, s.
    pub waited_s: BTreeMap<String, Vec<f64>>,
}

impl Timeline {
    /// Returns the part to show. `culprits`: numbers of the ranks that stand out.
    #[must_use]
    pub fn excerpt(&self, culprits: &[u32]) -> Excerpt {
        let count = self.all().map(|span| span.step as usize + 1).max().unwrap_or(0);
        if count == 0 {
            return Excerpt::default();
        }
        let named = self.named(culprits);
        let ranks = self.shown(culprits);
        let steps = self.window(culprits, &ranks, count);
        let mut spans: Vec<(u32, &Span)> = ranks
            .iter()
            .flat_map(|&rank| self.lanes[rank].iter().map(move |span| (self.ranks[rank], span)))
            .filter(|(_, span)| steps.contains(&span.step))
            .collect();
        let left_out = spans.len().saturating_sub(MOST_SPANS);
        if left_out > 0 {
            spans.sort_by_key(|(_, span)| std::cmp::Reverse(span.end - span.start));
            spans.truncate(MOST_SPANS);
            spans.sort_by_key(|(rank, span)| (*rank, span.start));
        }
        let mut caused = BTreeMap::new();
        for span in self.waits() {
            *caused.entry(self.key(span.cause, &named)).or_default() += seconds(span);
        }
        Excerpt {
            first_step: steps.start() + 1,
            last_step: steps.end() + 1,
            ranks: ranks.iter().map(|&rank| self.ranks[rank]).collect(),
            spans: self.columns(&spans),
            left_out,
            steps: self.strip(count, &named),
            caused_s: caused,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Span> {
        self.lanes.iter().flatten()
    }

    fn waits(&self) -> impl Iterator<Item = &Span> {
        self.all().filter(|span| span.doing == Doing::Wait)
    }

    fn key(&self, cause: u32, named: &[u32]) -> String {
        match self.ranks.get(cause as usize) {
            Some(rank) if named.contains(rank) => rank.to_string(),
            Some(_) => OTHER.into(),
            None => NO_RANK.into(),
        }
    }

    /// Returns the ranks that are named as causes: those that stand out, then those that cause most waiting.
    fn named(&self, culprits: &[u32]) -> Vec<u32> {
        let mut caused: BTreeMap<u32, f64> = BTreeMap::new();
        for span in self.waits().filter(|span| span.cause != NONE) {
            *caused.entry(self.ranks[span.cause as usize]).or_default() += seconds(span);
        }
        let mut named: Vec<u32> = culprits.iter().copied().take(MOST_CAUSES).collect();
        let mut others: Vec<(u32, f64)> = caused.into_iter().filter(|(rank, _)| !named.contains(rank)).collect();
        others.sort_by(|one, other| other.1.total_cmp(&one.1));
        named.extend(others.into_iter().map(|(rank, _)| rank).take(MOST_CAUSES - named.len()));
        named
    }

    /// Returns the ranks to show, as indices: those that stand out, then those that wait most.
    fn shown(&self, culprits: &[u32]) -> Vec<usize> {
        let waited: Vec<f64> = self
            .lanes
            .iter()
            .map(|lane| lane.iter().filter(|span| span.doing == Doing::Wait).map(seconds).sum())
            .collect();
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by(|&one, &other| {
            let stands_out = |rank: usize| culprits.contains(&self.ranks[rank]);
            stands_out(other).cmp(&stands_out(one)).then(waited[other].total_cmp(&waited[one]))
        });
        order.truncate(MOST_RANKS);
        order.sort_unstable();
        order
    }

    /// Returns the steps that follow each other in which most is waited for the ranks that stand out, or at all.
    fn window(&self, culprits: &[u32], ranks: &[usize], count: usize) -> RangeInclusive<u32> {
        let is_theirs = |cause: u32| {
            culprits.is_empty() || self.ranks.get(cause as usize).is_some_and(|rank| culprits.contains(rank))
        };
        let mut waited = vec![0.0; count];
        self.waits().filter(|span| is_theirs(span.cause)).for_each(|span| waited[span.step as usize] += seconds(span));
        let mut spans = vec![0usize; count];
        ranks.iter().flat_map(|&rank| &self.lanes[rank]).for_each(|span| spans[span.step as usize] += 1);
        let mut best = (f64::NEG_INFINITY, 0..=0);
        for first in 0..count {
            let (mut sum, mut drawn) = (0.0, 0);
            let mut last = first;
            for step in first..count.min(first + MOST_STEPS) {
                drawn += spans[step];
                if step > first && drawn > MOST_SPANS {
                    break;
                }
                sum += waited[step];
                last = step;
            }
            if sum > best.0 {
                best = (sum, first as u32..=last as u32);
            }
        }
        best.1
    }

    fn columns(&self, spans: &[(u32, &Span)]) -> Columns {
        let mut found = Columns::default();
        let number = |rank: u32| self.ranks.get(rank as usize).copied();
        for &(rank, span) in spans {
            found.rank.push(rank);
            found.step.push(span.step + 1);
            found.start_s.push(span.start as f64 * 1e-9);
            found.end_s.push(span.end as f64 * 1e-9);
            found.doing.push(span.doing.name());
            found.operation.push(self.operations.get(span.operation as usize).map(ToString::to_string));
            found.waits_for.push(number(span.awaited));
            found.caused_by.push(number(span.cause));
        }
        found
    }

    fn strip(&self, count: usize, named: &[u32]) -> Strip {
        let each = count.div_ceil(MOST_COLUMNS);
        let columns = count.div_ceil(each);
        let mut ends = vec![0i64; count];
        self.all().for_each(|span| ends[span.step as usize] = span.end.max(ends[span.step as usize]));
        let begun = self.all().map(|span| span.start).min().unwrap_or(0);
        let mut waited: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let steps_of = |column: usize| each.min(count - column * each);
        for span in self.waits() {
            let column = span.step as usize / each;
            let sums = waited.entry(self.key(span.cause, named)).or_insert_with(|| vec![0.0; columns]);
            sums[column] += seconds(span) / (self.ranks.len() * steps_of(column)) as f64;
        }
        let mut before = begun;
        let mut length_s = Vec::with_capacity(columns);
        for column in 0..columns {
            let end = ends[column * each + steps_of(column) - 1];
            length_s.push((end - before) as f64 * 1e-9 / steps_of(column) as f64);
            before = end;
        }
        Strip {
            first: (0..columns).map(|column| (column * each) as u32 + 1).collect(),
            count: (0..columns).map(|column| steps_of(column) as u32).collect(),
            length_s,
            waited_s: waited,
        }
    }
}

fn seconds(span: &Span) -> f64 {
    (span.end - span.start) as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks that compute 1 us, then wait `waits` us for rank 0 in each step.
    fn drawn(ranks: usize, waits: &[i64]) -> Timeline {
        let lane = |rank: usize| {
            let mut now = 0;
            let mut spans = Vec::new();
            for (step, &us) in (0u32..).zip(waits) {
                for (doing, us) in [(Doing::Compute, 1), (Doing::Wait, if rank == 0 { 0 } else { us })] {
                    let cause = if doing == Doing::Wait { 0 } else { NONE };
                    let end = now + 1000 * us;
                    spans.push(Span { start: now, end, doing, operation: NONE, awaited: cause, cause, step });
                    now = end;
                }
            }
            spans
        };
        Timeline { ranks: (0..ranks as u32).collect(), lanes: (0..ranks).map(lane).collect(), operations: vec![] }
    }

    #[test]
    fn the_steps_with_the_longest_waits_are_shown() {
        let mut waits = vec![1; 100];
        waits[40..45].fill(50);
        let found = drawn(3, &waits).excerpt(&[0]);
        assert!(found.first_step <= 41 && found.last_step >= 45 && found.last_step - found.first_step < 10);
        assert_eq!((found.left_out, found.steps.first.len()), (0, 100));
        assert!((found.caused_s["0"] - 2.0 * 345e-6).abs() < 1e-12);
        assert!((found.steps.waited_s["0"][41] - 2.0 * 50e-6 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_large_recording_stays_small() {
        let found = drawn(100, &[2; 1_000]).excerpt(&[99]);
        assert!(found.ranks.len() == 24 && found.ranks.contains(&99));
        assert!(found.spans.rank.len() <= 2_400 && found.steps.first.len() <= 240);
        assert_eq!(found.steps.count.iter().sum::<u32>(), 1_000);
        assert!(serde_json::to_string(&found).unwrap().len() < 400_000);
    }

    #[test]
    fn of_a_step_with_too_many_spans_the_shortest_are_left_out() {
        let mut one = drawn(2, &[3]);
        let long = one.lanes[1][1];
        for at in 0..5_000 {
            one.lanes[0].push(Span { start: 1000 + at, end: 1001 + at, ..long });
        }
        let found = one.excerpt(&[]);
        assert_eq!((found.spans.rank.len(), found.left_out), (2_400, 5_004 - 2_400));
        assert!(found.spans.end_s.contains(&(long.end as f64 * 1e-9)));
    }

    #[test]
    fn a_program_that_does_nothing_has_no_excerpt() {
        assert!(drawn(2, &[]).excerpt(&[]).ranks.is_empty());
    }
}
