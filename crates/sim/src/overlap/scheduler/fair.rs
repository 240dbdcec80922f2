//! Fair-share scheduler of Linux since 2.6.23: the process with the least processor time, weighted by nice level, runs.
//!
//! A process's *virtual time* is the processor time that it has had over its weight, `1.25^-nice`. The runnable process
//! with the least virtual time runs, for `latency` divided among the runnable by weight, and at least one granule. A
//! process that wakes is placed at most half a latency before the others, so sleeping saves no more than that. It
//! preempts a process that is one granule ahead of it.
//!
//! All processors of a node share one queue. The kernel has one queue per processor and migrates processes between
//! them, so it is less fair in the short run. Source: `kernel/sched/fair.c` of Linux 5 (`sched_slice`, `place_entity`,
//! `wakeup_preempt_entity`).

use super::largest;
use crate::time::Nanos;

/// For one processor, ns. Scaled up with the number of processors.
const LATENCY: f64 = 6e6;
const GRANULE: f64 = 0.75e6;
const WAKE_GRANULE: f64 = 1e6;

#[derive(Clone, Debug)]
pub(in super::super) struct Fair {
    cpus: f64,
    /// Grows with the logarithm of the processors (`sched_tunable_scaling`).
    scale: f64,
    least: f64,
    processes: Vec<Process>,
    /// Number of runnable processes, and the sum of their weights.
    runnable: (usize, f64),
}

#[derive(Clone, Copy, Debug)]
struct Process {
    weight: f64,
    virtual_time: f64,
    runnable: bool,
    /// Time it has run since it was picked, ns.
    run: Nanos,
}

impl Fair {
    pub fn new(cpus: usize) -> Self {
        let cpus = cpus as f64;
        Self { cpus, scale: 1.0 + cpus.min(8.0).log2().floor(), least: 0.0, processes: Vec::new(), runnable: (0, 0.0) }
    }

    pub fn add(&mut self, nice: i8) {
        let weight = 1.25_f64.powi(-i32::from(nice));
        self.processes.push(Process { weight, virtual_time: 0.0, runnable: false, run: 0 });
    }

    pub fn ran(&mut self, process: usize, time: Nanos) {
        let process = &mut self.processes[process];
        process.run += time;
        process.virtual_time += time as f64 / process.weight;
    }

    /// Called when the time of all processes that ran has been charged.
    pub fn settled(&mut self) {
        let least = self.processes.iter().filter(|one| one.runnable).map(|one| one.virtual_time);
        let least = least.fold(f64::INFINITY, f64::min);
        if least.is_finite() {
            self.least = self.least.max(least);
        }
    }

    pub fn left(&self, process: usize) -> Nanos {
        let (runnable, weights) = self.runnable;
        let latency = LATENCY.max(GRANULE * runnable as f64) * self.scale;
        let process = &self.processes[process];
        let share = (process.weight * self.cpus / weights).min(1.0);
        let slice = (latency * share).max(GRANULE * self.scale) as Nanos;
        slice.saturating_sub(process.run)
    }

    pub fn woken(&mut self, process: usize) {
        let from = self.least - LATENCY * self.scale / 2.0;
        let process = &mut self.processes[process];
        process.runnable = true;
        process.virtual_time = process.virtual_time.max(from);
        self.count();
    }

    pub fn blocked(&mut self, process: usize) {
        self.processes[process].runnable = false;
        self.count();
    }

    fn count(&mut self) {
        let weights = self.processes.iter().filter(|one| one.runnable).map(|one| one.weight);
        self.runnable = weights.fold((0, 0.0), |(count, sum), weight| (count + 1, sum + weight));
    }

    pub fn pick(&mut self, candidates: &[(usize, bool)]) -> usize {
        let behind = candidates.iter().map(|&(process, _)| -self.processes[process].virtual_time);
        let at = largest(behind).map_or(0, |(at, _)| at);
        self.processes[candidates[at].0].run = 0;
        at
    }

    pub fn preempts(&self, woken: usize, running: &[(usize, bool)]) -> Option<usize> {
        let ahead = largest(running.iter().map(|&(process, _)| self.processes[process].virtual_time));
        let woken = &self.processes[woken];
        ahead.filter(|(_, most)| most - woken.virtual_time > WAKE_GRANULE * self.scale / woken.weight).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nice: &[i8]) -> Fair {
        let mut fair = Fair::new(1);
        nice.iter().for_each(|&nice| fair.add(nice));
        (0..nice.len()).for_each(|process| fair.woken(process));
        fair
    }

    #[test]
    fn the_process_with_the_least_time_for_its_weight_is_next() {
        let mut fair = of(&[0, 5]);
        fair.ran(0, 3_000_000);
        assert_eq!(fair.pick(&[(0, true), (1, false)]), 1);
        fair.ran(1, 1_000_000);
        assert_eq!(fair.pick(&[(0, true), (1, false)]), 0, "at nice 5 a millisecond counts as three");
    }

    #[test]
    fn sleeping_saves_half_a_latency_and_no_more() {
        let mut fair = of(&[0, 0]);
        fair.blocked(1);
        fair.ran(0, 1_000_000_000);
        fair.settled();
        fair.woken(1);
        assert_eq!(fair.preempts(1, &[(0, true)]), Some(0));
        fair.ran(1, 3_000_000);
        assert_eq!(fair.preempts(1, &[(0, true)]), None);
    }
}
