//! Times at the same place of all steps, rank by rank, each against what is usual there.

use std::collections::BTreeMap;

use super::noise::{Level, level, median};
use super::steps::Step;
use crate::graph::Times;

/// Places whose times, slowest rank by slowest rank, make up less than this share of the run are left alone.
const NEGLIGIBLE: f64 = 2e-4;
/// With at least this many ranks, one rank does not change the noise of all.
const MANY: usize = 8;
/// Fewer steps than this say nothing about how alike the ranks' times are within a step.
const FEW_STEPS: usize = 12;
/// Number of other ranks that each rank is compared with to estimate the spread of the noise.
const PAIRED: usize = 3;
/// Ranks that are compared so; of more, each second, third and so on.
const MOST_PAIRED: usize = 64;
/// Times that describe the noise; of more, each second, third and so on.
const ENOUGH: usize = 20_000;
/// Middle times of peers this many spreads apart are not of one kind; the lower is usual.
pub const APART: f64 = 6.0;

/// Whether times are computing, or lateness after a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Computing,
    Tail,
}

/// The times of one rank at one place.
#[derive(Clone, Debug)]
pub struct Series {
    pub rank: u32,
    /// Kind of step, for [`Alike::place`].
    pub kind: u32,
    pub what: What,
    /// Actions since the step began.
    pub place: u32,
    pub cells: Vec<u32>,
    pub steps: Vec<u32>,
    /// Excess over what is usual at the step, ns.
    pub values: Vec<f64>,
    pub level: Level,
    /// Standard deviation of the center of a healthy rank's times around that of the level, ns. A rank alone has no other
    /// times to tell.
    pub error: f64,
    /// Compared with itself at other steps, since no other rank does the same.
    pub alone: bool,
    /// One of two: the slower is only said to be slower than the other.
    pub of_two: bool,
}

/// A rank, its cell, and the time there, ns.
type Time = (u32, u32, f64);

/// Times of all ranks at one place, step by step.
pub struct Place {
    pub steps: Vec<(u32, Vec<Time>)>,
}

/// Which ranks do the same, at which steps: for each kind of step, the numbers of its steps, each with its ranks.
pub struct Alike<'a> {
    steps: &'a [Vec<Step>],
    own: &'a Times,
    kinds: Vec<BTreeMap<u32, Vec<u32>>>,
}

impl<'a> Alike<'a> {
    #[must_use]
    pub fn new(steps: &'a [Vec<Step>], own: &'a Times) -> Self {
        let mut alike: BTreeMap<u64, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for (rank, steps) in (0u32..).zip(steps) {
            for (number, step) in (0u32..).zip(steps) {
                alike.entry(step.does).or_default().entry(number).or_default().push(rank);
            }
        }
        Self { steps, own, kinds: alike.into_values().collect() }
    }

    /// Returns the times at a place of a kind of step.
    #[must_use]
    pub fn place(&self, kind: u32, what: What, place: u32) -> Place {
        let times = match what {
            What::Computing => &self.own.computing,
            What::Tail => &self.own.tail,
        };
        let of = |(&number, ranks): (&u32, &Vec<u32>)| {
            let row = ranks.iter().map(|&rank| {
                let cell = self.steps[rank as usize][number as usize].cells.start + place as usize;
                (rank, cell as u32, times[cell] as f64)
            });
            (number, row.collect::<Vec<_>>())
        };
        Place { steps: self.kinds[kind as usize].iter().map(of).collect() }
    }

    /// Returns the series of all ranks and places. `run`: duration of the run, ns.
    #[must_use]
    pub fn series(&self, run: f64) -> Vec<Series> {
        let mut found = Vec::new();
        for (kind, numbers) in (0u32..).zip(&self.kinds) {
            let Some((&number, ranks)) = numbers.iter().next() else { continue };
            let length = self.steps[ranks[0] as usize][number as usize].cells.len();
            for what in [What::Computing, What::Tail] {
                for place in 0..length as u32 {
                    let here = self.place(kind, what, place);
                    let whole: f64 =
                        here.steps.iter().map(|(_, row)| row.iter().map(|one| one.2).fold(0.0, f64::max)).sum();
                    if whole >= NEGLIGIBLE * run {
                        at_place(&here, (kind, what, place), &mut found);
                    }
                }
            }
        }
        found
    }
}

