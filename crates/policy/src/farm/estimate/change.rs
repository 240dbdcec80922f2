//! Has a stream of observations moved? A two-sided CUSUM over deviations in standard deviations (Page 1954).
//!
//! The standard deviation is learnt from the same deviations. On normal noise there is one false alarm in about 50,000
//! observations (Siegmund's approximation); a change of four standard deviations or more is known after two.

/// A deviation counts for at most so many standard deviations: one outlier is no change.
const CLIP: f64 = 4.0;
/// Deviations of up to so many standard deviations are noise: half of the smallest change that is looked for.
const SLACK: f64 = 1.0;
/// The sum at which it is a change.
const ALARM: f64 = 5.0;
/// An observation that is so many standard deviations off is learnt from only if others follow it.
const ODD: f64 = 3.0;
/// Standard deviation of a relative deviation before anything is known.
const FIRST_SD: f64 = 0.05;
/// What is left of a squared deviation's weight after one more: a half life of 64, so that the deviation is certain to a
/// tenth. One that is not, cries wolf.
const FORGET: f64 = 0.989_228_013_193_975_5;
/// Timers, chunks and whole tasks make any observation at least so uncertain.
const LEAST_SD: f64 = 0.01;

/// Deviations to one side. The mean since the change weighs each by what it says for it: the noise just before has a part
/// in the sum, too.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    sum: f64,
    weighted: f64,
    weight: f64,
}

impl Side {
    /// The mean deviation, and of how many, once it is a change.
    fn observe(&mut self, z: f64, deviation: f64) -> Option<(f64, f64)> {
        let weight = z.min(CLIP) - SLACK;
        self.sum += weight;
        if self.sum <= 0.0 {
            *self = Self::default();
            return None;
        }
        self.weighted += weight.max(0.0) * deviation;
        self.weight += weight.max(0.0);
        (self.sum > ALARM).then_some((self.weighted / self.weight, self.weight / (CLIP - SLACK)))
    }
}

/// What an observation is taken for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Usual,
    /// So far off that nothing is learnt from it: an outlier, or a change that will show.
    Odd,
    /// The last so many deviate by this mean: a change.
    Changed {
        mean: f64,
        count: f64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    variance: f64,
    up: Side,
    down: Side,
}

impl Default for Change {
    fn default() -> Self {
        Self { variance: FIRST_SD * FIRST_SD, up: Side::default(), down: Side::default() }
    }
}

impl Change {
    /// Standard deviation of one observation, relative.
    pub fn sd(&self) -> f64 {
        self.variance.sqrt().max(LEAST_SD)
    }

    /// An observation, as it deviates from what was expected (difference of logarithms). After a change the watch begins
    /// anew.
    pub fn observe(&mut self, deviation: f64) -> Verdict {
        let sd = self.sd();
        let z = deviation / sd;
        if let Some((mean, count)) = self.up.observe(z, deviation).or(self.down.observe(-z, deviation)) {
            (self.up, self.down) = (Side::default(), Side::default());
            return Verdict::Changed { mean, count };
        }
        let square = deviation.abs().min(CLIP * sd).powi(2);
        self.variance += (1.0 - FORGET) * (square - self.variance);
        if z.abs() > ODD { Verdict::Odd } else { Verdict::Usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::estimate::rate::tests::Noise;

    #[test]
    fn noise_is_seldom_taken_for_a_change_and_a_change_is_known_at_once() {
        let (mut noise, mut alarms) = (Noise::new(7), 0);
        const COUNT: u32 = 200_000;
        let mut change = Change::default();
        for _ in 0..COUNT {
            alarms += u32::from(matches!(change.observe(0.03 * noise.normal()), Verdict::Changed { .. }));
        }
        // The standard deviation is itself an estimate, which costs a factor of a few against the theory.
        assert!(alarms <= 40, "{alarms} false alarms in {COUNT} observations");
        assert!((change.sd() / 0.03 - 1.0).abs() < 0.4, "{}", change.sd());
        assert_eq!(change.observe(-1.1), Verdict::Odd);
        let verdict = change.observe(-1.1);
        assert!(
            matches!(verdict, Verdict::Changed { mean, count } if (mean + 1.1).abs() < 0.1 && count >= 2.0),
            "{verdict:?}"
        );
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut change = Change::default();
        for at in 0..1000 {
            let (deviation, verdict) = if at % 10 == 0 { (-2.0, Verdict::Odd) } else { (0.0, Verdict::Usual) };
            assert_eq!(change.observe(deviation), verdict, "{at}");
        }
    }
}
