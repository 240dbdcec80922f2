//! Closed forms for each kind of disturbance source: its cost to a program, and the limits of its fields. The only
//! place to extend for a new kind.

use crosswind_schema::disturbance::{Phases, Recorded, Source};
use crosswind_schema::units::Quantity;

use super::bounds::Bounds;
use super::slowdown::{self, Daemon};
use super::tolerance::Relation;
use crate::error::ModelError;

/// Accumulated cost of the sources of a disturbance.
#[derive(Default)]
pub(super) struct Costs {
    /// Forms of sources whose slowdowns multiply.
    pub bounds: Bounds,
    /// Fraction of a processor's time that each daemon takes, and the number of ranks on which it runs independently.
    pub loads: Vec<(f64, u32)>,
    pub daemons: Vec<Daemon>,
}

/// Returns the number of ranks on which a source acts at independent times.
pub(super) fn independent(ranks: Option<&[u32]>, aligned: bool, all: u32) -> u32 {
    if aligned { 1.min(all) } else { ranks.map_or(all, |ranks| ranks.len() as u32) }
}

/// Returns, for each recorded CPU, the fraction of time taken and the mean length of an interval, s, both including
/// return costs.
pub(super) fn recorded_loads(recorded: &Recorded, cost: f64) -> Vec<(f64, f64)> {
    let length = recorded.length_s.get();
    let of = |intervals: &[crosswind_schema::disturbance::RecordedInterval]| {
        let away: f64 = intervals.iter().map(|interval| interval.1 + cost).sum();
        (away / length, away / (intervals.len() as f64).max(1.0))
    };
    recorded.cpu.iter().map(|cpu| of(&cpu.intervals)).collect()
}

/// Returns the maximum number of ranks that keep a slowdown, each with this load at independent times.
fn most_ranks(load: f64, slowdown: f64) -> f64 {
    (slowdown.ln() / -(1.0 - load).ln()).floor()
}

/// Adds the cost of a source to a program of `ranks` ranks. `cost`: delay of the end of every interval, s.
pub(super) fn cost(
    source: &Source,
    ranks: u32,
    work_per_barrier_s: Option<f64>,
    cost: f64,
    costs: &mut Costs,
) -> Result<(), ModelError> {
    let times = |bound: &mut Option<f64>, factor: f64| *bound = Some(bound.unwrap_or(1.0) * factor);
    match source {
        Source::Coscheduled(gang) => {
            // A gang of one has no other job's quantum to return from, unless it has skew.
            let cost = if gang.jobs > 1 || gang.skew_s.get() > 0.0 { cost } else { 0.0 };
            let factor = slowdown::skew(gang.quantum_s.get(), gang.skew_s.get(), cost)?;
            if factor > 1.0 {
                times(&mut costs.bounds.skew, factor);
            }
        }
        Source::Local(local) => {
            if let Some(work) = work_per_barrier_s {
                let factor = match local.phases {
                    Phases::Aligned => slowdown::skew(local.quantum_s.get(), 0.0, cost)?,
                    Phases::Spread | Phases::Drifting => {
                        slowdown::local(local.quantum_s.get(), local.jobs, work, cost)?
                    }
                };
                times(&mut costs.bounds.local, factor);
            }
        }
        Source::Daemon(daemon) => {
            let (interval_s, duration_s) = (daemon.interval_s.mean(), daemon.duration_s.mean() + cost);
            let ranks = independent(daemon.ranks.as_deref(), daemon.aligned, ranks);
            costs.loads.push((duration_s / interval_s, ranks));
            costs.daemons.push(Daemon { interval_s, duration_s, ranks });
        }
        Source::Recorded(recorded) => {
            let cpus = recorded_loads(recorded, cost);
            for (cpu, (load, mean)) in (0u32..).zip(&cpus).filter(|(_, (load, _))| *load > 0.0) {
                let count = cpus.len() as u32;
                let here = if recorded.aligned { 1 } else { ranks / count + u32::from(cpu < ranks % count) };
                costs.loads.push((*load, here));
                costs.daemons.push(Daemon { interval_s: mean / load, duration_s: *mean, ranks: here });
            }
        }
        Source::Job(job) => {
            let share = slowdown::effective_share(job.share.get(), job.slice_s.get(), cost);
            let nodes = independent(job.ranks.as_deref(), job.everywhere, ranks);
            times(&mut costs.bounds.shared_nodes, slowdown::shared_node(share)?.powf(f64::from(nodes)));
        }
    }
    Ok(())
}

