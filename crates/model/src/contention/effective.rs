//! The part of a link that several flows use while they congest it (the effective communication ratio, delta).
//!
//! Replaceable, because the printed formula contradicts what the paper states and measures (E4-1, E4-3). A model takes
//! any of these forms, including measured values (`crosswind fit contention`).

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, at_least_zero};

/// Maximum number of flows in a table.
const MOST_FLOWS: usize = 1_000_000;

/// The part of a link that n flows use, in one of several forms. n is at least 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EffectiveRatio {
    /// (2.2) as printed: `(n / gamma) (2^k - 1) / k` with `k = floor(log2(gamma / n))`. It rises with n and falls at
    /// powers of two (E4-1). Beyond half of gamma it is 0 / 0, which is rejected.
    Literal {
        /// gamma: capacity of the link.
        messages_per_s: f64,
    },
    /// The form that gives the paper's "analytic" 88 % (E4-3): the inverse ratio of (2.2) without its floor,
    /// `s(1) / s(n)` with `s(n) = (1 - n / W) / log2(W / n)`. It is 1 for one flow and falls with n. The figures
    /// require W = 256.
    Reconstructed {
        /// W: messages in flight when congestion begins, greater than 1.
        window_messages: f64,
    },
    /// Every other flow adds the same part of a message's latency: `1 / (1 + c (n - 1))`. Simpler, and with c = 0.1 as
    /// close to the paper's measurements (E4-3).
    LinearLatency {
        /// The coefficient c, at least 0.
        per_flow: f64,
    },
    /// A value for each number of flows, from 1 on. More flows than values are rejected.
    Table {
        /// Ratios, each of them above 0.
        ratios: Vec<f64>,
    },
    /// Measured values where available, and another form elsewhere.
    Fitted {
        /// (flows, ratio), each number of flows once.
        measured: Vec<(u32, f64)>,
        /// The form for other numbers of flows. Must not be a fitted form itself.
        elsewhere: Box<EffectiveRatio>,
    },
}

impl EffectiveRatio {
    /// Returns the ratio for `flows` flows.
    ///
    /// # Errors
    /// A parameter is out of range, `flows` is 0, or the form has no value for this many flows.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::contention::EffectiveRatio;
    /// let printed = EffectiveRatio::Literal { messages_per_s: 2480.0 };
    /// assert!((printed.of(1)? - 0.0750).abs() < 5e-5 && (printed.of(2)? - 0.0825).abs() < 5e-5);
    /// let meant = EffectiveRatio::Reconstructed { window_messages: 256.0 };
    /// assert!((meant.of(2)? - 0.878).abs() < 5e-4);
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn of(&self, flows: u32) -> Result<f64, ModelError> {
        self.check()?;
        if flows == 0 {
            return Err(ModelError::argument("flows", "is 0; it must be at least 1"));
        }
        let n = f64::from(flows);
        let too_many = |sentence: String| Err(ModelError::argument("flows", format!("is {flows}; {sentence}")));
        match self {
            Self::Literal { messages_per_s } => {
                let doublings = (messages_per_s / n).log2().floor();
                if doublings < 1.0 {
                    let half = format!("{}", messages_per_s / 2.0);
                    return too_many(format!(
                        "the printed form is 0 / 0 beyond half of messages_per_s, which is {half}"
                    ));
                }
                Ok(n / messages_per_s * (doublings.exp2() - 1.0) / doublings)
            }
            Self::Reconstructed { window_messages } => {
                if n > *window_messages {
                    return too_many(format!("it must be at most window_messages, {window_messages}"));
                }
                Ok(window_use(*window_messages, 1.0) / window_use(*window_messages, n))
            }
            Self::LinearLatency { per_flow } => Ok(1.0 / (1.0 + per_flow * (n - 1.0))),
            Self::Table { ratios } => match ratios.get(flows as usize - 1) {
                Some(&ratio) => Ok(ratio),
                None => too_many(format!("the table ends at {}", ratios.len())),
            },
            Self::Fitted { measured, elsewhere } => measured
                .iter()
                .find(|(at, _)| *at == flows)
                .map_or_else(|| elsewhere.of(flows), |&(_, ratio)| Ok(ratio)),
        }
    }

