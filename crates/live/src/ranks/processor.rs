//! The processor of a rank: real work for a stated time, or a wait of the same length.
//!
//! *Burn* keeps a CPU busy until this thread has used a given CPU time (CLOCK_THREAD_CPUTIME_ID). Anything that takes the
//! CPU away, or stops the process, makes it last longer, like real work. It models neither caches nor memory bandwidth.
//!
//! *Emulated* needs a CPU only at the end of a wait, to end on time. It follows its rank's timeline: while the processor
//! is away, nothing is computed, sent or handled. (A burning rank is disturbed from outside, or not at all.)

use std::hint::spin_loop;

use crosswind_schema::RankCompute;
use crosswind_schema::disturbance::{NEVER, Timeline, Timelines};

use crosswind_linux::now_ns;
pub(super) use crosswind_linux::own_cpu_ns as cpu_ns;

/// How long before its end a wait stops sleeping and starts spinning, ns: a sleeping thread wakes up late.
const AWAKE_NS: u64 = 10_000;
/// Longest stretch of work between two checks for frames of the conductor, ns.
const STRETCH_NS: u64 = 5_000_000;

/// Next step of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Over,
    /// A stretch is complete, and frames of the conductor can be handled.
    Worked,
    /// Idle for this time, ns, or until a frame of the conductor arrives.
    Rest(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Burns this much CPU time, ns.
    Burn(u64),
    /// End on the monotonic clock, ns.
    Until(u64),
}

/// A period in which a processor is away, as far as it is known now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Absence {
    /// When the processor is back, on the monotonic clock, ns. `None` means never.
    pub until_ns: Option<u64>,
    /// Whether a daemon reads messages from the network meanwhile.
    pub polled: bool,
}

pub(super) struct Processor {
    compute: RankCompute,
    zero_ns: u64,
    /// The rank's timeline, if the processor is emulated and disturbed.
    timeline: Option<Timeline>,
    /// If senders follow the timelines: those of all ranks, each with the time until which the rank is known to be away.
    others: Vec<(Timeline, u64)>,
}

impl Processor {
    /// Creates the processor of a rank. Time 0 of its timeline is set later.
    pub fn new(compute: RankCompute, rank: u32, timelines: Option<&Timelines>, follows: bool) -> Self {
        let others =
            timelines.filter(|_| follows).map(|all| (0..all.ranks()).map(|other| (all.rank(other), 0)).collect());
        let timeline = timelines.filter(|_| compute == RankCompute::Emulated).map(|all| all.rank(rank));
        Self { compute, zero_ns: now_ns(), timeline, others: others.unwrap_or_default() }
    }

    /// Sets time 0 of the timelines.
    pub fn starts_at(&mut self, zero_ns: u64) {
        self.zero_ns = zero_ns;
    }

    /// Starts a computation of `ns` nanoseconds. Returns `None` if it would never end.
    pub fn begin(&mut self, ns: u64) -> Option<Work> {
        let now = now_ns();
        match (self.compute, &mut self.timeline) {
            (RankCompute::Burn, _) => Some(Work::Burn(ns)),
            (RankCompute::Emulated, None) => Some(Work::Until(now.saturating_add(ns))),
            (RankCompute::Emulated, Some(timeline)) => {
                let end = timeline.work(now.saturating_sub(self.zero_ns), ns);
                (end < NEVER).then(|| Work::Until(self.zero_ns + end))
            }
        }
    }

    /// Returns the current absence of the processor, if it is away.
    pub fn absence(&mut self) -> Option<Absence> {
        let at = now_ns().saturating_sub(self.zero_ns);
        let timeline = self.timeline.as_mut()?;
        // Queried first, because the times passed to a timeline must not decrease.
        let polled_until = timeline.is_polled(at);
        let back = polled_until.unwrap_or_else(|| timeline.next_on(at));
        let until_ns = (back < NEVER).then(|| self.zero_ns + back);
        (back > at).then_some(Absence { until_ns, polled: polled_until.is_some() })
    }

    /// Returns whether another rank's processor is running according to its timeline. Always true if senders do not
    /// follow timelines.
    pub fn runs(&mut self, other: u32) -> bool {
        let at = now_ns().saturating_sub(self.zero_ns);
        let Some((timeline, away_until)) = self.others.get_mut(other as usize) else { return true };
        // After a timeline has returned a time of return, earlier times must not be queried.
        if at >= *away_until {
            *away_until = timeline.next_on(at);
        }
        at >= *away_until
    }

    pub fn step(work: &mut Work) -> Step {
        match work {
            Work::Burn(0) => Step::Over,
            Work::Burn(left) => {
                let stretch = (*left).min(STRETCH_NS);
                burn(stretch);
                *left -= stretch;
                if *left == 0 { Step::Over } else { Step::Worked }
            }
            Work::Until(end) => match end.saturating_sub(now_ns()) {
                0 => Step::Over,
                left if left > AWAKE_NS => Step::Rest(left - AWAKE_NS),
                _ => {
                    while now_ns() < *end {
                        spin_loop();
                    }
                    Step::Over
                }
            },
        }
    }
}

/// Keeps the CPU busy until this thread has used `ns` more nanoseconds of it.
fn burn(ns: u64) {
    let end = cpu_ns().saturating_add(ns);
    while cpu_ns() < end {
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use crosswind_schema::disturbance::Disturbance;

    use super::*;

    #[test]
    fn burning_takes_the_processor_for_as_long_as_it_says() {
        let mut processor = Processor::new(RankCompute::Burn, 0, None, false);
        let (mut work, before) = (processor.begin(12_000_000).expect("ends"), cpu_ns());
        assert_eq!(Processor::step(&mut work), Step::Worked, "the conductor is looked at in between");
        while Processor::step(&mut work) != Step::Over {}
        assert!(cpu_ns() - before >= 12_000_000);
    }

    #[test]
    fn an_emulated_computation_lasts_as_long_as_the_timeline_says() {
        let text = b"schema_version = 1\nname = \"two jobs\"\n[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.01\n";
        let disturbance = Disturbance::from_toml(text, "d.toml").expect("right");
        let timelines = Timelines::new(&disturbance, 2, 1).expect("right");
        let mut processor = Processor::new(RankCompute::Emulated, 1, Some(&timelines), true);
        processor.starts_at(now_ns());
        let zero = processor.zero_ns;
        let mut work = processor.begin(15_000_000).expect("ends");
        while let step @ (Step::Rest(_) | Step::Worked) = Processor::step(&mut work) {
            assert!(matches!(step, Step::Rest(_)));
        }
        // 10 ms running, 10 ms away, 5 ms running. If the clock is late, more is left for later.
        assert!(now_ns() - zero >= 25_000_000);
        let seen = std::iter::repeat_with(|| (processor.absence(), processor.runs(0), now_ns()));
        let (absence, other_runs, at) =
            seen.into_iter().find(|(absence, ..)| absence.is_some()).expect("away at some time");
        let Some(Absence { until_ns: Some(until), polled: false }) = absence else { panic!("{absence:?}") };
        assert_eq!((until - zero) % 20_000_000, 0);
        // The other rank is away at the same times, unless the two queries are on either side of the end.
        assert!(!other_runs || at >= until, "{} {}", at - zero, until - zero);
    }
}
