//! Estimate of a rate: an exponentially weighted mean of logarithms, which is reset when the rate changes.

use crosswind_schema::run::ObservedRate;

use super::change::{Change, Verdict};

/// Decay of an observation's weight per observation. The half-life is 16: the mean is known to a quarter of one
/// observation's deviation, and a drift is followed within a few half-lives. Steps need no decay: see `change`.
pub(super) const FORGET: f64 = 0.957_603_280_698_573_6;
/// Factor by which a lower bound must exceed the estimate to count as an observation.
const ABOVE: f64 = 1.02;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Standard deviation, in the same unit.
    pub sd: f64,
    /// Number of observations since the last change.
    pub observations: u64,
}

impl Estimate {
    /// Pairs the estimate with the planned value. `None` if nothing was observed.
    #[must_use]
    pub fn beside(self, planned: Option<f64>) -> Option<ObservedRate> {
        let Self { value: seen, sd, observations } = self;
        (observations > 0).then_some(ObservedRate { planned, seen, sd, observations })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Rate {
    log: f64,
    /// Weight of all observations. The initial value weighs as much as one.
    weight: f64,
    observations: u64,
    change: Change,
}

impl Rate {
    /// Starts from the rate in the platform's file. Infinite or not positive: unknown.
    pub fn known(rate: f64) -> Self {
        let known = rate.is_finite() && rate > 0.0;
        let (log, weight) = if known { (libm::log(rate), 1.0) } else { (f64::INFINITY, 0.0) };
        Self { log, weight, observations: 0, change: Change::default() }
    }

    pub fn value(&self) -> f64 {
        libm::exp(self.log)
    }

    /// Takes an observation of the rate. Ignores one that is not finite and positive.
    pub fn observe(&mut self, rate: f64) {
        if !(rate.is_finite() && rate > 0.0) {
            return;
        }
        let log = libm::log(rate);
        self.observations += 1;
        if self.weight == 0.0 {
            (self.log, self.weight) = (log, 1.0);
            return;
        }
        match self.change.observe(log - self.log) {
            Verdict::Usual => {
                self.weight = self.weight * FORGET + 1.0;
                self.log += (log - self.log) / self.weight;
            }
            Verdict::Odd => {}
            Verdict::Changed { mean, count } => {
                (self.log, self.weight, self.observations) = (self.log + mean, count, count.round() as u64);
            }
        }
    }

    /// Takes a lower bound on the rate.
    pub fn observe_at_least(&mut self, rate: f64) {
        if rate > self.value() * ABOVE {
            self.observe(rate);
        }
    }

    pub fn estimate(&self) -> Estimate {
        let value = self.value();
        let sd = value * self.change.sd() / self.weight.max(1.0).sqrt();
        Estimate { value, sd, observations: self.observations }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Deterministic normal noise: sums of twelve uniforms from a 64-bit linear congruential generator.
    pub struct Noise(u64);

    impl Noise {
        pub fn new(seed: u64) -> Self {
            Self(seed)
        }

        pub fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        pub fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    #[test]
    fn half_of_an_observation_is_left_after_sixteen() {
        assert!((FORGET.powi(16) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_known_rate_is_found_within_its_uncertainty_whatever_the_file_says() {
        for said in [10.0, 3.0, 100.0, f64::INFINITY] {
            for sd in [0.0, 0.02, 0.1] {
                let (mut noise, mut within) = (Noise::new(3), 0);
                for _ in 0..200 {
                    let mut rate = Rate::known(said);
                    for _ in 0..60 {
                        rate.observe(10.0 * (sd * noise.normal()).exp());
                    }
                    let Estimate { value, sd, observations } = rate.estimate();
                    assert!(observations > 0);
                    within += u32::from((value - 10.0).abs() <= 3.0 * sd);
                }
                assert!(within >= 195, "{within} of 200, said {said}, sd {sd}");
            }
        }
    }

    #[test]
    fn a_step_to_a_third_is_followed_within_three_observations() {
        for sd in [0.0, 0.02, 0.1] {
            let mut noise = Noise::new(11);
            let mut rate = Rate::known(9.0);
            for _ in 0..50 {
                rate.observe(9.0 * (sd * noise.normal()).exp());
            }
            for _ in 0..3 {
                rate.observe(3.0 * (sd * noise.normal()).exp());
            }
            assert!((rate.value() / 3.0).ln().abs() < 0.05 + 2.0 * sd, "{} with noise {sd}", rate.value());
        }
    }

    #[test]
    fn a_bound_from_below_only_raises() {
        let mut rate = Rate::known(9.0);
        for _ in 0..50 {
            rate.observe_at_least(2.0);
            rate.observe_at_least(9.1);
        }
        assert!((rate.value() - 9.0).abs() < 1e-9);
        for _ in 0..5 {
            rate.observe_at_least(20.0);
        }
        assert!((rate.value() - 20.0).abs() < 1.0);
    }
}