/// Returns the number of turns between two barriers from which on a program under local scheduling never exceeds the
/// slowdown.
///
/// The slowdown rises with the quantum, and drops whenever one turn less is needed: a sawtooth. `keeps(k)` returns
/// whether the tooth with k + 1 turns keeps the given slowdown up to its tip. If none does (returns cost too much), the
/// result is 1: the limit is then that of quanta not below the work.
fn turns_from(keeps: impl Fn(f64) -> bool) -> f64 {
    (1..=10_000).map(f64::from).find(|&k| keeps(k)).unwrap_or(1.0)
}

/// Reports the limits of a source's fields for a program of `ranks` ranks that computes `work` s between two barriers,
/// for a slowdown of at most `slowdown`. Calls `limit(field, given, relation, limit, unit)` for each.
pub(super) fn limits(
    source: &Source,
    ranks: u32,
    work: f64,
    slowdown: f64,
    cost: f64,
    limit: &mut impl FnMut(&str, f64, Relation, f64, &'static str),
) {
    let lost = 1.0 - 1.0 / slowdown;
    match source {
        Source::Coscheduled(gang) => {
            let (quantum, skew) = (gang.quantum_s.get(), gang.skew_s.get());
            if gang.jobs > 1 || skew > 0.0 {
                limit("skew_s", skew, Relation::AtMost, quantum * lost - cost, "s");
                limit("quantum_s", quantum, Relation::AtLeast, (skew + cost) / lost, "s");
            }
        }
        Source::Local(local) if local.jobs > 1 => {
            let quantum = local.quantum_s.get();
            if local.phases == Phases::Aligned {
                limit("quantum_s", quantum, Relation::AtLeast, cost / lost, "s");
            } else {
                let jobs = f64::from(local.jobs);
                let (others, room) = (jobs - 1.0, jobs * slowdown - 1.0);
                let turns = turns_from(|k| {
                    let quantum = work / k + cost;
                    work + (k + 1.0) * (others * quantum + cost) <= slowdown * jobs * work
                });
                let most = (room * work - turns * cost) / (turns * others);
                limit("quantum_s", quantum, Relation::AtMost, most, "s");
                let turns = turns_from(|k| {
                    let work = k * (quantum - cost);
                    work + (k + 1.0) * (others * quantum + cost) <= slowdown * jobs * work
                });
                limit("work_per_barrier_s", work, Relation::AtLeast, turns * (others * quantum + cost) / room, "s");
            }
        }
        Source::Local(_) => {}
        Source::Daemon(daemon) => {
            let (interval, duration) = (daemon.interval_s.mean(), daemon.duration_s.mean());
            let alone = independent(daemon.ranks.as_deref(), daemon.aligned, ranks);
            let part = 1.0 - slowdown.powf(-1.0 / f64::from(alone));
            limit("duration_s", duration, Relation::AtMost, interval * part - cost, "s");
            limit("interval_s", interval, Relation::AtLeast, (duration + cost) / part, "s");
            if daemon.ranks.is_none() && !daemon.aligned {
                limit(
                    "ranks",
                    f64::from(ranks),
                    Relation::AtMost,
                    most_ranks((duration + cost) / interval, slowdown),
                    "",
                );
            }
        }
        Source::Recorded(recorded) => {
            let loads = recorded_loads(recorded, cost);
            let mean = loads.iter().map(|(load, _)| load).sum::<f64>() / loads.len() as f64;
            if mean > 0.0 && !recorded.aligned {
                limit("ranks", f64::from(ranks), Relation::AtMost, most_ranks(mean, slowdown), "");
            }
        }
        Source::Job(job) => {
            let nodes = independent(job.ranks.as_deref(), job.everywhere, ranks);
            let (needed, per_slice) = (slowdown.powf(-1.0 / f64::from(nodes)), cost / job.slice_s.get());
            let share = (needed + per_slice) / (1.0 + per_slice);
            limit("share", job.share.get(), Relation::AtLeast, share, "");
        }
    }
}
