//! How long a piece of computing takes on ranks that are not slow, and how much longer than that a rank took.
//!
//! Each time of a rank is noise plus an excess. The noise is known from the rank's peers. The excess is 0, always the same,
//! or now and then large. A likelihood ratio says whether there is an excess at all; its level under noise alone is found
//! by drawing noise. Where there is one, its distribution is estimated (nonparametric maximum likelihood, by EM), and
//! plausible excesses of each time are drawn from it.

use std::collections::BTreeMap;

use crosswind_program::random::{GOLDEN, mixed};

/// Spread of a normal distribution whose shorter half is 2 * 0.6745 spreads wide.
const HALF: f64 = 0.6745;
/// Beyond this many spreads a time does not describe noise.
const CLEAN: f64 = 6.0;
/// Share and spread of the wide part of the noise: rare longer times are nothing special.
const WIDE: f64 = 0.01;
const WIDE_SPREAD: f64 = 2.0;
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

const GRID: usize = 512;
const REACH: f64 = 8.0;

/// The shape of noise, in spreads from its center.
pub struct Shape {
    density: Vec<f64>,
    /// Standardised times from which noise is drawn.
    drawn: Vec<f64>,
    band: f64,
}

impl Shape {
    /// Estimates the shape from standardised times.
    #[must_use]
    pub fn new(mut drawn: Vec<f64>) -> Self {
        drawn.retain(|value| value.abs() <= CLEAN);
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
        let mut density = vec![0.0; GRID];
        for (at, density) in density.iter_mut().enumerate() {
            let place = (at as f64 / (GRID - 1) as f64 * 2.0 - 1.0) * REACH;
            let kernel = |value: &f64| (-0.5 * ((place - shrink * value) / (shrink * band)).powi(2)).exp();
            let sum: f64 = drawn.iter().map(kernel).sum();
            *density = sum / (drawn.len() as f64 * shrink * band * std::f64::consts::TAU.sqrt());
        }
        Self { density, drawn, band }
    }

    /// Returns the density at a place, spreads from the center.
    #[must_use]
    pub fn at(&self, place: f64) -> f64 {
        let wide = WIDE * (-(place / WIDE_SPREAD).abs()).exp() / (2.0 * WIDE_SPREAD);
        let spot = (place / REACH + 1.0) / 2.0 * (GRID - 1) as f64;
        if !(0.0..(GRID - 1) as f64).contains(&spot) {
            return wide.max(1e-290);
        }
        let (low, part) = (spot as usize, spot.fract());
        let dense = self.density[low] * (1.0 - part) + self.density[low + 1] * part;
        (1.0 - WIDE) * dense + wide
    }

    fn draw(&self, draws: &mut Draws) -> f64 {
        let shrink = 1.0 / (1.0 + self.band * self.band).sqrt();
        shrink * (self.drawn[draws.below(self.drawn.len())] + self.band * draws.normal())
    }
}

/// Returns the likelihood ratio (a logarithm) of an excess, over excesses that are always there, or now and then, of one
/// length or of any. `values`: spreads from the center of the noise.
#[must_use]
pub fn ratio(values: &[f64], shape: &Shape) -> f64 {
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
        let moved: Vec<f64> = values.iter().map(|&value| shape.at(value - excess)).collect();
        for rate in rates {
            let sum: f64 =
                noise.iter().zip(&moved).map(|(none, some)| ((1.0 - rate) * none + rate * some).ln() - none.ln()).sum();
            best = best.max(sum);
        }
    }
    let slab = 1.0 / highest.max(1.0);
    for rate in &rates[1..] {
        let of = |(&value, none): (&f64, &f64)| {
            let some = if value > 0.0 { slab } else { 0.0 };
            ((1.0 - rate) * none + rate * some).ln() - none.ln()
        };
        best = best.max(values.iter().zip(&noise).map(of).sum());
    }
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
                    ratio(&values, shape)
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

/// The excess of a series of times.
pub struct Excess<'a> {
    /// Times, ns from what is usual at their step.
    pub values: &'a [f64],
    pub level: Level,
    /// Only longer times are an excess.
    pub positive: bool,
    /// Number of consecutive steps whose times are correlated.
    pub block: usize,
}

/// Rounds of the EM algorithm.
const ROUNDS: usize = 120;
const ATOMS: usize = 40;

