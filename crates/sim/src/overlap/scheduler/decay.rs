//! Priority that falls with the processor time used, which decays: the scheduler of Linux 2.4.
//!
//! Each process has some processor time *left* in an epoch: `T(nice)` ticks at first. When no runnable process has any
//! left, a new epoch begins for all, sleepers included: `left <- left / 2 + T`. What a process has used of its maximum,
//! `2 T - left`, is thus halved each epoch. The runnable process with the greatest goodness runs: `left + (20 - nice)`
//! in ticks, plus 15 on the processor that it ran on last. A process with no time left waits for the next epoch.
//!
//! The nice level counts as much as time left, and a sleeper has at most `2 T`: 12 ticks at nice 0. A burner at nice
//! -20 therefore runs before a process that wakes at 0, until its own time is used up.
//!
//! Source: `kernel/sched.c` of Linux 2.4 (`goodness`, `NICE_TO_TICKS`, `PROC_CHANGE_PENALTY`, `reschedule_idle`). Time is charged
//! exactly, not to the process that runs when the clock ticks.

use super::largest;
use crate::time::Nanos;

/// Length of a tick at HZ = 100, ns.
const TICK: Nanos = 10_000_000;
/// The constant `PROC_CHANGE_PENALTY` of i386.
const AFFINITY: i64 = 15 * TICK as i64;

#[derive(Clone, Debug, Default)]
pub(in super::super) struct Decay {
    processes: Vec<Process>,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    nice: i8,
    left: Nanos,
    ended: bool,
}

impl Process {
    /// `NICE_TO_TICKS`: 11 ticks at -20, 6 at 0, 1 at 19.
    fn ticks(&self) -> Nanos {
        let level = i64::from(20 - i32::from(self.nice));
        ((level >> 2) + 1) as Nanos * TICK
    }

    fn goodness(&self, at_home: bool) -> i64 {
        if self.left == 0 {
            return 0;
        }
        let nice = i64::from(20 - i32::from(self.nice)) * TICK as i64;
        self.left as i64 + nice + if at_home { AFFINITY } else { 0 }
    }
}

impl Decay {
    pub fn add(&mut self, nice: i8) {
        let mut process = Process { nice, left: 0, ended: false };
        process.left = process.ticks();
        self.processes.push(process);
    }

    pub fn ran(&mut self, process: usize, time: Nanos) {
        let left = &mut self.processes[process].left;
        *left = left.saturating_sub(time);
    }

    pub fn left(&self, process: usize) -> Nanos {
        self.processes[process].left
    }

    pub fn blocked(&mut self, process: usize, ended: bool) {
        self.processes[process].ended |= ended;
    }

    pub fn pick(&mut self, candidates: &[(usize, bool)]) -> usize {
        loop {
            let good = candidates.iter().map(|&(process, at_home)| self.processes[process].goodness(at_home));
            match largest(good) {
                Some((at, goodness)) if goodness > 0 => return at,
                _ => self.next_epoch(),
            }
        }
    }

    fn next_epoch(&mut self) {
        for process in self.processes.iter_mut().filter(|process| !process.ended) {
            process.left = process.left / 2 + process.ticks();
        }
    }

    pub fn preempts(&self, woken: usize, running: &[(usize, bool)]) -> Option<usize> {
        let gain = |&(process, at_home): &(usize, bool)| {
            self.processes[woken].goodness(at_home) - self.processes[process].goodness(true)
        };
        largest(running.iter().map(gain)).filter(|&(_, gain)| gain > 0).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nice: &[i8]) -> Decay {
        let mut decay = Decay::default();
        nice.iter().for_each(|&nice| decay.add(nice));
        decay
    }

    #[test]
    fn slices_are_those_of_the_kernel() {
        let decay = of(&[-20, 0, 10, 19]);
        assert_eq!([0, 1, 2, 3].map(|process| decay.left(process) / TICK), [11, 6, 3, 1]);
    }

    #[test]
    fn half_of_what_a_process_has_used_is_forgotten_each_epoch() {
        let mut decay = of(&[0, 0]);
        decay.ran(0, 6 * TICK);
        assert_eq!(decay.pick(&[(0, true)]), 0, "it is alone, so an epoch begins");
        assert_eq!((decay.left(0), decay.left(1)), (6 * TICK, 9 * TICK), "used of 12: 6 and 3; before, 12 and 6");
    }

    #[test]
    fn a_sleeper_preempts_its_equal_but_not_a_burner_at_minus_20() {
        let mut decay = of(&[0, 0, -20]);
        decay.ran(0, TICK);
        assert_eq!(decay.preempts(1, &[(0, true)]), Some(0));
        assert_eq!(decay.preempts(1, &[(2, true)]), None);
        decay.ran(2, 11 * TICK);
        assert_eq!(decay.preempts(1, &[(2, true)]), Some(0), "its time is used up");
    }
}
