//! Change detection in a stream of observations: a two-sided CUSUM over deviations in standard deviations (Page 1954).
//!
//! The standard deviation is estimated from the same deviations. Normal noise gives one false alarm in about 50,000
//! observations (Siegmund's approximation). A change of four standard deviations or more is detected after two
//! observations.

/// Cap on a deviation, in standard deviations, so that one outlier is not a change.
const CLIP: f64 = 4.0;
/// Deviations up to this many standard deviations are noise: half of the smallest change to detect.
const SLACK: f64 = 1.0;
/// Sum at which a change is detected.
const ALARM: f64 = 5.0;
/// An observation that deviates by more standard deviations than this is ignored unless others follow it.
const ODD: f64 = 3.0;
/// Initial standard deviation of a relative deviation.
const FIRST_SD: f64 = 0.05;
/// Decay of a squared deviation's weight per observation. The half-life is 64, so the standard deviation is known to
/// about a tenth; an uncertain one would cause false alarms.
const FORGET: f64 = 0.989_228_013_193_975_5;
/// Lower bound on the standard deviation of an observation, because of timers, chunks and whole tasks.
const LEAST_SD: f64 = 0.01;

/// Deviations to one side. The mean since the change weights each deviation by its evidence for a change, because the
/// sum also contains noise from just before it.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    sum: f64,
    weighted: f64,
    weight: f64,
}

impl Side {
    /// Returns the mean deviation and the effective number of observations once a change is detected.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Usual,
    /// Too far off to learn from: an outlier, or the start of a change.
    Odd,
    /// A change: the last `count` observations deviate by `mean`.
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
    /// Relative standard deviation of one observation.
    pub fn sd(&self) -> f64 {
        self.variance.sqrt().max(LEAST_SD)
    }

    /// Classifies an observation by its deviation from the expected value (difference of logarithms). Detection
    /// restarts after a change.
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
        // The standard deviation is itself estimated, which raises the rate a few times above the theory's.
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
