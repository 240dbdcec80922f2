//! The closed forms that apply to a disturbance file.

use crosswind_schema::disturbance::{Disturbance, Phases, Recorded, Source};
use crosswind_schema::units::Quantity;

use super::slowdown::{self, Daemon};
use crate::error::ModelError;

/// Slowdowns, each by one kind of source alone; `None`: the disturbance has no such source, or the form needs a work between
/// barriers that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Local scheduling, a barrier program of many ranks: about, and with few or drifting ranks at most.
    pub local: Option<f64>,
    /// Skew of quanta and return costs: at most, whatever the program.
    pub skew: Option<f64>,
    /// Daemons and recordings: about the least of a barrier program.
    pub daemons_exposed: Option<f64>,
    /// Daemons and recordings: at most, whatever the program.
    pub daemons_union: Option<f64>,
    /// The same if no two coincided.
    pub daemons_additive: Option<f64>,
    /// Jobs on some nodes: of a program with the same work on all ranks; at most, whatever the program.
    pub shared_nodes: Option<f64>,
}

impl Bounds {
    /// Those that apply, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("local", self.local),
            ("skew", self.skew),
            ("daemons_exposed", self.daemons_exposed),
            ("daemons_union", self.daemons_union),
            ("daemons_additive", self.daemons_additive),
            ("shared_nodes", self.shared_nodes),
        ]
        .into_iter()
        .filter_map(|(name, bound)| Some((name, bound?)))
    }
}

/// How many ranks have a source at times of their own.
pub(super) fn independent(ranks: Option<&[u32]>, aligned: bool, all: u32) -> u32 {
    if aligned { 1.min(all) } else { ranks.map_or(all, |ranks| ranks.len() as u32) }
}

/// Part of each recorded CPU's time that is taken, and how long an interval is on average, s, return costs counted.
pub(super) fn recorded_loads(recorded: &Recorded, cost: f64) -> Vec<(f64, f64)> {
    let length = recorded.length_s.get();
    let of = |intervals: &[crosswind_schema::disturbance::RecordedInterval]| {
        let away: f64 = intervals.iter().map(|interval| interval.1 + cost).sum();
        (away / length, away / (intervals.len() as f64).max(1.0))
    };
    recorded.cpu.iter().map(|cpu| of(&cpu.intervals)).collect()
}

/// The closed forms that apply to a disturbance of a program of so many ranks, that computes `work_per_barrier_s` on each between
/// two barriers, where it has barriers.
///
/// # Errors
/// When a source leaves nothing of a processor, or the work is not positive.
///
/// # Examples
/// ```
/// use crosswind_model::disturbance::bounds;
/// use crosswind_schema::Disturbance;
/// let text = "schema_version = 1\nname = \"d\"\n[[source]]\nkind = \"local\"\nquantum_s = 0.1\n";
/// let disturbance = Disturbance::from_toml(text.as_bytes(), "d.toml")?;
/// let bounds = bounds(&disturbance, 64, Some(0.0071))?;
/// assert_eq!(bounds.named().map(|(name, _)| name).collect::<Vec<_>>(), ["local"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bounds(disturbance: &Disturbance, ranks: u32, work_per_barrier_s: Option<f64>) -> Result<Bounds, ModelError> {
    let cost = disturbance.return_cost_s();
    let mut bounds = Bounds::default();
    let (mut loads, mut daemons) = (Vec::new(), Vec::new());
    let times = |bound: &mut Option<f64>, factor: f64| *bound = Some(bound.unwrap_or(1.0) * factor);
    for source in &disturbance.sources {
        match source {
            Source::Coscheduled(gang) => {
                // A gang of one has no other job's quantum to return from, but for its skew.
                let cost = if gang.jobs > 1 || gang.skew_s.get() > 0.0 { cost } else { 0.0 };
                let factor = slowdown::skew(gang.quantum_s.get(), gang.skew_s.get(), cost)?;
                if factor > 1.0 {
                    times(&mut bounds.skew, factor);
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
                    times(&mut bounds.local, factor);
                }
            }
            Source::Daemon(daemon) => {
                let (interval_s, duration_s) = (daemon.interval_s.mean(), daemon.duration_s.mean() + cost);
                let ranks = independent(daemon.ranks.as_deref(), daemon.aligned, ranks);
                loads.push((duration_s / interval_s, ranks));
                daemons.push(Daemon { interval_s, duration_s, ranks });
            }
            Source::Recorded(recorded) => {
                let cpus = recorded_loads(recorded, cost);
                for (cpu, (load, mean)) in (0u32..).zip(&cpus).filter(|(_, (load, _))| *load > 0.0) {
                    let count = cpus.len() as u32;
                    let here = if recorded.aligned { 1 } else { ranks / count + u32::from(cpu < ranks % count) };
                    loads.push((*load, here));
                    daemons.push(Daemon { interval_s: mean / load, duration_s: *mean, ranks: here });
                }
            }
            Source::Job(job) => {
                let share = slowdown::effective_share(job.share.get(), job.slice_s.get(), cost);
                let nodes = independent(job.ranks.as_deref(), job.everywhere, ranks);
                times(&mut bounds.shared_nodes, slowdown::shared_node(share)?.powf(f64::from(nodes)));
            }
        }
    }
    if !loads.is_empty() {
        bounds.daemons_union = Some(slowdown::union(&loads)?);
        bounds.daemons_additive = slowdown::additive(&loads)?;
        bounds.daemons_exposed = work_per_barrier_s.map(|work| slowdown::exposed(&daemons, work)).transpose()?;
    }
    Ok(bounds)
}
