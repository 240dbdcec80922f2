//! How much longer than usual each time of a rank is: draws from all that its times leave open.
//!
//! A time is the usual one, a shift of this rank, an excess and noise. The shift is what is not known about the usual time
//! of a healthy rank. An excess is 0 or has one of a few lengths, as many as the times show: a Dirichlet process whose base
//! has a mass at 0 (Kim, Dahl, Vannucci 2009). Gibbs' sampler draws from the posterior (Neal 2000, algorithm 8 with one
//! auxiliary length). Where times that follow each other are alike, the likelihood of a length or shift is flattened by
//! as much (Miller, Dunson 2019).

use super::noise::{Draws, Level, Shape};

/// Prior weight of a length not seen yet, and of no excess, in times.
const NEW: f64 = 0.5;
/// Sweeps before the first draw, and between draws.
const FIRST: usize = 200;
const BETWEEN: usize = 10;
/// Times this many spreads above the center begin as an excess.
const BEGINS: f64 = 2.0;

/// A series of times with an excess.
pub struct Excess<'a> {
    /// Times, ns from what is usual at their step.
    pub values: &'a [f64],
    pub level: Level,
    /// Standard deviation of the shift of a healthy rank, ns.
    pub error: f64,
    /// Only longer times are an excess.
    pub positive: bool,
    /// Number of steps that say as much as one independent step.
    pub block: f64,
}

struct Length {
    /// In spreads.
    at: f64,
    count: usize,
}

/// Draws of the excesses of a series.
pub struct Sampler<'a> {
    shape: &'a Shape,
    /// In spreads from the center.
    values: Vec<f64>,
    spread: f64,
    /// Times that describe the spread.
    count: f64,
    error: f64,
    block: f64,
    positive: bool,
    /// Range of excesses that are possible, in spreads.
    reach: f64,
    /// Spread of the noise against the estimate, and shift, in spreads.
    scale: f64,
    shift: f64,
    /// Integral of the flattened likelihood of one time, in spreads.
    width: f64,
    /// The first is no excess. Those without times are used again.
    lengths: Vec<Length>,
    of: Vec<usize>,
    upto: Vec<f64>,
}

impl<'a> Sampler<'a> {
    #[must_use]
    pub fn new(excess: &Excess<'_>, shape: &'a Shape, draws: &mut Draws) -> Self {
        let level = excess.level;
        let values: Vec<f64> = excess.values.iter().map(|value| (value - level.center) / level.spread).collect();
        let of: Vec<usize> = values.iter().map(|&value| usize::from(value > BEGINS)).collect();
        let long = of.iter().sum::<usize>();
        let sum: f64 = values.iter().filter(|&&value| value > BEGINS).sum();
        let reach = values.iter().copied().fold(4.0, f64::max) - values.iter().copied().fold(0.0, f64::min);
        let mut sampler = Self {
            shape,
            spread: level.spread,
            count: level.count.max(2) as f64,
            error: excess.error / level.spread,
            block: excess.block.max(1.0),
            positive: excess.positive,
            reach,
            scale: 1.0,
            width: shape.width(excess.block.max(1.0)),
            shift: 0.0,
            lengths: vec![
                Length { at: 0.0, count: values.len() - long },
                Length { at: sum / long.max(1) as f64, count: long },
            ],
            of,
            upto: Vec::new(),
            values,
        };
        (0..FIRST).for_each(|_| sampler.sweep(draws));
        sampler
    }

    /// Draws the excess of each time, ns.
    pub fn draw(&mut self, draws: &mut Draws) -> Vec<f64> {
        (0..BETWEEN).for_each(|_| self.sweep(draws));
        self.of.iter().map(|&of| self.lengths[of].at * self.spread).collect()
    }

    fn sweep(&mut self, draws: &mut Draws) {
        // Only the peers' times say how wide the noise is.
        self.scale = (draws.normal() / (2.0 * self.count).sqrt()).exp();
        for at in 0..self.values.len() {
            self.assign(at, draws);
        }
        self.move_shift(draws);
        self.move_lengths(draws);
    }

    /// Draws the length of one excess, given all others.
    fn assign(&mut self, at: usize, draws: &mut Draws) {
        self.lengths[self.of[at]].count -= 1;
        let value = self.values[at] - self.shift;
        self.upto.clear();
        let mut whole = 0.0;
        for (number, length) in self.lengths.iter().enumerate() {
            let prior = length.count as f64 + if number == 0 { NEW } else { 0.0 };
            if prior > 0.0 {
                whole += prior * self.likelihood(value - length.at);
            }
            self.upto.push(whole);
        }
        if !self.positive || value > 0.0 {
            whole += NEW * self.scale * self.width / self.reach;
        }
        let picked = draws.unit() * whole;
        let of = self.upto.iter().position(|&upto| picked < upto).unwrap_or_else(|| {
            let noise = self.scale * self.block.sqrt() * self.shape.draw_usual(draws);
            let at = if self.positive && noise >= value { value.max(0.0) } else { value - noise };
            let free = self.lengths.iter().skip(1).position(|length| length.count == 0);
            let number = free.map_or(self.lengths.len(), |free| free + 1);
            if free.is_none() {
                self.lengths.push(Length { at, count: 0 });
            }
            self.lengths[number].at = at;
            number
        });
        self.lengths[of].count += 1;
        self.of[at] = of;
    }

    /// Returns the likelihood of one time. One of several that are alike says less.
    fn likelihood(&self, rest: f64) -> f64 {
        let dense = self.shape.at(rest / self.scale);
        if self.block > 1.0 { dense.powf(1.0 / self.block) } else { dense }
    }

