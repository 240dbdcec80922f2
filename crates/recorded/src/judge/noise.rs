//! How long a piece of computing takes on ranks that are not slow, and how much longer than that a rank took.
//!
//! Each time of a rank is noise plus an excess. The noise is known from the rank's peers. The excess is 0, always the same,
//! or now and then large. A likelihood ratio says whether there is an excess at all; its level under noise alone is found
//! by drawing noise.

use std::collections::BTreeMap;

use crosswind_program::random::{GOLDEN, mixed};

/// Spread of a normal distribution whose shorter half is 2 * 0.6745 spreads wide.
const HALF: f64 = 0.6745;
/// Beyond this many spreads a time does not describe noise.
pub const CLEAN: f64 = 6.0;
/// Beyond this many spreads a time is not usual.
const UNUSUAL: f64 = 3.0;
/// Share and spread of the wide part of the noise: rare longer times are nothing special.
const WIDE: f64 = 0.01;
const WIDE_SPREAD: f64 = 2.0;
/// Fewer far times than this, over all ranks, are no part of the noise; and the greatest share that is.
const FEW_FAR: f64 = 2.0;
const MOST_FAR: f64 = 0.2;
/// With this many ranks or more, two of them are left out of the far times instead of one.
const MANY: usize = 6;
/// Resolution of stamps, ns: no spread is smaller.
const STAMP: f64 = 1_000.0;

/// Deterministic random numbers, one after the other, by SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Draws(pub u64);

impl Draws {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// Returns a number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// Draws from a normal distribution.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Draws from a chi-square distribution (Wilson and Hilferty 1931).
    pub fn chi_square(&mut self, free: f64) -> f64 {
        let part = 2.0 / (9.0 * free);
        (free * (1.0 - part + self.normal() * part.sqrt()).powi(3)).max(1e-3)
    }

    /// Draws from an exponential distribution of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[must_use]
pub fn median(sorted: &[f64]) -> f64 {
    let count = sorted.len();
    match count {
        0 => 0.0,
        _ if count % 2 == 1 => sorted[count / 2],
        _ => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// Where most of the noise lies, and its spread.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub center: f64,
    pub spread: f64,
    /// Number of times that describe it.
    pub count: usize,
}

/// Returns the level of noise, whatever up to half of the times do.
#[must_use]
pub fn level(values: &mut [f64]) -> Level {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    if count == 0 {
        return Level { center: 0.0, spread: STAMP, count };
    }
    let half = count / 2 + 1;
    let first = (0..=count - half)
        .min_by(|&one, &other| {
            (values[one + half - 1] - values[one]).total_cmp(&(values[other + half - 1] - values[other]))
        })
        .unwrap_or(0);
    let (low, high) = (values[first], values[(first + half - 1).min(count - 1)]);
    let rough = ((high - low) / (2.0 * HALF)).max(STAMP);
    let middle = f64::midpoint(low, high);
    let clean: Vec<f64> = values.iter().copied().filter(|value| (value - middle).abs() <= CLEAN * rough).collect();
    let number = clean.len() as f64;
    let center = clean.iter().sum::<f64>() / number;
    let variance = clean.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (number - 1.0).max(1.0);
    Level { center, spread: variance.sqrt().max(STAMP), count: clean.len() }
}

/// Returns the share of times far above all others, and how much farther these are on average than far: peaks over a threshold
/// fall off exponentially (Pickands 1975). What none has shown yet may still come (Jeffreys' prior), and is then thought to go
/// on as times above the usual do, of which one more may come that is as far as to stand out. With `suspects` among them, the
/// ranks with most of it are left out: what only one or two of them show is no noise.
fn tail(ranks: &[Vec<f64>], suspects: bool) -> (f64, f64) {
    let mut found: Vec<[(f64, f64); 2]> =
        ranks.iter().map(|rank| [CLEAN, UNUSUAL].map(|least| peaks(rank, least))).collect();
    let mut all: Vec<usize> = ranks.iter().map(Vec::len).collect();
    if suspects {
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by(|&one, &other| found[one][0].0.total_cmp(&found[other][0].0));
        order.truncate(order.len().saturating_sub(if order.len() < MANY { 1 } else { 2 }));
        (found, all) = order.iter().map(|&at| (found[at], all[at])).unzip();
    }
    let sum = |of: usize| found.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one[of].0, sum.1 + one[of].1));
    let ((far, number), (unusual, some)) = (sum(0), sum(1));
    if suspects && number < FEW_FAR {
        return (0.0, 1.0);
    }
    let usual = (unusual + CLEAN) / (some + 1.0);
    (((number + 0.5) / (all.iter().sum::<usize>() as f64 + 1.0)).min(MOST_FAR), (far + usual) / (number + 1.0))
}

