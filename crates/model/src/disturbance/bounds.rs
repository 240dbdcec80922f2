//! The closed forms that apply to a disturbance file.

use std::collections::BTreeMap;

use crosswind_schema::disturbance::Disturbance;

use super::slowdown;
use super::source::{self, Costs};
use crate::error::ModelError;

/// Slowdowns, each due to one kind of source alone. `None`: the disturbance has no such source, or the form needs a
/// work between barriers that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Local scheduling, for a barrier program of many ranks: an estimate; with few or drifting ranks, an upper bound.
    pub local: Option<f64>,
    /// Skew of quanta and return costs: an upper bound for any program.
    pub skew: Option<f64>,
    /// Daemons and recordings: approximate minimum for a barrier program.
    pub daemons_exposed: Option<f64>,
    /// Daemons and recordings: an upper bound for any program.
    pub daemons_union: Option<f64>,
    /// Daemons and recordings, if no two coincided.
    pub daemons_additive: Option<f64>,
    /// Jobs on some nodes: for a program with the same work on all ranks; an upper bound for any program.
    pub shared_nodes: Option<f64>,
}

impl Bounds {
    /// Returns those that apply, by name, as stored in files.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<String, f64> {
        self.named().map(|(name, bound)| (name.to_owned(), bound)).collect()
    }

    /// Returns those that apply, with their names.
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

/// Evaluates the closed forms that apply to a disturbance of a program of `ranks` ranks. `work_per_barrier_s`:
/// computing time of each rank between two barriers, or `None` without barriers.
///
/// # Errors
/// A source leaves nothing of a processor, or the work is not positive.
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
    let mut costs = Costs::default();
    for source in &disturbance.sources {
        source::cost(source, ranks, work_per_barrier_s, cost, &mut costs)?;
    }
    let Costs { mut bounds, loads, daemons } = costs;
    if !loads.is_empty() {
        bounds.daemons_union = Some(slowdown::union(&loads)?);
        bounds.daemons_additive = slowdown::additive(&loads)?;
        bounds.daemons_exposed = work_per_barrier_s.map(|work| slowdown::exposed(&daemons, work)).transpose()?;
    }
    Ok(bounds)
}
