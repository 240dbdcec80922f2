//! How much later the messages of a parallel job are when local flows share its links (the communication delay ratio, eta).
//!
//! `eta = (T - t) / t`: T beside local flows, t without them. Two readings of t are kept apart (E4-12): *managed*, as in the paper,
//! where the job's own flows share each link without any loss, and *unmanaged*, where they lose what n flows lose.

use serde::Deserialize;

use super::effective::EffectiveRatio;
use crate::error::{ModelError, at_least_zero};
pub use crate::law::Formula;

/// Flows, and their rates, over links that all carry the same.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// gamma: what each link carries, in one direction.
    pub link: f64,
    /// beta: what the parallel job wants to send from each host, in the unit of `link`.
    pub parallel: f64,
    /// alpha: what local users send from each sending host, in the same unit.
    pub local: &'a [f64],
    /// delta: which part of a congested link n flows use.
    pub effective: &'a EffectiveRatio,
    pub formula: Formula,
}

/// Where the local flows of a many-to-one pattern go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalTarget {
    /// To the job's own target, as (3.5) supposes without saying so.
    #[default]
    Same,
    /// Each to a host of its own.
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Several hosts send to one.
    ManyToOne,
    /// One sends to several, one after the other.
    OneToMany,
    /// Several send, each to several, one after the other.
    EachToMany,
    /// All send to all others.
    AllToAll,
}

/// A link from which more is wanted than it carries. The forms then suppose that flows get shares in proportion to what they
/// want; what they really get depends on queues, which a simulation has.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturated {
    /// Which: "output link of sender 2", "input link of the target".
    pub link: String,
    /// What flows want of it.
    pub wanted: f64,
    pub carries: f64,
}

/// By which part a job's messages take longer than without local flows.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRatio {
    /// Over the time in which the job's own flows share links without loss (the paper's).
    pub over_managed: f64,
    /// Over the time in which the job's own flows cost each other what n flows do.
    pub over_unmanaged: f64,
    /// The first link that is beyond saturation.
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

    /// The form of a pattern. `target`: where local flows go, many to one; `at_targets`: how many flows arrive at each target of
    /// each sender at a time, each to many.
    ///
    /// # Errors
    /// A rate out of its range, or more flows than delta has an answer for.
    pub fn of(&self, pattern: Pattern, target: LocalTarget, at_targets: &[Vec<u32>]) -> Result<DelayRatio, ModelError> {
        match pattern {
            Pattern::ManyToOne => self.many_to_one(target),
            Pattern::OneToMany => self.one_to_many(),
            Pattern::EachToMany => self.each_to_many(at_targets),
            Pattern::AllToAll => self.all_to_all(),
        }
    }

    /// The first link that is beyond saturation: senders' output links, then the input link of the target.
    fn saturated(&self, at_target: f64) -> Option<Saturated> {
        let output = |(at, local): (usize, &f64)| (format!("output link of sender {at}"), local + self.parallel);
        let mut links =
            self.local.iter().enumerate().map(output).chain([("input link of the target".to_owned(), at_target)]);
        let (link, wanted) = links.find(|(_, wanted)| *wanted > self.link)?;
        Some(Saturated { link, wanted, carries: self.link })
    }

    /// The least of what the job gets of the senders' output links; without congestion what it wants.
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

    /// n hosts send to one, (3.3) to (3.7).
    ///
    /// Printed: `sum(alpha) / (n delta(n) beta) + 1 / delta(n) - 1`, whether or not there is congestion (it supposes that
    /// `n beta >= gamma`), all local flows into the same target, senders' output links for nothing (E4-12). Corrected: the slower
    /// of a sender's output link, `gamma delta(2) beta / (alpha_i + beta)`, and its share of the target's input link, `gamma delta(n) beta
    /// / (n beta + local flows into it)`; each only where more is wanted than the link carries. Where the printed
    /// suppositions hold and the input link is the slower, both agree.
    ///
    /// # Errors
    /// A rate out of its range, or more flows than delta has an answer for.
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
            // Times over M / gamma.
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

    /// One host sends to several, one after the other, (3.8) to (3.11); `local` has the one rate of that host.
    ///
    /// Printed: `(alpha + beta) / (gamma delta(2)) - 1`, which is negative while little is sent. Corrected (E4-11): 0 where the output
    /// link carries both.
    ///
    /// # Errors
    /// A rate out of its range, or another number of local rates than one.
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

    /// Each host sends to several, one after the other, (3.12) to (3.18).
    ///
    /// `at_targets[i]` has, for each host that sender i sends to, how many flows arrive there at the same time. Corrected
    /// (E4-7): each of n flows gets `gamma delta(n) / n`, so `T_i = M / (gamma delta(2)) (1 + alpha_i / beta) sum(n_j / delta(n_j))`;
    /// as printed that n is missing. `delta(2)` is there at `alpha = 0` as well: the limit of a local flow that sends little.
    /// `over_unmanaged` has the job's own `sum(n_j / delta(n_j))` below it.
    ///
    /// # Errors
    /// A rate out of its range, another number of senders than of local rates, or more flows than delta has an answer for.
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

    /// Each of N hosts sends to all others, (4.19); `local` has one rate for each of them.
    ///
    /// Corrected: `(1 + alpha / beta) / (delta(N - 1) delta(2)) - 1`. Printed: the first term over N - 1, so that a job would be 56 %
    /// faster beside local flows that hardly send (E4-7).
    ///
    /// # Errors
    /// As [`Flows::each_to_many`]; fewer than 2 hosts.
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
        // All senders are alike but for their local flow, and the strongest rules: one sender tells for all.
        let strongest = [largest(self.local.iter().copied())];
        let others = hosts as u32 - 1;
        Flows { local: &strongest, ..*self }.each_to_many(&[vec![others; hosts - 1]])
    }
}
