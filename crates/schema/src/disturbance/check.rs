//! Checks of disturbances: refuses those that no program can run under and those that are surely mistakes.

use std::collections::HashMap;

use super::{Daemon, Disturbance, Recorded, Source};
use crate::error::{DescriptionError, Problem};
use crate::experiment::{Amount, Distribution};
use crate::read;
use crate::units::{PositiveSeconds, Quantity};

/// Shorter periods would produce too many intervals to process.
const SHORTEST_PERIOD_S: f64 = 1e-6;
/// A hundred years, s: far within 64 bits of nanoseconds.
const LONGEST_S: f64 = 3e9;
const MOST_SOURCES: usize = 1000;
const MOST_CAUSES: usize = 60_000;
/// Most daemon starts within one absence: each is drawn, although none of them costs anything.
const MOST_HIDDEN: f64 = 1e6;
/// Largest share of a processor for daemons and recordings: beyond it, they queue up without end.
const MOST_LOAD: f64 = 0.99;

fn refused(field: impl Into<String>, sentence: impl Into<String>) -> DescriptionError {
    Problem::Value(sentence.into()).at(field.into())
}

fn within(field: String, value: f64, low: f64, high: f64) -> Result<(), DescriptionError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(refused(field, format!("is {value} s; it must be {low:e} to {high:e} s")))
}

impl Disturbance {
    pub(crate) fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        within("switch_cost_s".into(), self.switch_cost_s.get(), 0.0, LONGEST_S)?;
        within("cache_cost_s".into(), self.cache_cost_s.get(), 0.0, LONGEST_S)?;
        if self.sources.len() > MOST_SOURCES {
            return Err(refused(
                "source",
                format!("has {} entries; it must have at most {MOST_SOURCES}", self.sources.len()),
            ));
        }
        let cost = self.return_cost_s();
        let mut known: HashMap<&str, String> = HashMap::new();
        for (at, source) in self.sources.iter().enumerate() {
            let path = format!("source[{at}]");
            check_source(source, &path, cost)?;
            for (number, cause) in source.causes().iter().enumerate() {
                let field = match source {
                    Source::Recorded(_) => format!("{path}.causes[{number}]"),
                    _ => format!("{path}.cause"),
                };
                if cause.is_empty() {
                    return Err(refused(field, "is empty; a cause needs a name"));
                }
                if let Some(first) = known.insert(cause, field.clone()) {
                    return Err(Problem::DuplicateName { name: cause.clone(), first }.at(field));
                }
            }
        }
        if known.len() > MOST_CAUSES {
            return Err(refused("source", format!("has {} causes; it must have at most {MOST_CAUSES}", known.len())));
        }
        self.check_load(cost)?;
        self.check_pace()
    }

    /// Checks that every rank that the sources refer to exists.
    ///
    /// # Errors
    /// The first one that does not.
    pub fn check_ranks(&self, ranks: u32) -> Result<(), DescriptionError> {
        for (at, source) in self.sources.iter().enumerate() {
            for (number, rank) in source.ranks().unwrap_or_default().iter().enumerate() {
                if *rank >= ranks {
                    let sentence = format!(
                        "is {rank}, but the program has {ranks} ranks; it must be 0 to {}",
                        ranks.saturating_sub(1)
                    );
                    return Err(refused(format!("source[{at}].ranks[{number}]"), sentence));
                }
            }
        }
        Ok(())
    }

    /// Refuses a million daemon starts within one absence of the processor: surely a mistake, and slow to process.
    fn check_pace(&self) -> Result<(), DescriptionError> {
        let longest = self.sources.iter().map(longest_slice_s).fold(0.0, f64::max);
        for (at, source) in self.sources.iter().enumerate() {
            let (interval, field) = match source {
                Source::Daemon(daemon) => (daemon.interval_s.mean(), "interval_s"),
                Source::Recorded(recorded) => {
                    let most = recorded.cpu.iter().map(|cpu| cpu.intervals.len()).max().unwrap_or_default();
                    (recorded.length_s.get() / most.max(1) as f64, "length_s")
                }
                Source::Coscheduled(_) | Source::Local(_) | Source::Job(_) => continue,
            };
            if longest / interval > MOST_HIDDEN {
                let sentence = format!(
                    "brings an interval every {interval:e} s, while another source takes the processor for {longest:e} s at \
                     a time; it must be at most {MOST_HIDDEN:e} times as long"
                );
                return Err(refused(format!("source[{at}].{field}"), sentence));
            }
        }
        Ok(())
    }

    /// Checks that daemons and recordings leave a share of every processor.
    fn check_load(&self, cost: f64) -> Result<(), DescriptionError> {
        let mut everywhere = 0.0;
        let mut some: HashMap<u32, f64> = HashMap::new();
        for (at, source) in self.sources.iter().enumerate() {
            let (load, ranks, field) = match source {
                Source::Daemon(daemon) => {
                    let load = (daemon.duration_s.mean() + cost) / daemon.interval_s.mean();
                    (load, daemon.ranks.as_deref(), "duration_s")
                }
                Source::Recorded(recorded) => (recorded_load(recorded, cost), None, "cpu"),
                Source::Coscheduled(_) | Source::Local(_) | Source::Job(_) => continue,
            };
            match ranks {
                None => everywhere += load,
                Some(ranks) => ranks.iter().for_each(|rank| *some.entry(*rank).or_default() += load),
            }
            let most = everywhere + some.values().copied().fold(0.0, f64::max);
            if most > MOST_LOAD {
                let sentence = format!(
                    "brings the daemons' and recordings' part of a processor to {:.4}, return costs counted; it must be at \
                     most {MOST_LOAD}",
                    most
                );
                return Err(refused(format!("source[{at}].{field}"), sentence));
            }
        }
        Ok(())
    }
}