/// Returns the median of all but one of sorted times; where the two in the middle are far apart, the lower.
pub fn usual(sorted: &[f64], without: f64, apart: f64) -> f64 {
    let out = sorted.partition_point(|&value| value < without);
    let count = sorted.len() - 1;
    let at = |place: usize| if place < out { sorted[place] } else { sorted[place + 1] };
    if count % 2 == 1 {
        return at(count / 2);
    }
    let (low, high) = (at(count / 2 - 1), at(count / 2));
    if high - low > apart { low } else { f64::midpoint(low, high) }
}

/// Returns the variance of the median of independent times, against that of one of them.
pub fn of_median(count: f64) -> f64 {
    if count <= 2.5 { 1.0 / count } else { std::f64::consts::FRAC_PI_2 / count }
}

/// How much of a deviation of a step's usual time is common to all ranks, from 0 to 1.
pub fn common(steps: usize, usual: &[f64], spread: f64, peers: f64) -> f64 {
    if steps < FEW_STEPS {
        return 1.0;
    }
    let mut sorted = usual.to_vec();
    let level = level(&mut sorted);
    // Steps with other work are far apart: the deviations are then all common.
    let outside = usual.iter().filter(|&&value| (value - level.center).abs() > APART * level.spread).count();
    let seen = if outside * 10 > usual.len() {
        let mean = usual.iter().sum::<f64>() / usual.len() as f64;
        usual.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / usual.len() as f64
    } else {
        level.spread.powi(2)
    };
    let alone = spread.powi(2) * of_median(peers);
    let share = 1.0 - alone / seen.max(1.0);
    // A smaller share may be chance.
    if share < 2.0 * (2.0 / usual.len() as f64).sqrt() { 0.0 } else { share.min(1.0) }
}

/// Returns the spread of one rank's times: that of two ranks' differences, pair by pair, so that a rank that is always
/// slower, or one that is so now and then, does not widen it.
pub fn spread_of_one(here: &Place) -> f64 {
    let mut pairs: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for (_, row) in &here.steps {
        for (at, one) in row.iter().enumerate().step_by(row.len().div_ceil(MOST_PAIRED).max(1)) {
            for other in row.iter().skip(at + 1).take(PAIRED) {
                pairs.entry((one.0, other.0)).or_default().push(other.2 - one.2);
            }
        }
    }
    let mut spreads: Vec<f64> = pairs.values_mut().map(|differences| level(differences).spread).collect();
    spreads.sort_unstable_by(f64::total_cmp);
    median(&spreads) / std::f64::consts::SQRT_2
}

