//! Delay of a parallel job's messages when local flows share its links (the communication delay ratio, eta).
//!
//! `eta = (T - t) / t`, with T the time beside local flows and t the time without them. Two readings of t are kept
//! apart (E4-12): *managed*, as in the paper, where the job's own flows share each link without loss, and *unmanaged*,
//! where they incur the loss of n flows.

use serde::Deserialize;

use super::effective::EffectiveRatio;
use crate::error::{ModelError, at_least_zero};
pub use crate::law::Formula;

/// Flows and their rates, over links of equal capacity.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// gamma: capacity of each link, in one direction.
    pub link: f64,
    /// beta: rate that the parallel job wants to send from each host, in the unit of `link`.
    pub parallel: f64,
    /// alpha: rate that local users send from each sending host, in the same unit.
    pub local: &'a [f64],
    /// delta: the part of a congested link that n flows use.
    pub effective: &'a EffectiveRatio,
    pub formula: Formula,
}

/// Destination of the local flows of a many-to-one pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalTarget {
    /// The job's own target, as (3.5) implicitly assumes.
    #[default]
    Same,
    /// A separate host for each flow.
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Several hosts send to one.
    ManyToOne,
    /// One host sends to several, one after the other.
    OneToMany,
    /// Several hosts send, each to several, one after the other.
    EachToMany,
    /// All hosts send to all others.
    AllToAll,
}

/// A link with more demand than capacity. The forms then assume that flows get shares in proportion to their demand.
/// Their real shares depend on queues, which a simulation models.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturated {
    /// Name of the link: "output link of sender 2", "input link of the target".
    pub link: String,
    /// Total demand of the flows.
    pub wanted: f64,
    pub carries: f64,
}

/// Relative increase of the time of a job's messages due to local flows.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRatio {
    /// Relative to the time in which the job's own flows share links without loss (the paper's).
    pub over_managed: f64,
    /// Relative to the time in which the job's own flows incur the loss of n flows.
    pub over_unmanaged: f64,
    /// The first link that is saturated, if any is.
    pub saturated: Option<Saturated>,
}

impl DelayRatio {
    fn of(together: f64, managed: f64, unmanaged: f64, saturated: Option<Saturated>) -> Self {
        Self { over_managed: together / managed - 1.0, over_unmanaged: together / unmanaged - 1.0, saturated }
    }
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

impl Flows<'_> {
    fn check(&self) -> Result<(), ModelError> {
        at_least_zero(|| "link".into(), self.link, "of the rates' unit", true)?;
        at_least_zero(|| "parallel".into(), self.parallel, "of the rates' unit", true)?;
        if self.local.is_empty() {
            return Err(ModelError::argument("local", "is empty; it must have one rate for each sending host"));
        }
        for (at, &local) in self.local.iter().enumerate() {
            at_least_zero(|| format!("local[{at}]"), local, "of the rates' unit", false)?;
        }
        self.effective.check()
    }

    /// Evaluates the form of a pattern. `target`: destination of local flows, for many to one; `at_targets`: number of
    /// flows that arrive at each target of each sender at the same time, for each to many.
    ///
    /// # Errors
    /// A rate is out of range, or delta has no value for this many flows.
    pub fn of(&self, pattern: Pattern, target: LocalTarget, at_targets: &[Vec<u32>]) -> Result<DelayRatio, ModelError> {
        match pattern {
            Pattern::ManyToOne => self.many_to_one(target),
            Pattern::OneToMany => self.one_to_many(),
            Pattern::EachToMany => self.each_to_many(at_targets),
            Pattern::AllToAll => self.all_to_all(),
        }
    }

    /// Returns the first saturated link: senders' output links, then the input link of the target.
    fn saturated(&self, at_target: f64) -> Option<Saturated> {
        let output = |(at, local): (usize, &f64)| (format!("output link of sender {at}"), local + self.parallel);
        let mut links =
            self.local.iter().enumerate().map(output).chain([("input link of the target".to_owned(), at_target)]);
        let (link, wanted) = links.find(|(_, wanted)| *wanted > self.link)?;
        Some(Saturated { link, wanted, carries: self.link })
    }