    /// Whether the ratio for `flows` flows was measured, not computed.
    #[must_use]
    pub fn is_measured(&self, flows: u32) -> bool {
        match self {
            Self::Fitted { measured, .. } => measured.iter().any(|(at, _)| *at == flows),
            Self::Table { ratios } => (1..=ratios.len()).contains(&(flows as usize)),
            _ => false,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), ModelError> {
        let positive = |field: &str, value: f64| at_least_zero(|| field.to_owned(), value, "", true).map(drop);
        match self {
            Self::Literal { messages_per_s } => positive("messages_per_s", *messages_per_s),
            Self::Reconstructed { window_messages } if *window_messages > 1.0 && window_messages.is_finite() => Ok(()),
            Self::Reconstructed { window_messages } => {
                let sentence = format!("is {window_messages}; it must be finite and greater than 1");
                Err(ModelError::argument("window_messages", sentence))
            }
            Self::LinearLatency { per_flow } => at_least_zero(|| "per_flow".into(), *per_flow, "", false).map(drop),
            Self::Table { ratios } => {
                if ratios.is_empty() || ratios.len() > MOST_FLOWS {
                    let sentence = format!("has {} values; it must have 1 to {MOST_FLOWS}", ratios.len());
                    return Err(ModelError::argument("ratios", sentence));
                }
                ratios.iter().enumerate().try_for_each(|(at, ratio)| positive(&format!("ratios[{at}]"), *ratio))
            }
            Self::Fitted { measured, elsewhere } => {
                if measured.len() > MOST_FLOWS {
                    let sentence = format!("has {} values; it must have at most {MOST_FLOWS}", measured.len());
                    return Err(ModelError::argument("measured", sentence));
                }
                for (at, (flows, ratio)) in measured.iter().enumerate() {
                    if *flows == 0 {
                        let sentence = "is 0 flows; it must be at least 1";
                        return Err(ModelError::argument(format!("measured[{at}]"), sentence));
                    }
                    positive(&format!("measured[{at}]"), *ratio)?;
                }
                if matches!(**elsewhere, Self::Fitted { .. }) {
                    return Err(ModelError::argument("elsewhere", "is a fitted form; it must be one of the others"));
                }
                elsewhere.check()
            }
        }
    }
}

/// Returns (2.2) without its floor: `(1 - n / W) / log2(W / n)`; at n = W its limit, ln 2.
fn window_use(window: f64, flows: f64) -> f64 {
    let doublings = (window / flows).log2();
    if doublings < 1e-9 { std::f64::consts::LN_2 } else { (1.0 - flows / window) / doublings }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(ratio: &EffectiveRatio, most: u32) -> Vec<f64> {
        (1..=most).map(|flows| ratio.of(flows).unwrap()).collect()
    }

    fn near(seen: &[f64], expected: &[f64], off: f64) {
        assert_eq!(seen.len(), expected.len());
        for (seen, expected) in seen.iter().zip(expected) {
            assert!((seen - expected).abs() <= off, "{seen} is not {expected}");
        }
    }

    #[test]
    fn the_printed_form_has_the_values_of_e4_1_and_mostly_rises() {
        let printed = EffectiveRatio::Literal { messages_per_s: 2480.0 };
        near(&values(&printed, 8), &[0.0750, 0.0825, 0.0687, 0.0916, 0.0643, 0.0771, 0.0900, 0.1028], 6e-5);
        let all = values(&printed, 1240);
        let falls: Vec<usize> = (2..=1240).filter(|&n| all[n - 1] < all[n - 2]).collect();
        // E4-1 lists n = 2, 4, ... as the last before each fall.
        assert_eq!(falls, [3, 5, 10, 20, 39, 78, 156, 311, 621]);
        assert_eq!(1239 - falls.len(), 1230);
        assert!((all[1239] - 0.5).abs() < 1e-12);
        assert!(printed.of(1241).is_err());
    }

    #[test]
    fn the_reconstructed_form_has_the_paper_s_analytic_values_and_falls() {
        let meant = EffectiveRatio::Reconstructed { window_messages: 256.0 };
        near(&values(&meant, 6), &[1.0, 0.878, 0.808, 0.759, 0.721, 0.690], 6e-4);
        assert!(values(&meant, 256).windows(2).all(|pair| pair[1] < pair[0]));
        assert!(meant.of(257).is_err());
    }

    #[test]
    fn linear_latency_has_the_values_of_e4_3() {
        let linear = EffectiveRatio::LinearLatency { per_flow: 0.1 };
        near(&values(&linear, 4), &[1.0, 0.909, 0.833, 0.769], 5e-4);
    }

    #[test]
    fn a_table_ends_and_a_fit_goes_on_with_its_form() {
        let table = EffectiveRatio::Table { ratios: vec![1.0, 0.9] };
        assert_eq!(table.of(2), Ok(0.9));
        assert_eq!(table.of(3).unwrap_err().to_string(), "flows is 3; the table ends at 2");
        let elsewhere = Box::new(EffectiveRatio::LinearLatency { per_flow: 0.1 });
        let fitted = EffectiveRatio::Fitted { measured: vec![(2, 0.9), (4, 0.7)], elsewhere };
        near(&values(&fitted, 5), &[1.0, 0.9, 1.0 / 1.2, 0.7, 1.0 / 1.4], 1e-12);
        assert!(fitted.is_measured(4) && !fitted.is_measured(3));
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        for (wrong, said) in [
            (EffectiveRatio::Literal { messages_per_s: 0.0 }, "messages_per_s"),
            (EffectiveRatio::Reconstructed { window_messages: 1.0 }, "window_messages is 1"),
            (EffectiveRatio::LinearLatency { per_flow: f64::NAN }, "per_flow is NaN"),
            (EffectiveRatio::Table { ratios: vec![] }, "ratios has 0 values"),
            (EffectiveRatio::Table { ratios: vec![1.0, 0.0] }, "ratios[1] is 0"),
        ] {
            let sentence = wrong.of(1).unwrap_err().to_string();
            assert!(sentence.contains(said), "{sentence}");
        }
        assert!(EffectiveRatio::LinearLatency { per_flow: 0.1 }.of(0).is_err());
    }
}