/// Returns the longest time for which a source of time slices takes the processor at once, s.
fn longest_slice_s(source: &Source) -> f64 {
    match source {
        Source::Coscheduled(gang) => gang.quantum_s.get() * f64::from(gang.jobs.saturating_sub(1)),
        Source::Local(local) => local.quantum_s.get() * f64::from(local.jobs.saturating_sub(1)),
        Source::Job(job) => job.slice_s.get().max(job.migrate_cost_s.get()),
        Source::Daemon(_) | Source::Recorded(_) => 0.0,
    }
}

fn recorded_load(recorded: &Recorded, cost: f64) -> f64 {
    let busy = |intervals: &[super::RecordedInterval]| intervals.iter().map(|i| i.1 + cost).sum::<f64>();
    recorded.cpu.iter().map(|cpu| busy(&cpu.intervals)).fold(0.0, f64::max) / recorded.length_s.get()
}

fn check_source(source: &Source, path: &str, cost: f64) -> Result<(), DescriptionError> {
    let field = |name: &str| format!("{path}.{name}");
    match source {
        Source::Coscheduled(gang) => {
            let quantum = gang.quantum_s.get();
            check_turns(quantum, gang.jobs, cost, path)?;
            if gang.skew_s.get() + cost >= quantum {
                let sentence = format!(
                    "is {} s; with the return costs it must be less than quantum_s, {quantum} s",
                    gang.skew_s.get()
                );
                return Err(refused(field("skew_s"), sentence));
            }
        }
        Source::Local(local) => {
            check_turns(local.quantum_s.get(), local.jobs, cost, path)?;
            let drift = local.drift.get();
            if drift >= 1.0 {
                return Err(refused(field("drift"), format!("is {drift}; it must be at least 0 and less than 1")));
            }
            if drift > 0.0 && local.phases != super::Phases::Drifting {
                return Err(refused(field("drift"), format!("is {drift}, but phases is not \"drifting\"")));
            }
            if local.quantum_s.get() * (1.0 - drift) <= cost {
                let sentence = format!("is {drift}, which leaves quanta shorter than the return costs");
                return Err(refused(field("drift"), sentence));
            }
        }
        Source::Daemon(daemon) => check_daemon(daemon, path)?,
        Source::Job(job) => {
            let (slice, share) = (job.slice_s.get(), job.share.get());
            within(field("slice_s"), slice, SHORTEST_PERIOD_S, LONGEST_S)?;
            within(field("migrate_cost_s"), job.migrate_cost_s.get(), 0.0, LONGEST_S)?;
            if let Some(after) = job.migrate_after_s {
                within(field("migrate_after_s"), after.get(), 0.0, LONGEST_S)?;
            } else if job.migrate_cost_s.get() > 0.0 {
                let sentence = format!("is {} s, but there is no migrate_after_s", job.migrate_cost_s.get());
                return Err(refused(field("migrate_cost_s"), sentence));
            }
            if share < 1.0 && slice * share / (1.0 - share) <= cost {
                let sentence = format!("is {share}, which leaves the program slices shorter than the return costs");
                return Err(refused(field("share"), sentence));
            }
            if job.ranks.is_none() && !job.everywhere {
                return Err(Problem::Missing.at(field("ranks")));
            }
            check_list(job.ranks.as_deref(), &field("ranks"))?;
        }
        Source::Recorded(recorded) => check_recorded(recorded, path)?,
    }
    Ok(())
}