    /// Returns the job's smallest share of the senders' output links. Without congestion, that is its demand.
    fn least_output_share(&self) -> Result<f64, ModelError> {
        let of_two = self.effective.of(2)?;
        let share = |&local: &f64| {
            let wanted = local + self.parallel;
            if wanted <= self.link {
                self.parallel
            } else if local == 0.0 {
                self.link
            } else {
                self.link * of_two * self.parallel / wanted
            }
        };
        Ok(self.local.iter().map(share).fold(f64::INFINITY, f64::min))
    }

    /// Evaluates the form for n hosts that send to one, (3.3) to (3.7).
    ///
    /// Printed: `sum(alpha) / (n delta(n) beta) + 1 / delta(n) - 1`, with or without congestion (it assumes
    /// `n beta >= gamma`), with all local flows into the same target, and ignoring the senders' output links (E4-12).
    /// Corrected: the slower of a sender's output link, `gamma delta(2) beta / (alpha_i + beta)`, and its share of the
    /// target's input link, `gamma delta(n) beta / (n beta + local flows into it)`; each only if its demand exceeds its
    /// capacity. Both agree if the printed assumptions hold and the input link is the slower one.
    ///
    /// # Errors
    /// A rate is out of range, or delta has no value for this many flows.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::contention::delay::{Flows, Formula, LocalTarget};
    /// use crosswind_model::contention::EffectiveRatio;
    /// let effective = EffectiveRatio::LinearLatency { per_flow: 0.1 };
    /// let flows = Flows { link: 2000.0, parallel: 800.0, local: &[200.0; 3], effective: &effective, formula: Formula::Corrected };
    /// assert!((flows.many_to_one(LocalTarget::Same)?.over_managed - 0.5).abs() < 1e-12);
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn many_to_one(&self, target: LocalTarget) -> Result<DelayRatio, ModelError> {
        self.check()?;
        let (count, sum) = (self.local.len() as f64, self.local.iter().sum::<f64>());
        let effective = self.effective.of(self.local.len() as u32)?;
        let own = count * self.parallel;
        let local_there = if target == LocalTarget::Same { sum } else { 0.0 };
        let saturated = self.saturated(own + local_there);
        if self.formula == Formula::Literal {
            // Times are relative to M / gamma.
            let (managed, unmanaged) = (count, count / effective);
            return Ok(DelayRatio::of((sum / self.parallel + count) / effective, managed, unmanaged, saturated));
        }
        let share = |wanted: f64, loss: f64| {
            if wanted > self.link { self.link * loss * self.parallel / wanted } else { self.parallel }
        };
        let together = share(own + local_there, effective).min(self.least_output_share()?);
        let (managed, unmanaged) = (share(own, 1.0), share(own, effective));
        Ok(DelayRatio::of(1.0 / together, 1.0 / managed, 1.0 / unmanaged, saturated))
    }

    /// Evaluates the form for one host that sends to several, one after the other, (3.8) to (3.11). `local` holds the
    /// one rate of that host.
    ///
    /// Printed: `(alpha + beta) / (gamma delta(2)) - 1`, which is negative when little is sent. Corrected (E4-11): 0 if
    /// the output link carries both.
    ///
    /// # Errors
    /// A rate is out of range, or `local` does not hold exactly one rate.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::contention::delay::{Flows, Formula};
    /// use crosswind_model::contention::EffectiveRatio;
    /// let effective = EffectiveRatio::LinearLatency { per_flow: 0.1 };
    /// let mut flows = Flows { link: 2000.0, parallel: 100.0, local: &[100.0], effective: &effective, formula: Formula::Literal };
    /// assert!((flows.one_to_many()?.over_managed + 0.89).abs() < 1e-9);
    /// flows.formula = Formula::Corrected;
    /// assert_eq!(flows.one_to_many()?.over_managed, 0.0);
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn one_to_many(&self) -> Result<DelayRatio, ModelError> {
        self.check()?;
        let [local] = self.local else {
            let sentence = format!("has {} rates; it must have 1, of the host that sends", self.local.len());
            return Err(ModelError::argument("local", sentence));
        };
        let saturated = self.saturated(0.0);
        let printed = (local + self.parallel) / (self.link * self.effective.of(2)?);
        if self.formula == Formula::Literal {
            return Ok(DelayRatio::of(printed, 1.0, 1.0, saturated));
        }
        let alone = self.parallel.min(self.link);
        let ratio = alone / self.least_output_share()?;
        Ok(DelayRatio::of(ratio, 1.0, 1.0, saturated))
    }

