//! The interference law: how much of a node's compute rate its transfers leave.
//!
//! Source: interference-aware-scheduling, section 3.1. Its formula for the interference of sending is misprinted
//! (E0-1). The corrected form is the default; the printed one is available as [`Formula::Literal`].

use serde::Deserialize;

use crate::error::{ModelError, at_least_zero};

/// Form of the paper's formula for the interference of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// `(1 - ir_receive RR - C_sr / C) / SR`: exact at every measured point.
    #[default]
    Corrected,
    /// As printed: `(1 - (RR C - C_r) / (MR C) - C_sr / C) / SR`, whose units do not match.
    Literal,
}

/// A node's compute rate while it receives and does not send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiving {
    /// MB/s received (MR^n of the paper).
    pub receive_mb_per_s: f64,
    /// Compute rate meanwhile, 1/s (C_r^n).
    pub compute_per_s: f64,
}

/// A node's compute rate while it sends to one child and, below the root, receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sending {
    /// MB/s sent to the child (SR(i) of the paper).
    pub send_mb_per_s: f64,
    /// MB/s received meanwhile (RR(i)); 0 at the root.
    pub receive_mb_per_s: f64,
    /// Compute rate meanwhile, 1/s (C_sr^n(i)).
    pub compute_per_s: f64,
}

/// The law of one node: its compute rate at any combination of transfer rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Compute rate without transfers, 1/s.
    pub compute_per_s: f64,
    /// Fraction lost per MB/s received, s/MB.
    pub ir_receive_s_per_mb: f64,
    /// Fraction lost per MB/s sent to each child, s/MB.
    pub ir_send_s_per_mb: Vec<f64>,
}

impl Law {
    /// Fits the law through k + 2 measured points: alone, receiving, and sending to each of k children.
    ///
    /// With the corrected formula the law is exact at all of them. At the root, `receiving` is `None`.
    ///
    /// # Errors
    /// A rate is negative, not finite, or 0 where the formula divides by it.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::law::{Formula, Law, Receiving, Sending};
    /// let receiving = Receiving { receive_mb_per_s: 11.0, compute_per_s: 4.8 };
    /// let sending = Sending { send_mb_per_s: 10.0, receive_mb_per_s: 6.0, compute_per_s: 3.6 };
    /// let law = Law::through(9.0, Some(receiving), &[sending], Formula::Corrected)?;
    /// assert!((law.compute_rate(6.0, &[10.0]) - 3.6).abs() < 1e-12);
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn through(
        compute_per_s: f64,
        receiving: Option<Receiving>,
        sending: &[Sending],
        formula: Formula,
    ) -> Result<Self, ModelError> {
        let alone = at_least_zero(|| "compute_per_s".into(), compute_per_s, "1/s", true)?;
        let (ir_receive, most, while_receiving) = match receiving {
            None => (0.0, f64::INFINITY, alone),
            Some(point) => {
                let field = |name: &str| format!("receiving.{name}");
                let most = at_least_zero(|| field("receive_mb_per_s"), point.receive_mb_per_s, "MB/s", true)?;
                let rate = at_least_zero(|| field("compute_per_s"), point.compute_per_s, "1/s", false)?;
                ((alone - rate) / alone / most, most, rate)
            }
        };
        let mut ir_send = Vec::with_capacity(sending.len());
        for (at, point) in sending.iter().enumerate() {
            let field = |name: &str| format!("sending[{at}].{name}");
            let send = at_least_zero(|| field("send_mb_per_s"), point.send_mb_per_s, "MB/s", true)?;
            let receive = at_least_zero(|| field("receive_mb_per_s"), point.receive_mb_per_s, "MB/s", false)?;
            let rate = at_least_zero(|| field("compute_per_s"), point.compute_per_s, "1/s", false)?;
            if receiving.is_none() && receive > 0.0 {
                let sentence = format!("is {receive} MB/s; it must be 0 where no receiving point is given");
                return Err(ModelError::argument(field("receive_mb_per_s"), sentence));
            }
            let lost_to_receiving = match formula {
                Formula::Corrected => ir_receive * receive,
                Formula::Literal => (receive * alone - while_receiving) / (most * alone),
            };
            ir_send.push((1.0 - lost_to_receiving - rate / alone) / send);
        }
        Ok(Self { compute_per_s: alone, ir_receive_s_per_mb: ir_receive, ir_send_s_per_mb: ir_send })
    }