fn check_turns(quantum: f64, jobs: u32, cost: f64, path: &str) -> Result<(), DescriptionError> {
    within(format!("{path}.quantum_s"), quantum, SHORTEST_PERIOD_S, LONGEST_S)?;
    if !(1..=1_000_000).contains(&jobs) {
        return Err(refused(format!("{path}.jobs"), format!("is {jobs}; it must be 1 to 1000000")));
    }
    if cost >= quantum {
        let sentence = format!("is {quantum} s; it must be more than the return costs, {cost} s");
        return Err(refused(format!("{path}.quantum_s"), sentence));
    }
    Ok(())
}

fn check_daemon(daemon: &Daemon, path: &str) -> Result<(), DescriptionError> {
    let check = |name: &str, amount: &Amount<PositiveSeconds>, low: f64| {
        let parts: Vec<(&str, f64)> = match amount {
            Amount::Fixed(value) => vec![("", value.get())],
            Amount::Drawn(Distribution::Uniform { low, high }) => vec![(".low", low.get()), (".high", high.get())],
            Amount::Drawn(Distribution::Exponential { mean }) => vec![(".mean", mean.get())],
            Amount::Drawn(Distribution::Lognormal { median, .. }) => vec![(".median", median.get())],
            Amount::Drawn(Distribution::Empirical { values, .. }) => {
                if values.is_empty() {
                    return Err(refused(format!("{path}.{name}.file"), "is of farms only; write its values here"));
                }
                values.iter().map(|value| (".values", value.get())).collect()
            }
        };
        parts.iter().try_for_each(|(part, value)| within(format!("{path}.{name}{part}"), *value, low, LONGEST_S))
    };
    check("interval_s", &daemon.interval_s, SHORTEST_PERIOD_S)?;
    check("duration_s", &daemon.duration_s, 0.0)?;
    check_list(daemon.ranks.as_deref(), &format!("{path}.ranks"))
}

fn check_list(ranks: Option<&[u32]>, field: &str) -> Result<(), DescriptionError> {
    let Some(ranks) = ranks else { return Ok(()) };
    if ranks.is_empty() {
        return Err(refused(field, "is empty; leave it out for all ranks, or name at least one"));
    }
    let mut places: Vec<(u32, usize)> = ranks.iter().copied().zip(0..).collect();
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(()),
        Some(pair) => {
            Err(refused(format!("{field}[{}]", pair[1].1), format!("is {}, as {field}[{}] is", pair[1].0, pair[0].1)))
        }
    }
}

fn check_recorded(recorded: &Recorded, path: &str) -> Result<(), DescriptionError> {
    let length = recorded.length_s.get();
    within(format!("{path}.length_s"), length, SHORTEST_PERIOD_S, LONGEST_S)?;
    if recorded.causes.is_empty() {
        return Err(refused(format!("{path}.causes"), "is empty; every interval has a cause"));
    }
    if recorded.cpu.is_empty() {
        return Err(refused(format!("{path}.cpu"), "is empty; at least one CPU must have been recorded"));
    }
    for (place, cpu) in recorded.cpu.iter().enumerate() {
        let mut free_from = 0.0;
        for (number, interval) in cpu.intervals.iter().enumerate() {
            let field = |part: usize| format!("{path}.cpu[{place}].intervals[{number}][{part}]");
            let (start, duration) = (interval.0, interval.1);
            if !(start >= 0.0 && start < length) {
                let sentence = format!("is {start} s; a start must be at least 0 and less than length_s, {length} s");
                return Err(refused(field(0), sentence));
            }
            if !(duration > 0.0 && duration <= length) {
                let sentence =
                    format!("is {duration} s; a duration must be greater than 0 and at most length_s, {length} s");
                return Err(refused(field(1), sentence));
            }
            if usize::from(interval.2) >= recorded.causes.len() {
                let sentence =
                    format!("is {}; it must be 0 to {}, a place in causes", interval.2, recorded.causes.len() - 1);
                return Err(refused(field(2), sentence));
            }
            // A nanosecond of tolerance for rounding when it was written.
            if start < free_from - 1e-9 {
                let sentence = format!(
                    "is {start} s, before the end of the interval before it, {free_from:.9} s; intervals must be sorted and not \
                     overlap"
                );
                return Err(refused(field(0), sentence));
            }
            if start + duration > length + 1e-9 {
                let sentence = format!("is {duration} s, which ends after length_s, {length} s");
                return Err(refused(field(1), sentence));
            }
            free_from = start + duration;
        }
    }
    Ok(())
}