fn at_place(here: &Place, (kind, what, place): (u32, What, u32), found: &mut Vec<Series>) {
    let ranks = here.steps.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    let mut sorted: Vec<Vec<f64>> = Vec::with_capacity(here.steps.len());
    for (_, row) in &here.steps {
        let mut times: Vec<f64> = row.iter().map(|one| one.2).collect();
        times.sort_unstable_by(f64::total_cmp);
        sorted.push(times);
    }
    let spread = spread_of_one(here);
    let mut rows: BTreeMap<u32, Vec<(u32, u32, f64)>> = BTreeMap::new();
    if ranks >= 2 {
        let middles: Vec<f64> = sorted.iter().map(|times| if ranks == 2 { times[0] } else { median(times) }).collect();
        let share = common(here.steps.len(), &middles, spread, ranks as f64);
        let overall = level(&mut middles.clone()).center;
        for ((number, row), sorted) in here.steps.iter().zip(&sorted) {
            if row.len() < 2 {
                continue;
            }
            for &(rank, cell, time) in row {
                let peers = if ranks == 2 { sorted[0] } else { usual(sorted, time, APART * spread) };
                let expected = overall + share * (peers - overall);
                rows.entry(rank).or_default().push((*number, cell, time - expected));
            }
        }
    } else {
        let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let cells = || here.steps.iter().flat_map(|(number, row)| row.iter().map(move |one| (*number, *one)));
        cells().for_each(|(_, (rank, _, time))| times.entry(rank).or_default().push(time));
        let centers: BTreeMap<u32, f64> =
            times.into_iter().map(|(rank, mut times)| (rank, level(&mut times).center)).collect();
        for (number, (rank, cell, time)) in cells() {
            rows.entry(rank).or_default().push((number, cell, time - centers[&rank]));
        }
    }
    let all = (rows.len() >= MANY).then(|| {
        let count: usize = rows.values().map(Vec::len).sum();
        let some = rows.values().flatten().step_by(count.div_ceil(ENOUGH).max(1));
        level(&mut some.map(|one| one.2).collect::<Vec<_>>())
    });
    let slower = (rows.len() == 2 && ranks >= 2).then(|| {
        let middle = |row: &Vec<(u32, u32, f64)>| level(&mut row.iter().map(|one| one.2).collect::<Vec<_>>());
        rows.iter().map(|(&rank, row)| (rank, middle(row))).min_by(|one, other| one.1.center.total_cmp(&other.1.center))
    });
    for (&rank, row) in &rows {
        let level = match (all, slower.flatten()) {
            (Some(all), _) => all,
            // Of two, the quicker describes both.
            (None, Some((_, quicker))) => Level { spread: quicker.spread.max(spread), ..quicker },
            (None, None) => {
                let others = rows.iter().filter(|&(&other, _)| other != rank || rows.len() == 1);
                level(&mut others.flat_map(|(_, row)| row.iter().map(|one| one.2)).collect::<Vec<_>>())
            }
        };
        let alone = ranks < 2 || rows.len() == 1;
        found.push(Series {
            rank,
            kind,
            what,
            place,
            cells: row.iter().map(|one| one.1).collect(),
            steps: row.iter().map(|one| one.0).collect(),
            values: row.iter().map(|one| one.2).collect(),
            level,
            error: if alone { level.spread } else { level.spread / (level.count.max(1) as f64).sqrt() },
            alone,
            of_two: rows.len() == 2,
        });
    }
}

/// Returns over how many steps times that follow each other are alike: the variance of their mean, against independent
/// ones.
#[must_use]
pub fn block(series: &[Series], what: What) -> f64 {
    const LAGS: usize = 12;
    const ROUNDS: usize = 4;
    let (mut products, mut counts, mut squares, mut number) = ([0.0; LAGS], [0usize; LAGS], 0.0, 0usize);
    let mut length: f64 = 0.0;
    let mut rows = 0.0;
    for one in series.iter().filter(|one| one.what == what && one.values.len() >= 8) {
        let clean: Vec<f64> = one
            .values
            .iter()
            .map(|value| (value - one.level.center) / one.level.spread)
            .map(|value| if value.abs() > APART { 0.0 } else { value })
            .collect();
        // Against the rank's own mean: a rank that is always slower is not alike over time for that.
        let mean = clean.iter().sum::<f64>() / clean.len() as f64;
        squares += clean.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        number += clean.len();
        (length, rows) = (length + clean.len() as f64, rows + 1.0);
        for lag in 1..=LAGS.min(clean.len() / 4) {
            products[lag - 1] += clean.windows(lag + 1).map(|pair| (pair[0] - mean) * (pair[lag] - mean)).sum::<f64>();
            counts[lag - 1] += clean.len() - lag;
        }
    }
    if number == 0 || squares <= 0.0 {
        return 1.0;
    }
    let mut factor: f64 = 1.0;
    for _ in 0..ROUNDS {
        // The mean of a row is that of its times: all products are too small by the variance of this mean.
        let lost = (factor * rows / length).min(0.5);
        let mut correlations = Vec::with_capacity(LAGS);
        for (product, count) in products.iter().zip(counts) {
            if count == 0 {
                break;
            }
            correlations.push(product / count as f64 / (squares / number as f64) * (1.0 - lost) + lost);
        }
        // At most, all times of a row are one.
        factor = at_zero(&correlations, counts[0] as f64).min(length / rows);
    }
    factor
}

