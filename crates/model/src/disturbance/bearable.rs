//! The calculator: which quantum, skew, daemon, share, work, number of ranks keeps a stated slowdown.

use crosswind_schema::disturbance::{Disturbance, Phases, Source};
use crosswind_schema::units::Quantity;

use super::bounds::{Bounds, bounds, independent, recorded_loads};
use crate::error::{ModelError, at_least_zero};

/// On which side of a limit is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It must not be more.
    AtMost,
    /// It must not be less.
    AtLeast,
}

/// What a field may be so that its source alone keeps the stated slowdown.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The cause that it is about.
    pub cause: String,
    /// Path of the field in the disturbance file; `ranks` and `work_per_barrier_s` are the program's own.
    pub field: String,
    /// What it is now (of a distribution: its mean).
    pub given: f64,
    /// On which side is well.
    pub relation: Relation,
    /// The limit.
    pub limit: f64,
    /// Unit of both; empty for a pure number.
    pub unit: &'static str,
}

impl Limit {
    /// Whether it is kept now.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        match self.relation {
            Relation::AtMost => self.given <= self.limit,
            Relation::AtLeast => self.given >= self.limit,
        }
    }
}

/// What a program can bear.
#[derive(Clone, Debug, PartialEq)]
pub struct Bearable {
    /// What to expect of the disturbance as it is.
    pub expected: Bounds,
    /// What each field may be.
    pub limits: Vec<Limit>,
}

/// What a disturbance may be for a barrier program of so many ranks, each of which computes `work_per_barrier_s` between two
/// barriers, to be slowed by at most `slowdown` (above 1) by each source alone.
///
/// The closed forms of [`super::slowdown`], solved for one field at a time, all others as they are: `s + c <= Q (1 - 1/S)` for
/// skew; `(J - 1) Q <= (J S - 1) w - c` for local scheduling (the side `w <= Q`, where the limit always lies unless `c` is large);
/// `d + c <= I (1 - S^(-1/P))` for daemons; `p >= 1/S` for a shared node.
///
/// # Errors
/// An argument out of its range.
pub fn bearable(
    disturbance: &Disturbance,
    ranks: u32,
    work_per_barrier_s: f64,
    slowdown: f64,
) -> Result<Bearable, ModelError> {
    if ranks == 0 {
        return Err(ModelError::argument("ranks", "is 0; it must be at least 1"));
    }
    let work = at_least_zero(|| "work_per_barrier_s".into(), work_per_barrier_s, "s", true)?;
    if !(slowdown > 1.0 && slowdown < f64::INFINITY) {
        return Err(ModelError::argument("slowdown", format!("is {slowdown}; it must be finite and greater than 1")));
    }
    disturbance.check_ranks(ranks).map_err(|error| ModelError::Platform(Box::new(error)))?;
    let cost = disturbance.return_cost_s();
    let lost = 1.0 - 1.0 / slowdown;
    let mut limits = Vec::new();
    for (at, source) in disturbance.sources.iter().enumerate() {
        let mut limit = |field: &str, given: f64, relation: Relation, limit: f64, unit: &'static str| {
            let of_program = ["ranks", "work_per_barrier_s"].contains(&field);
            let field = if of_program { field.to_owned() } else { format!("source[{at}].{field}") };
            let cause = source.causes().join(", ");
            limits.push(Limit { cause, field, given, relation, limit: limit.max(0.0), unit });
        };
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
                    limit("quantum_s", quantum, Relation::AtMost, (room * work - cost) / others, "s");
                    limit("work_per_barrier_s", work, Relation::AtLeast, (others * quantum + cost) / room, "s");
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
    Ok(Bearable { expected: bounds(disturbance, ranks, Some(work))?, limits })
}

/// Ranks that together keep a slowdown, each with this load at times of its own.
fn most_ranks(load: f64, slowdown: f64) -> f64 {
    (slowdown.ln() / -(1.0 - load).ln()).floor()
}