/// Returns by how much values exceed a threshold, together, and how many do.
fn peaks(values: &[f64], least: f64) -> (f64, f64) {
    let above = values.iter().filter(|&&value| value > least);
    above.fold((0.0, 0.0), |(sum, count), value| (sum + value - least, count + 1.0))
}

const GRID: usize = 512;
const REACH: f64 = 8.0;

/// The shape of noise, in spreads from its center.
pub struct Shape {
    density: Vec<f64>,
    /// Standardised times from which noise is drawn.
    drawn: Vec<f64>,
    band: f64,
    /// Share of times far above the others, and by how much they are farther than far, on average.
    tail: f64,
    tail_mean: f64,
}

impl Shape {
    /// Estimates the shape from standardised times, rank by rank. `suspects`: some ranks may have an excess.
    #[must_use]
    pub fn new(ranks: &[Vec<f64>], suspects: bool) -> Self {
        let (tail, tail_mean) = tail(ranks, suspects);
        let mut drawn: Vec<f64> = ranks.iter().flatten().copied().filter(|value| value.abs() <= CLEAN).collect();
        let mut draws = Draws(1);
        while drawn.len() < 50 {
            drawn.push(draws.normal());
        }
        if drawn.len() > 4_000 {
            let every = drawn.len() as f64 / 4_000.0;
            drawn = (0..4_000).map(|at| drawn[(at as f64 * every) as usize]).collect();
        }
        let band = 1.06 * (drawn.len() as f64).powf(-0.2);
        // A kernel widens the spread by its own.
        let shrink = 1.0 / (1.0 + band * band).sqrt();
        let mut shape = Self { density: vec![0.0; GRID], drawn, band, tail, tail_mean };
        for at in 0..GRID {
            let place = (at as f64 / (GRID - 1) as f64 * 2.0 - 1.0) * REACH;
            let kernel = |value: &f64| (-0.5 * ((place - shrink * value) / (shrink * band)).powi(2)).exp();
            let sum: f64 = shape.drawn.iter().map(kernel).sum();
            let dense = sum / (shape.drawn.len() as f64 * shrink * band * std::f64::consts::TAU.sqrt());
            shape.density[at] = (1.0 - WIDE - tail) * dense + shape.wide(place);
        }
        shape
    }

    /// Returns the density of the wide parts of the noise.
    fn wide(&self, place: f64) -> f64 {
        let wide = WIDE * (-(place / WIDE_SPREAD).abs()).exp() / (2.0 * WIDE_SPREAD);
        if place > CLEAN {
            return wide + self.tail * ((CLEAN - place) / self.tail_mean).exp() / self.tail_mean;
        }
        wide
    }

    /// Returns the density at a place, spreads from the center.
    #[must_use]
    pub fn at(&self, place: f64) -> f64 {
        let spot = (place / REACH + 1.0) / 2.0 * (GRID - 1) as f64;
        if !(0.0..(GRID - 1) as f64).contains(&spot) {
            return self.wide(place).max(1e-290);
        }
        let (low, part) = (spot as usize, spot.fract());
        self.density[low] * (1.0 - part) + self.density[low + 1] * part
    }

