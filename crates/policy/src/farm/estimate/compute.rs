//! Estimate of a processor's speed and of the cost of traffic, by recursive least squares on the interference law.
//!
//! A task of W work units that took t seconds while R MB/s were received and S_i MB/s were sent to child i gives the
//! equation `W / t = C (1 - ir_receive R - sum ir_send_i S_i)`, which is linear in C and the products C ir. In a steady
//! state the traffic of all tasks is alike, and the terms of the sum cannot be separated. Whatever is forgotten is
//! therefore replaced by the values in the platform's file (stabilised forgetting, Milek and Kraus 1995): identifiable
//! parameters are learnt, and the others stay near the file. A change of the speed drops the memory of C and keeps the
//! interference rates, which are fractions of it.

use super::super::event::Child;
use super::change::{Change, Verdict};
use super::rate::{Estimate, FORGET};

/// Maximum number of children whose interference is learnt, in order of registration. For others the file's value is
/// used. The equations grow with the square of the number, and no processor can serve many children at once.
const MOST_LEARNT: usize = 8;
/// Relative standard deviation of the file's C.
const COMPUTE_SD: f64 = 0.3;
/// Standard deviation of an interference rate in the file, relative to it.
const INTERFERENCE_SD: f64 = 0.5;
/// Lower bound on that deviation, as the fraction of the processor lost at the link's full rate.
const LEAST_LOSS_SD: f64 = 0.1;
/// Expected fraction of the speed below which the law is not linear, so nothing is learnt.
const LEAST_LEFT: f64 = 0.05;
/// A rate counts as learnt once its standard deviation is at most this fraction of the file's.
const LEARNT: f64 = 0.5;

/// Traffic while a task was computed, MB/s.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    pub received: f64,
    /// To the learnt children, in the order of [`Compute::learnt`].
    pub sent: Vec<f64>,
    /// Fraction of the processor that other sends cost.
    pub others: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Compute {
    /// Work units/s that correspond to the value 1 of the first unknown.
    reference: f64,
    /// Children in the order of their unknowns, which start at index 2.
    pub learnt: Vec<Child>,
    /// Values in the file, [1, ir_receive, ir_send...], and their certainty (1 / variance).
    prior: Vec<f64>,
    certain: Vec<f64>,
    /// Information matrix in row-major order, and the vector of the normal equations.
    information: Vec<f64>,
    vector: Vec<f64>,
    unknowns: Vec<f64>,
    change: Change,
    observations: u64,
}

impl Compute {
    /// Starts from the values in the file. `link_mb_per_s` scales the uncertainty of the interference rate.
    pub fn known(compute_per_s: f64, ir_receive: f64, link_mb_per_s: f64) -> Self {
        let mut compute = Self {
            reference: compute_per_s,
            learnt: Vec::new(),
            prior: vec![1.0],
            certain: vec![COMPUTE_SD.powi(-2)],
            information: Vec::new(),
            vector: Vec::new(),
            unknowns: Vec::new(),
            change: Change::default(),
            observations: 0,
        };
        compute.unknown(ir_receive, link_mb_per_s);
        compute.begin();
        compute
    }

    fn unknown(&mut self, ir: f64, link_mb_per_s: f64) {
        self.prior.push(ir);
        let sd = (INTERFERENCE_SD * ir).max(LEAST_LOSS_SD / link_mb_per_s);
        // Without a known link speed and interference there is no scale for errors: trust the file.
        self.certain.push(if sd > 0.0 { sd.powi(-2) } else { 1e12 });
    }

    /// Resets the estimate to the values in the file.
    fn begin(&mut self) {
        let n = self.prior.len();
        self.information = vec![0.0; n * n];
        for at in 0..n {
            self.information[at * n + at] = self.certain[at];
        }
        self.vector = self.prior.iter().zip(&self.certain).map(|(prior, certain)| prior * certain).collect();
        self.unknowns.clone_from(&self.prior);
    }

    /// Adds a child and resets the interference estimates of the others. Returns whether its interference is learnt.
    pub fn child(&mut self, child: Child, ir_send: f64, link_mb_per_s: f64) -> bool {
        if self.learnt.len() == MOST_LEARNT {
            return false;
        }
        self.settle();
        self.learnt.push(child);
        self.unknown(ir_send, link_mb_per_s);
        self.begin();
        true
    }

