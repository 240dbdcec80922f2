//! The intervals in which one source takes one rank's processor, one after the other, sorted by start.

use super::timeline::NEVER;
use super::{Disturbance, Phases, SkewDrawn, Source};
use crate::experiment::draw;
use crate::experiment::{Amount, Distribution};
use crate::random::Random;
use crate::units::{PositiveSeconds, Quantity};

/// Converts seconds to the nearest nanoseconds, at most [`NEVER`].
fn ns(seconds: f64) -> u64 {
    ((seconds * 1e9).round() as u64).min(NEVER) // `as` saturates
}

/// A random or fixed duration, ns, at least 1.
enum Span {
    Fixed(u64),
    Drawn(Distribution<PositiveSeconds>),
}

impl Span {
    fn of(amount: &Amount<PositiveSeconds>) -> Self {
        match amount {
            Amount::Fixed(value) => Self::Fixed(ns(value.get()).max(1)),
            Amount::Drawn(distribution) => Self::Drawn(distribution.clone()),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(ns) => *ns,
            Self::Drawn(distribution) => ns(draw::one(distribution, &mut || random.word())).max(1),
        }
    }

    /// Draws the duration that is in progress at a random time.
    fn met(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(ns) => *ns,
            Self::Drawn(distribution) => ns(draw::met(distribution, &mut || random.word())).max(1),
        }
    }
}

/// Behaviour of a source over time.
enum Pattern {
    /// Turns of a fixed period, of which the last `away` ns belong to others.
    Turns { away: u64, period: u64, skew: u64, drawn: SkewDrawn, phases: Phases, drift: f64 },
    /// The same with a random phase, until the rank is moved away, at a cost.
    Job { away: u64, period: u64, moved: Option<(u64, u64)> },
    /// Time from start to start, and duration.
    Daemon { interval: Span, duration: Span },
    /// Start, length and cause of each interval, for each CPU; repeated.
    Recorded { length: u64, cpus: Vec<Vec<(u64, u64, u16)>> },
}

/// A source, prepared for drawing.
pub(super) struct Ready {
    pattern: Pattern,
    /// Name of its random streams.
    name: String,
    /// Index of its first cause among all causes.
    cause: u16,
    /// Sorted. `None` means all ranks.
    ranks: Option<Vec<u32>>,
    /// Whether all ranks use the same draws.
    together: bool,
    /// Whether it takes messages off the network.
    pub polls: bool,
    /// Whether it waits for others that queue, and then runs in full.
    pub queues: bool,
    /// Time by which each interval ends later, ns.
    cost: u64,
}

impl Ready {
    /// Returns the sources of a disturbance that have any effect.
    pub fn all(disturbance: &Disturbance) -> Vec<Self> {
        let cost = ns(disturbance.return_cost_s());
        let mut cause = 0;
        let mut all = Vec::new();
        for source in &disturbance.sources {
            all.extend(pattern(source).map(|pattern| {
                let mut ranks = source.ranks().map(<[u32]>::to_vec);
                ranks.iter_mut().for_each(|ranks| ranks.sort_unstable());
                let (together, queues) = match source {
                    Source::Daemon(daemon) => (daemon.aligned, true),
                    Source::Job(job) => (job.everywhere, false),
                    Source::Recorded(recorded) => (recorded.aligned, true),
                    Source::Local(_) | Source::Coscheduled(_) => (false, false),
                };
                let polls = source.polls();
                Self { pattern, name: source.causes().join("\n"), cause, ranks, together, polls, queues, cost }
            }));
            cause += source.causes().len() as u16;
        }
        all
    }

    /// Whether it affects a rank.
    pub fn is_on(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.binary_search(&rank).is_ok())
    }

    /// Returns the rank whose random streams a rank uses.
    fn drawn_for(&self, rank: u32) -> u64 {
        if self.together { u64::MAX } else { u64::from(rank) }
    }
}

fn pattern(source: &Source) -> Option<Pattern> {
    match source {
        Source::Coscheduled(gang) => {
            let (quantum, skew) = (ns(gang.quantum_s.get()), ns(gang.skew_s.get()));
            let away = quantum.saturating_mul(u64::from(gang.jobs - 1)).min(NEVER);
            let (drawn, phases) = (gang.skew_drawn, Phases::Aligned);
            let turns = Pattern::Turns { away, period: quantum + away, skew, drawn, phases, drift: 0.0 };
            (away > 0 || (skew > 0 && drawn == SkewDrawn::PerQuantum)).then_some(turns)
        }
        Source::Local(local) => {
            let quantum = ns(local.quantum_s.get());
            let away = quantum.saturating_mul(u64::from(local.jobs - 1)).min(NEVER);
            let (phases, drift) = (local.phases, local.drift.get());
            let drawn = SkewDrawn::PerRank;
            (away > 0).then_some(Pattern::Turns { away, period: quantum + away, skew: 0, drawn, phases, drift })
        }
        Source::Daemon(daemon) => {
            Some(Pattern::Daemon { interval: Span::of(&daemon.interval_s), duration: Span::of(&daemon.duration_s) })
        }
        Source::Job(job) => {
            let (slice_s, share) = (job.slice_s.get(), job.share.get());
            let away = if share < 1.0 { ns(slice_s) } else { 0 };
            let period = if share < 1.0 { ns(slice_s * share / (1.0 - share)) + away } else { NEVER };
            let moved = job.migrate_after_s.map(|after| (ns(after.get()), ns(job.migrate_cost_s.get())));
            (away > 0 || moved.is_some_and(|(_, cost)| cost > 0)).then_some(Pattern::Job { away, period, moved })
        }
        Source::Recorded(recorded) => {
            let cpus: Vec<Vec<(u64, u64, u16)>> = recorded
                .cpu
                .iter()
                .map(|cpu| cpu.intervals.iter().map(|i| (ns(i.0), ns(i.1).max(1), i.2)).collect())
                .collect();
            Some(Pattern::Recorded { length: ns(recorded.length_s.get()), cpus })
        }
    }
}