    /// Evaluates the form for hosts that each send to several, one after the other, (3.12) to (3.18).
    ///
    /// `at_targets[i]` holds, for each host that sender i sends to, the number of flows that arrive there at the same
    /// time. Corrected (E4-7): each of n flows gets `gamma delta(n) / n`, so
    /// `T_i = M / (gamma delta(2)) (1 + alpha_i / beta) sum(n_j / delta(n_j))`. The printed form lacks that n.
    /// `delta(2)` applies at `alpha = 0`, too, as the limit of a local flow that sends little. `over_unmanaged` is
    /// relative to the job's own `sum(n_j / delta(n_j))`.
    ///
    /// # Errors
    /// A rate is out of range, the number of senders differs from that of local rates, or delta has no value for this
    /// many flows.
    pub fn each_to_many(&self, at_targets: &[Vec<u32>]) -> Result<DelayRatio, ModelError> {
        self.check()?;
        if at_targets.len() != self.local.len() {
            let sentence = format!("has {} senders; it must have {}, as local", at_targets.len(), self.local.len());
            return Err(ModelError::argument("at_targets", sentence));
        }
        let of_two = self.effective.of(2)?;
        let (mut together, mut managed, mut unmanaged) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (at, (local, targets)) in self.local.iter().zip(at_targets).enumerate() {
            if targets.is_empty() {
                return Err(ModelError::argument(format!("at_targets[{at}]"), "is empty; a sender has a target"));
            }
            let (mut lossless, mut lossy) = (0.0, 0.0);
            for &flows in targets {
                let printed = 1.0 / self.effective.of(flows)?;
                lossless += f64::from(flows);
                lossy += if self.formula == Formula::Literal { printed } else { f64::from(flows) * printed };
            }
            together = together.max((1.0 + local / self.parallel) * lossy / of_two);
            managed = managed.max(lossless);
            unmanaged = unmanaged.max(lossy);
        }
        Ok(DelayRatio::of(together, managed, unmanaged, self.saturated(0.0)))
    }

    /// Evaluates the form for N hosts that each send to all others, (4.19). `local` holds one rate per host.
    ///
    /// Corrected: `(1 + alpha / beta) / (delta(N - 1) delta(2)) - 1`. Printed: the first term divided by N - 1, which
    /// would make a job 56 % faster beside local flows that hardly send (E4-7).
    ///
    /// # Errors
    /// Those of [`Flows::each_to_many`], and fewer than 2 hosts.
    ///
    /// # Examples
    /// ```
    /// use crosswind_model::contention::delay::{Flows, Formula};
    /// use crosswind_model::contention::EffectiveRatio;
    /// let effective = EffectiveRatio::LinearLatency { per_flow: 0.1 };
    /// let flows = Flows { link: 2365.0, parallel: 813.0, local: &[500.0; 4], effective: &effective, formula: Formula::Corrected };
    /// assert!((flows.all_to_all()?.over_managed - 1.13).abs() < 0.005);
    /// # Ok::<(), crosswind_model::ModelError>(())
    /// ```
    pub fn all_to_all(&self) -> Result<DelayRatio, ModelError> {
        self.check()?;
        let hosts = self.local.len();
        if hosts < 2 {
            return Err(ModelError::argument(
                "local",
                format!("has {hosts} rates; it must have at least 2, one a host"),
            ));
        }
        // All senders are alike except for their local flow, and the strongest one dominates, so one sender suffices.
        let strongest = [largest(self.local.iter().copied())];
        let others = hosts as u32 - 1;
        Flows { local: &strongest, ..*self }.each_to_many(&[vec![others; hosts - 1]])
    }
}