    fn draw(&self, draws: &mut Draws) -> f64 {
        if self.tail > 0.0 && draws.unit() < self.tail {
            return CLEAN + self.tail_mean * draws.exponential();
        }
        self.draw_usual(draws)
    }

    /// Draws noise that is not far from its center.
    pub fn draw_usual(&self, draws: &mut Draws) -> f64 {
        let shrink = 1.0 / (1.0 + self.band * self.band).sqrt();
        shrink * (self.drawn[draws.below(self.drawn.len())] + self.band * draws.normal())
    }
}

/// Odds beyond which one time decides alone.
const SURE: f64 = 1e150;

/// Returns by what share a time is more likely with an excess than without.
fn odds(some: f64, none: f64) -> f64 {
    (some / none).min(SURE) - 1.0
}

/// Returns the logarithm of the likelihood ratio of a mixture in which a share `rate` of the times has the excess.
fn gain(odds: &[f64], rate: f64) -> f64 {
    let (mut sum, mut product) = (0.0, 1.0);
    for one in odds {
        product *= 1.0 + rate * one;
        // A logarithm now and then instead of one for each time.
        if !(1e-100..1e100).contains(&product) {
            sum += f64::ln(product);
            product = 1.0;
        }
    }
    sum + product.ln()
}

/// Returns how many times of a share `rate` of all steps say as much as one independent time, if all steps have `block`.
#[must_use]
pub fn of_some(rate: f64, block: f64) -> f64 {
    1.0 + rate * (block - 1.0)
}

/// Returns the likelihood ratio (a logarithm) of an excess, over excesses that are always there, or now and then, of one
/// length or of any. `values`: spreads from the center of the noise. `block`: number of steps that say as much as one
/// independent step; of steps now and then, fewer follow each other.
#[must_use]
pub fn ratio(values: &[f64], shape: &Shape, block: f64) -> f64 {
    let count = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let highest = sorted.last().copied().unwrap_or(0.0);
    if highest <= 0.0 {
        return 0.0;
    }
    let noise: Vec<f64> = values.iter().map(|&value| shape.at(value)).collect();
    let mean = values.iter().sum::<f64>() / count;
    let quantile = |part: f64| sorted[((count - 1.0) * part) as usize];
    let mut best: f64 = 0.0;
    let rates = [1.0, 0.75, 0.5, 0.33, 0.2, 0.1, (1.0 / count).min(0.1)];
    for excess in [mean, quantile(0.5), quantile(0.67), quantile(0.8), quantile(0.9), highest] {
        if excess <= 0.0 {
            continue;
        }
        let odds: Vec<f64> =
            values.iter().zip(&noise).map(|(&value, none)| odds(shape.at(value - excess), *none)).collect();
        best = rates.iter().map(|&rate| gain(&odds, rate) / of_some(rate, block)).fold(best, f64::max);
    }
    let slab = 1.0 / highest.max(1.0);
    let odds: Vec<f64> =
        values.iter().zip(&noise).map(|(&value, none)| odds(if value > 0.0 { slab } else { 0.0 }, *none)).collect();
    best = rates[1..].iter().map(|&rate| gain(&odds, rate) / of_some(rate, block)).fold(best, f64::max);
    best
}

/// Ratios that noise alone exceeds rarely, by number of times and of times that describe the noise.
pub struct Threshold {
    /// Chance that noise alone exceeds it in one series.
    chance: f64,
    known: BTreeMap<(usize, usize), f64>,
}

/// Draws of noise per threshold.
const NULLS: usize = 500;

impl Threshold {
    #[must_use]
    pub fn new(chance: f64) -> Self {
        Self { chance, known: BTreeMap::new() }
    }