    /// Returns the compute rate, 1/s, while receiving and sending to each child at these rates. Negative if the
    /// transfers would take more than the whole node.
    ///
    /// Rates beyond the law's children are ignored.
    #[must_use]
    pub fn compute_rate(&self, receive_mb_per_s: f64, send_mb_per_s: &[f64]) -> f64 {
        let sent: f64 = self.ir_send_s_per_mb.iter().zip(send_mb_per_s).map(|(ir, rate)| ir * rate).sum();
        self.compute_per_s * (1.0 - self.ir_receive_s_per_mb * receive_mb_per_s - sent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RECEIVING: Receiving = Receiving { receive_mb_per_s: 11.0, compute_per_s: 4.8 };
    const SENDING: Sending = Sending { send_mb_per_s: 10.0, receive_mb_per_s: 6.0, compute_per_s: 3.6 };

    #[test]
    fn the_printed_formula_misses_its_own_point_and_the_corrected_one_meets_it() {
        // E0-1: the printed form gives 0.0103 and predicts 5.78 where 3.6 was measured.
        let printed = Law::through(9.0, Some(RECEIVING), &[SENDING], Formula::Literal).unwrap();
        assert!((printed.ir_send_s_per_mb[0] - 0.0103).abs() < 5e-5);
        assert!((printed.compute_rate(6.0, &[10.0]) - 5.78).abs() < 5e-3);
        let corrected = Law::through(9.0, Some(RECEIVING), &[SENDING], Formula::Corrected).unwrap();
        assert!((corrected.ir_send_s_per_mb[0] - 0.0345).abs() < 5e-5);
        assert!((corrected.compute_rate(6.0, &[10.0]) - 3.6).abs() < 1e-12);
    }

    #[test]
    fn a_root_that_receives_is_refused() {
        let error = Law::through(9.0, None, &[SENDING], Formula::Corrected).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sending[0].receive_mb_per_s is 6 MB/s; it must be 0 where no receiving point is given"
        );
    }

    proptest! {
        #[test]
        fn the_corrected_law_is_exact_at_all_k_plus_2_points(
            alone in 0.1..100.0f64,
            share in 0.0..1.0f64,
            most in 0.1..1000.0f64,
            children in prop::collection::vec((0.1..1000.0f64, 0.0..1000.0f64, 0.0..1.0f64), 0..6),
        ) {
            let receiving = Receiving { receive_mb_per_s: most, compute_per_s: alone * share };
            let sending: Vec<Sending> = children
                .iter()
                .map(|&(send, receive, share)| Sending {
                    send_mb_per_s: send,
                    receive_mb_per_s: receive,
                    compute_per_s: alone * share,
                })
                .collect();
            let law = Law::through(alone, Some(receiving), &sending, Formula::Corrected).unwrap();
            let idle = vec![0.0; sending.len()];
            let near = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-12 * alone * (1.0 + scale);
            prop_assert_eq!(law.compute_rate(0.0, &idle), alone);
            prop_assert!(near(law.compute_rate(most, &idle), receiving.compute_per_s, 1.0));
            for (at, point) in sending.iter().enumerate() {
                let mut rates = idle.clone();
                rates[at] = point.send_mb_per_s;
                let scale = law.ir_receive_s_per_mb * point.receive_mb_per_s;
                prop_assert!(near(law.compute_rate(point.receive_mb_per_s, &rates), point.compute_per_s, scale));
            }
        }
    }
}