/// One source on one rank: its next interval, and the state needed to continue.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Start of the next interval, ns; at least [`NEVER`] if there is none.
    pub start: u64,
    pub length: u64,
    pub cause: u16,
    /// Index into the list of sources.
    pub source: u16,
    random: Random,
    /// For turns: the next end of time that belongs to others. For daemons: the next start. For recordings: start of
    /// this round, plus the shift.
    at: u64,
    /// For turns: the rank's own period. For recordings: the shift.
    period: u64,
    /// For turns: the time that belongs to others. For recordings: index into the list.
    step: u64,
    /// For turns: delay of the quantum before the next start.
    late: u64,
}

impl Stream {
    /// Creates the stream of a source on a rank, from time 0.
    pub fn new(source: &Ready, place: usize, rank: u32, seed: u64) -> Self {
        let mut random = Random::named(seed, &source.name, source.drawn_for(rank));
        let (at, period, step) = match &source.pattern {
            Pattern::Turns { away, period, phases, drift, .. } => match phases {
                Phases::Spread => (period - random.below(*period), *period, *away),
                Phases::Aligned => (0, *period, *away),
                Phases::Drifting => {
                    let factor = 1.0 + drift * (2.0 * draw::unit(random.word()) - 1.0);
                    let own = ((*period as f64 * factor).round() as u64).max(2);
                    (0, own, (*away as f64 / *period as f64 * own as f64).round() as u64)
                }
            },
            Pattern::Job { away, period, .. } => (period - random.below(*period), *period, *away),
            Pattern::Daemon { interval, .. } => {
                // Time 0 is independent of the daemon: it is uniform in the interval in progress.
                let under_way = interval.met(&mut random);
                (random.below(under_way), 0, 0)
            }
            Pattern::Recorded { length, cpus } => {
                let shift = if source.together { 0 } else { random.below(*length) };
                let first = cpus[rank as usize % cpus.len()].partition_point(|interval| interval.0 < shift);
                (0, shift, first as u64)
            }
        };
        let late = match source.pattern {
            Pattern::Turns { skew, .. } if skew > 0 => random.below(skew + 1),
            _ => 0,
        };
        let mut stream =
            Self { start: 0, length: 0, cause: source.cause, source: place as u16, random, at, period, step, late };
        stream.next(source, rank);
        stream
    }

    /// Advances to the next interval.
    pub fn next(&mut self, source: &Ready, rank: u32) {
        loop {
            if self.at >= NEVER {
                self.start = u64::MAX;
                return;
            }
            match &source.pattern {
                Pattern::Turns { skew, drawn, .. } => {
                    self.start = (self.at + self.late).saturating_sub(self.step);
                    if *skew > 0 && *drawn == SkewDrawn::PerQuantum {
                        self.late = self.random.below(skew + 1);
                    }
                    self.length = (self.at + self.late).saturating_sub(self.start);
                    self.at += self.period;
                }
                Pattern::Job { moved, .. } => {
                    self.start = self.at.saturating_sub(self.step);
                    self.length = self.at - self.start;
                    self.at += self.period;
                    if let Some((after, cost)) = moved {
                        if self.start >= *after {
                            (self.start, self.length, self.at) = (*after, *cost, NEVER);
                        } else {
                            self.length = self.length.min(after - self.start);
                        }
                    }
                }
                Pattern::Daemon { interval, duration } => {
                    self.start = self.at;
                    self.length = duration.draw(&mut self.random);
                    self.at = self.at.saturating_add(interval.draw(&mut self.random));
                }
                Pattern::Recorded { length, cpus } => {
                    let intervals = &cpus[rank as usize % cpus.len()];
                    if intervals.is_empty() {
                        self.at = NEVER;
                        continue;
                    }
                    if self.step as usize >= intervals.len() {
                        self.step = 0;
                        self.at += length;
                    }
                    let (start, length, cause) = intervals[self.step as usize];
                    // In the first round the list is entered at the shift, so this is never below 0.
                    self.start = self.at + start - self.period;
                    self.length = length;
                    self.cause = source.cause + cause;
                    self.step += 1;
                }
            }
            if self.length > 0 {
                self.length += source.cost;
                return;
            }
        }
    }
}