/// Returns the variance of a mean, against that of independent values: the spectrum at zero of the autoregression whose
/// order is best by the criterion of Schwarz (1978). `correlations`: with the value before, the one before that, and so
/// on; `count`: values that tell them.
fn at_zero(correlations: &[f64], count: f64) -> f64 {
    let mut weights: Vec<f64> = Vec::new();
    // Variance of what the values before do not explain.
    let mut rest = 1.0;
    let (mut least, mut best) = (0.0, 1.0);
    for (order, correlation) in (1..).zip(correlations) {
        // Levinson's recursion.
        let explained: f64 =
            weights.iter().zip(correlations[..order - 1].iter().rev()).map(|(one, two)| one * two).sum();
        let next = (correlation - explained) / rest;
        if next.abs() >= 1.0 {
            break;
        }
        let before = weights.clone();
        weights.iter_mut().zip(before.iter().rev()).for_each(|(weight, mirrored)| *weight -= next * mirrored);
        weights.push(next);
        rest *= 1.0 - next * next;
        let criterion = count * f64::ln(rest) + order as f64 * count.ln();
        if criterion < least {
            least = criterion;
            best = rest / (1.0 - weights.iter().sum::<f64>()).powi(2);
        }
    }
    best.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::noise::Draws;
    use super::*;

    /// Returns rows of times, each a part of the one before it plus noise.
    fn rows(count: usize, steps: usize, part: f64, draws: &mut Draws) -> Vec<Series> {
        let row = |rank| {
            let mut last = draws.normal();
            let mut next = || {
                last = part * last + (1.0 - part * part).sqrt() * draws.normal();
                1e6 * last
            };
            let values: Vec<f64> = (0..steps).map(|_| next()).collect();
            Series {
                rank,
                kind: 0,
                what: What::Computing,
                place: 0,
                cells: (0..steps as u32).collect(),
                steps: (0..steps as u32).collect(),
                values,
                level: Level { center: 0.0, spread: 1e6, count: steps * count },
                error: 0.0,
                alone: false,
                of_two: false,
            }
        };
        (0..count as u32).map(row).collect()
    }

    /// Returns the mean of the block over many programs.
    fn mean_block(count: usize, steps: usize, part: f64) -> f64 {
        const TRIALS: usize = 400;
        let mut draws = Draws(5);
        (0..TRIALS).map(|_| block(&rows(count, steps, part, &mut draws), What::Computing)).sum::<f64>() / TRIALS as f64
    }

    #[test]
    fn times_that_are_alike_from_step_to_step_count_as_fewer() {
        // The variance of a mean is (1 + part) / (1 - part) that of independent times.
        for (count, steps) in [(9, 12), (9, 30), (48, 12)] {
            let found = mean_block(count, steps, 0.6);
            assert!((found / 4.0 - 1.0).abs() < 0.15, "{count} rows of {steps}: {found}");
        }
        let found = mean_block(9, 120, 0.3);
        assert!((found / (1.3 / 0.7) - 1.0).abs() < 0.1, "{found}");
    }

    #[test]
    fn independent_times_count_in_full() {
        for (count, steps) in [(9, 12), (9, 120), (192, 20)] {
            let found = mean_block(count, steps, 0.0);
            assert!((1.0..1.1).contains(&found), "{count} rows of {steps}: {found}");
        }
    }
}