    pub fn left(&mut self, child: Child) {
        let Some(at) = self.learnt.iter().position(|&learnt| learnt == child) else { return };
        self.settle();
        self.learnt.remove(at);
        self.prior.remove(2 + at);
        self.certain.remove(2 + at);
        self.begin();
    }

    /// Makes the current estimate of C the new reference.
    fn settle(&mut self) {
        self.reference *= self.unknowns[0];
    }

    /// Speed without traffic, work units/s.
    pub fn per_s(&self) -> f64 {
        self.reference * self.unknowns[0]
    }

    pub fn ir_receive(&self) -> f64 {
        self.unknowns[1] / self.unknowns[0]
    }

    /// Interference of sending to a child, s/MB. `None` if it is not learnt.
    pub fn ir_send(&self, child: Child) -> Option<f64> {
        let at = self.learnt.iter().position(|&learnt| learnt == child)?;
        Some(self.unknowns[2 + at] / self.unknowns[0])
    }

    /// Takes an observation: a task was computed at `per_s` work units/s under `traffic`.
    pub fn observe(&mut self, per_s: f64, traffic: &Traffic) {
        let n = self.prior.len();
        let mut row = Vec::with_capacity(n);
        row.extend([1.0 - traffic.others, -traffic.received]);
        row.extend(traffic.sent.iter().map(|sent| -sent));
        let expected: f64 = row.iter().zip(&self.unknowns).map(|(a, b)| a * b).sum();
        let seen = per_s / self.reference;
        if row.len() != n || !(seen.is_finite() && seen > 0.0) || expected < LEAST_LEFT {
            return;
        }
        self.observations += 1;
        let verdict = self.change.observe(libm::log(seen / expected));
        if verdict == Verdict::Odd {
            return;
        }
        if let Verdict::Changed { mean, count } = verdict {
            let fractions: Vec<f64> = self.unknowns[1..].iter().map(|loss| loss / self.unknowns[0]).collect();
            self.settle();
            self.reference *= libm::exp(mean);
            self.observations = count.round() as u64;
            self.begin();
            self.unknowns[1..].copy_from_slice(&fractions);
            self.vector[1..].iter_mut().zip(&fractions).zip(&self.certain[1..]).for_each(|((v, ir), c)| *v = ir * c);
            return;
        }
        let weight = (self.change.sd() * expected).powi(-2);
        for i in 0..n {
            for j in 0..n {
                let file = if i == j { (1.0 - FORGET) * self.certain[i] } else { 0.0 };
                let place = &mut self.information[i * n + j];
                *place = *place * FORGET + file + weight * row[i] * row[j];
            }
            let file = (1.0 - FORGET) * self.certain[i] * self.prior[i];
            self.vector[i] = self.vector[i] * FORGET + file + weight * row[i] * seen;
        }
        if let Some(root) = cholesky(&self.information, n) {
            self.unknowns = solved(&root, n, &self.vector);
            self.unknowns[0] = self.unknowns[0].max(LEAST_LEFT);
            self.unknowns[1..].iter_mut().for_each(|loss| *loss = loss.max(0.0));
        }
    }

    pub fn estimate(&self) -> Estimate {
        let sd = self.variances().first().map_or(0.0, |variance| self.reference * variance.sqrt());
        Estimate { value: self.per_s(), sd, observations: self.observations }
    }

    /// Estimates of `ir_receive` and of each learnt child's `ir_send`, s/MB. `None` if the data do not determine it.
    pub fn interference(&self) -> Vec<Option<Estimate>> {
        let variances = self.variances();
        (1..self.prior.len())
            .map(|at| {
                let learnt = variances[at] * self.certain[at] <= LEARNT * LEARNT;
                let (value, sd) = (self.unknowns[at] / self.unknowns[0], variances[at].sqrt() / self.unknowns[0]);
                learnt.then_some(Estimate { value, sd, observations: self.observations })
            })
            .collect()
    }

    fn variances(&self) -> Vec<f64> {
        let n = self.prior.len();
        let Some(root) = cholesky(&self.information, n) else { return vec![f64::INFINITY; n] };
        let unit = |at: usize| (0..n).map(|i| f64::from(u8::from(i == at))).collect::<Vec<f64>>();
        (0..n).map(|at| solved(&root, n, &unit(at))[at]).collect()
    }
}

/// Returns the lower triangular Cholesky factor. `None` if the matrix is not positive definite because of rounding.
fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut root = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| root[i * n + k] * root[j * n + k]).sum();
            let left = matrix[i * n + j] - sum;
            root[i * n + j] = if i == j { (left > 0.0).then(|| left.sqrt())? } else { left / root[j * n + j] };
        }
    }
    Some(root)
}