    fn log_likelihood(&self, rest: f64) -> f64 {
        self.shape.at(rest / self.scale).ln() / self.block
    }

    /// Moves the shift, and all lengths against it: only times without an excess say anything about it.
    fn move_shift(&mut self, draws: &mut Draws) {
        if self.error <= 0.0 {
            return;
        }
        let count = self.lengths[0].count as f64;
        let even = || self.values.iter().zip(&self.of).filter(|(_, of)| **of == 0).map(|(value, _)| *value);
        let known = count / (self.block * self.scale * self.scale);
        let variance = 1.0 / (self.error.powi(-2) + known);
        let middle = if count > 0.0 { variance * known * even().sum::<f64>() / count } else { 0.0 };
        let next = middle + variance.sqrt() * draws.normal();
        let proposed = |shift: f64| -0.5 * (shift - middle).powi(2) / variance;
        let prior = |shift: f64| -0.5 * (shift / self.error).powi(2);
        let more: f64 =
            even().map(|value| self.log_likelihood(value - next) - self.log_likelihood(value - self.shift)).sum();
        let chance = more + prior(next) - prior(self.shift) + proposed(self.shift) - proposed(next);
        let by = next - self.shift;
        let possible = !self.positive || self.lengths.iter().skip(1).all(|length| length.count == 0 || length.at >= by);
        if possible && draws.unit().ln() < chance {
            self.shift = next;
            self.lengths.iter_mut().skip(1).for_each(|length| length.at -= by);
        }
    }

    /// Moves each length, given the times that have it.
    fn move_lengths(&mut self, draws: &mut Draws) {
        let mut sums = vec![0.0; self.lengths.len()];
        for (value, &of) in self.values.iter().zip(&self.of) {
            sums[of] += value - self.shift;
        }
        let next: Vec<(f64, f64)> = (self.lengths.iter().zip(&sums))
            .map(|(length, sum)| {
                let count = length.count.max(1) as f64;
                let (middle, spread) = (sum / count, self.scale * (self.block / count).sqrt());
                let next = middle + spread * draws.normal();
                let proposed = |at: f64| -0.5 * ((at - middle) / spread).powi(2);
                (next, proposed(length.at) - proposed(next))
            })
            .collect();
        let mut more: Vec<f64> = next.iter().map(|next| next.1).collect();
        for (value, &of) in self.values.iter().zip(&self.of).filter(|(_, of)| **of > 0) {
            let rest = value - self.shift;
            more[of] += self.log_likelihood(rest - next[of].0) - self.log_likelihood(rest - self.lengths[of].at);
        }
        for ((length, (next, _)), more) in self.lengths.iter_mut().zip(next).zip(more).skip(1) {
            if length.count > 0 && (!self.positive || next > 0.0) && draws.unit().ln() < more {
                length.at = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::noise::level;
    use super::*;

    fn normals(count: usize, draws: &mut Draws) -> Vec<f64> {
        (0..count).map(|_| draws.normal()).collect()
    }

    const TRIALS: usize = 400;

    /// Returns of how many series of `steps` times the interval of the summed excess covers the truth.
    fn covered(steps: usize, peers: usize, added: impl Fn(usize) -> f64) -> usize {
        let mut draws = Draws(11);
        let shape = Shape::new(&[normals(2_000, &mut draws)], false);
        let truth: f64 = (0..steps).map(&added).sum();
        let mut inside = 0;
        for _ in 0..TRIALS {
            let mut others: Vec<f64> = normals(steps * peers, &mut draws).iter().map(|value| 1e6 * value).collect();
            let level = level(&mut others);
            let values: Vec<f64> = (0..steps).map(|at| 1e6 * (draws.normal() + added(at))).collect();
            let error = level.spread / (others.len() as f64).sqrt();
            let excess = Excess { values: &values, level, error, positive: false, block: 1.0 };
            let mut sampler = Sampler::new(&excess, &shape, &mut draws);
            let sums: Vec<f64> = (0..64).map(|_| sampler.draw(&mut draws).iter().sum::<f64>() * 1e-6).collect();
            let mean = sums.iter().sum::<f64>() / 64.0;
            let spread = (sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / 63.0).sqrt();
            inside += usize::from((mean - truth).abs() <= 2.0 * spread);
        }
        inside
    }

    #[test]
    fn intervals_of_the_sum_hold_the_truth() {
        for peers in [2, 6] {
            let always = covered(20, peers, |_| 4.0);
            assert!((368..=TRIALS).contains(&always), "always, {peers} peers: {always} of {TRIALS}");
            let third = covered(30, peers, |at| if at % 3 == 0 { 6.0 } else { 0.0 });
            assert!((368..=TRIALS).contains(&third), "each third, {peers} peers: {third} of {TRIALS}");
        }
    }

    #[test]
    fn drawn_excesses_are_those_that_were_added() {
        let mut draws = Draws(7);
        let shape = Shape::new(&[normals(2_000, &mut draws)], false);
        let added = |at: usize| if at % 3 == 0 { 8e6 } else { 0.0 };
        let values: Vec<f64> =
            normals(60, &mut draws).iter().enumerate().map(|(at, value)| 1e6 * value + added(at)).collect();
        let level = Level { center: 0.0, spread: 1e6, count: 200 };
        let excess = Excess { values: &values, level, error: 7e4, positive: false, block: 1.0 };
        let mut sampler = Sampler::new(&excess, &shape, &mut draws);
        let mut sum = 0.0;
        for _ in 0..20 {
            sum += sampler.draw(&mut draws).iter().sum::<f64>() / 20.0;
        }
        assert!((sum / 1.6e8 - 1.0).abs() < 0.05, "{sum}");
    }
}