impl Excess<'_> {
    /// Draws plausible excesses of all times, ns.
    pub fn draw(&self, shape: &Shape, draws: &mut Draws) -> Vec<f64> {
        let count = self.values.len();
        let error = draws.normal() * (self.block as f64 / self.level.count.max(1) as f64).sqrt();
        let values: Vec<f64> =
            self.values.iter().map(|value| (value - self.level.center) / self.level.spread - error).collect();
        let mut atoms = values.clone();
        atoms.sort_unstable_by(f64::total_cmp);
        if count > ATOMS {
            atoms = (0..ATOMS).map(|at| atoms[at * (count - 1) / (ATOMS - 1)]).collect();
        }
        if self.positive {
            atoms.retain(|&atom| atom > 0.0);
        }
        atoms.push(0.0);
        let like: Vec<Vec<f64>> =
            values.iter().map(|value| atoms.iter().map(|atom| shape.at(value - atom)).collect()).collect();
        let mut weights: Vec<f64> = Vec::with_capacity(count);
        while weights.len() < count {
            let weight = draws.exponential();
            weights.extend(std::iter::repeat_n(weight, self.block.max(1).min(count - weights.len())));
        }
        let whole: f64 = weights.iter().sum();
        let mut chance = vec![0.5 / atoms.len() as f64; atoms.len()];
        if let Some(none) = chance.last_mut() {
            *none += 0.5;
        }
        let mut next = vec![0.0; atoms.len()];
        for _ in 0..ROUNDS {
            next.fill(0.0);
            for (like, weight) in like.iter().zip(&weights) {
                let sum: f64 = like.iter().zip(&chance).map(|(like, chance)| like * chance).sum();
                if sum > 0.0 {
                    for ((next, like), chance) in next.iter_mut().zip(like).zip(&chance) {
                        *next += weight / whole * like * chance / sum;
                    }
                }
            }
            std::mem::swap(&mut chance, &mut next);
        }
        // An excess is drawn from those of the other times, or is one of its own: then the noise is drawn.
        let reach = values.iter().copied().fold(4.0, f64::max) - values.iter().copied().fold(0.0, f64::min);
        let fresh = 1.0 / reach;
        let pick = |value: f64, like: &[f64], weight: f64, draws: &mut Draws| {
            let sum: f64 = like.iter().zip(&chance).map(|(like, chance)| like * chance).sum();
            let mine = |like: f64, chance: f64| if sum > 0.0 { weight / whole * like * chance / sum } else { 0.0 };
            let others = |(like, chance): (&f64, &f64)| like * (chance - mine(*like, *chance)).max(0.0);
            let alike: f64 = like.iter().zip(&chance).map(others).sum();
            let new = fresh / count as f64;
            let mut left = draws.unit() * (alike + new);
            for ((like, chance), atom) in like.iter().zip(&chance).zip(&atoms) {
                left -= others((like, chance));
                if left <= 0.0 {
                    return *atom;
                }
            }
            let excess = value - shape.draw(draws);
            if self.positive { excess.max(0.0) } else { excess }
        };
        let of = values.iter().zip(&like).zip(&weights);
        of.map(|((&value, like), &weight)| pick(value, like, weight, draws) * self.level.spread).collect()
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
        let shape = Shape::new(normals(2_000, &mut draws));
        let at = Threshold::new(0.001).of(30, 60, &shape);
        let above = (0..400).filter(|_| ratio(&normals(30, &mut draws), &shape) > at).count();
        assert!(above <= 2, "{above} above {at}");
        let mut now_and_then = normals(30, &mut draws);
        (0..10).for_each(|at| now_and_then[at * 3] += 4.0);
        assert!(ratio(&now_and_then, &shape) > at);
        let always: Vec<f64> = normals(30, &mut draws).iter().map(|value| value + 1.5).collect();
        assert!(ratio(&always, &shape) > at);
    }

    #[test]
    fn drawn_excesses_are_those_that_were_added() {
        let mut draws = Draws(7);
        let shape = Shape::new(normals(2_000, &mut draws));
        let added = |at: usize| if at % 3 == 0 { 8e6 } else { 0.0 };
        let values: Vec<f64> =
            normals(60, &mut draws).iter().enumerate().map(|(at, value)| 1e6 * value + added(at)).collect();
        let level = Level { center: 0.0, spread: 1e6, count: 200 };
        let excess = Excess { values: &values, level, positive: false, block: 1 };
        let mut sum = 0.0;
        for _ in 0..20 {
            sum += excess.draw(&shape, &mut draws).iter().sum::<f64>() / 20.0;
        }
        assert!((sum / 1.6e8 - 1.0).abs() < 0.05, "{sum}");
    }
}