fn solved(root: &[f64], n: usize, vector: &[f64]) -> Vec<f64> {
    let mut x = vector.to_vec();
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| root[i * n + k] * x[k]).sum();
        x[i] = (x[i] - sum) / root[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| root[k * n + i] * x[k]).sum();
        x[i] = (x[i] - sum) / root[i * n + i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::estimate::rate::tests::Noise;

    const LINK: f64 = 10.0;

    /// A processor with two children whose file gives 10 work units/s and interference of 0.04, 0.02 and 0.03 s/MB.
    fn known() -> Compute {
        let mut compute = Compute::known(10.0, 0.04, LINK);
        assert!(compute.child(0, 0.02, LINK) && compute.child(1, 0.03, LINK));
        compute
    }

    /// Feeds tasks computed by the true rates `so`, under traffic that varies from task to task or is constant.
    fn feed(compute: &mut Compute, so: [f64; 4], tasks: usize, sd: f64, varies: bool, noise: &mut Noise) {
        for _ in 0..tasks {
            let mut some = || if varies { LINK * 0.5 * noise.uniform() } else { 3.0 };
            let (received, sent) = (some(), vec![some(), some()]);
            let per_s = so[0] * (1.0 - so[1] * received - so[2] * sent[0] - so[3] * sent[1]);
            compute.observe(per_s * (sd * noise.normal()).exp(), &Traffic { received, sent, others: 0.0 });
        }
    }

    fn near(seen: f64, so: f64, within: f64) {
        assert!((seen / so - 1.0).abs() < within, "seen {seen}, so {so}");
    }

    #[test]
    fn rates_that_the_file_has_wrong_are_learnt_from_traffic_that_varies() {
        for sd in [0.0, 0.01] {
            let (mut compute, mut noise) = (known(), Noise::new(5));
            feed(&mut compute, [12.0, 0.055, 0.03, 0.02], 200, sd, true, &mut noise);
            near(compute.per_s(), 12.0, 0.03);
            near(compute.ir_receive(), 0.055, 0.2);
            near(compute.ir_send(0).expect("learnt"), 0.03, 0.35);
            near(compute.ir_send(1).expect("learnt"), 0.02, 0.35);
            let learnt = compute.interference();
            assert!(learnt.iter().all(Option::is_some), "{learnt:?}");
            assert!((learnt[0].expect("learnt").value - 0.055).abs() < 4.0 * learnt[0].expect("learnt").sd + 1e-3);
        }
    }

    #[test]
    fn what_steady_traffic_cannot_tell_stays_as_the_file_says() {
        let (mut compute, mut noise) = (known(), Noise::new(5));
        feed(&mut compute, [8.0, 0.04, 0.02, 0.03], 500, 0.01, false, &mut noise);
        near(compute.per_s(), 8.0, 0.05);
        near(compute.ir_receive(), 0.04, 0.3);
        near(compute.ir_send(0).expect("learnt"), 0.02, 0.4);
        assert_eq!(compute.interference(), [None, None, None]);
    }

    #[test]
    fn a_processor_that_halves_is_followed_within_three_tasks_and_keeps_its_interference() {
        let (mut compute, mut noise) = (known(), Noise::new(5));
        feed(&mut compute, [10.0, 0.04, 0.02, 0.03], 100, 0.01, true, &mut noise);
        feed(&mut compute, [5.0, 0.04, 0.02, 0.03], 3, 0.01, true, &mut noise);
        near(compute.per_s(), 5.0, 0.05);
        near(compute.ir_receive(), 0.04, 0.2);
        assert!(compute.observations <= 3, "what was before is dropped: {}", compute.observations);
    }

    #[test]
    fn noise_alone_moves_nothing_for_long() {
        let (mut compute, mut noise) = (known(), Noise::new(9));
        for _ in 0..50 {
            feed(&mut compute, [10.0, 0.04, 0.02, 0.03], 100, 0.02, true, &mut noise);
            near(compute.per_s(), 10.0, 0.06);
        }
    }

    #[test]
    fn children_come_and_go() {
        let mut compute = known();
        for child in 2..12 {
            assert_eq!(compute.child(child, 0.01, LINK), child < 8);
        }
        compute.left(0);
        assert_eq!(compute.ir_send(0), None);
        near(compute.ir_send(1).expect("learnt"), 0.03, 1e-9);
    }
}