    /// Returns the ratio for series of `count` times whose noise is described by `others` times.
    pub fn of(&mut self, count: usize, others: usize, shape: &Shape) -> f64 {
        // Alike within 10 %: one threshold.
        let coarse = |number: usize| {
            if number < 12 { number } else { 1.1f64.powi((number as f64).log(1.1).round() as i32) as usize }
        };
        let (count, others) = (coarse(count.min(400)), coarse(others.min(2_000)));
        let chance = self.chance;
        *self.known.entry((count, others)).or_insert_with(|| {
            let mut draws = Draws(17 + count as u64 * 31 + others as u64);
            let mut found: Vec<f64> = (0..NULLS)
                .map(|_| {
                    let mut pool: Vec<f64> = (0..others).map(|_| shape.draw(&mut draws) * 1e6).collect();
                    let level = level(&mut pool);
                    let values: Vec<f64> =
                        (0..count).map(|_| (shape.draw(&mut draws) * 1e6 - level.center) / level.spread).collect();
                    ratio(&values, shape, 1.0)
                })
                .collect();
            found.sort_unstable_by(f64::total_cmp);
            // The tail of a likelihood ratio is close to exponential.
            let from = NULLS - NULLS / 10;
            let base = found[from];
            let mean = found[from..].iter().map(|value| value - base).sum::<f64>() / (NULLS - from) as f64;
            base + mean.max(1.0) * (0.1 / chance).ln().max(0.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(count: usize, draws: &mut Draws) -> Vec<f64> {
        (0..count).map(|_| draws.normal()).collect()
    }

    #[test]
    fn the_level_is_that_of_most() {
        let mut draws = Draws(3);
        let mut values: Vec<f64> = normals(100, &mut draws).iter().map(|value| 5e7 + 1e6 * value).collect();
        values.extend([9e7; 60]);
        let found = level(&mut values);
        assert!((found.center - 5e7).abs() < 4e5 && (found.spread - 1e6).abs() < 3e5, "{found:?}");
    }

    #[test]
    fn noise_alone_seldom_exceeds_the_threshold_and_an_excess_does() {
        let mut draws = Draws(5);
        let shape = Shape::new(&[normals(2_000, &mut draws)], false);
        let at = Threshold::new(0.001).of(30, 60, &shape);
        let above = (0..400).filter(|_| ratio(&normals(30, &mut draws), &shape, 1.0) > at).count();
        assert!(above <= 2, "{above} above {at}");
        let mut now_and_then = normals(30, &mut draws);
        (0..10).for_each(|at| now_and_then[at * 3] += 4.0);
        assert!(ratio(&now_and_then, &shape, 1.0) > at);
        let always: Vec<f64> = normals(30, &mut draws).iter().map(|value| value + 1.5).collect();
        assert!(ratio(&always, &shape, 1.0) > at);
    }

    #[test]
    fn one_long_time_is_as_clear_where_times_are_alike_from_step_to_step() {
        let mut draws = Draws(9);
        let shape = Shape::new(&[normals(2_000, &mut draws)], false);
        let mut once = normals(30, &mut draws);
        once[7] = 30.0;
        let always: Vec<f64> = normals(30, &mut draws).iter().map(|value| value + 1.5).collect();
        assert!(ratio(&once, &shape, 4.0) > 0.9 * ratio(&once, &shape, 1.0));
        assert!(ratio(&always, &shape, 4.0) < 0.5 * ratio(&always, &shape, 1.0));
    }

    #[test]
    fn far_times_of_peers_say_how_far_noise_reaches() {
        let mut draws = Draws(13);
        let mut ranks: Vec<Vec<f64>> = (0..8).map(|_| normals(200, &mut draws)).collect();
        ranks.iter_mut().for_each(|rank| rank[3] = CLEAN + 1.5 * draws.exponential());
        let shape = Shape::new(&ranks, false);
        let (mut far, mut beyond) = (0, 0);
        for _ in 0..40_000 {
            let one = shape.draw(&mut draws);
            far += usize::from(one > CLEAN);
            beyond += usize::from(one > 4.0 * CLEAN);
        }
        assert!((100..400).contains(&far) && beyond <= 2, "{far} far, {beyond} beyond");
        let mut once = normals(30, &mut draws);
        once[7] = 30.0;
        assert!(ratio(&once, &shape, 1.0) > Threshold::new(1e-5).of(30, 200, &shape));
    }
}
