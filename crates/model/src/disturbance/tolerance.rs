//! Calculator of tolerances: which quantum, skew, daemon, share, work or number of ranks keeps a given slowdown.

use crosswind_schema::disturbance::Disturbance;
use serde::Serialize;

use super::bounds::{Bounds, bounds};
use super::source;
use crate::error::{ModelError, at_least_zero};

/// Which side of a limit is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Relation {
    /// The value must not exceed the limit.
    #[serde(rename = "at most")]
    AtMost,
    /// The value must not be below the limit.
    #[serde(rename = "at least")]
    AtLeast,
}

/// Limit of a field for which its source alone keeps the given slowdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Index of the source in the disturbance file.
    pub source: usize,
    /// Cause of the disturbance, as listed by the source.
    pub cause: String,
    /// Path of the field in the disturbance file. `ranks` and `work_per_barrier_s` are the program's own.
    pub field: String,
    /// Current value; for a distribution, its mean.
    pub given: f64,
    /// Which side of the limit is acceptable.
    pub relation: Relation,
    pub limit: f64,
    /// Unit of `given` and `limit`. Empty for a pure number.
    pub unit: &'static str,
    /// Whether the current value keeps the limit.
    pub kept: bool,
}

impl Relation {
    fn holds(self, given: f64, limit: f64) -> bool {
        match self {
            Self::AtMost => given <= limit,
            Self::AtLeast => given >= limit,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// Expected slowdowns of the disturbance as given.
    pub expected: Bounds,
    pub limits: Vec<Limit>,
}

/// Computes the limits of a disturbance's fields for which each source alone slows a barrier program by at most
/// `slowdown` (above 1). The program has `ranks` ranks, each of which computes `work_per_barrier_s` between two
/// barriers.
///
/// Solves the closed forms of [`super::slowdown`] for one field at a time, with all others as given:
/// `s + c <= Q (1 - 1/S)` for skew; `k ((J - 1) Q + c) <= (J S - 1) w` for local scheduling, where k is the smallest
/// number of turns between barriers from which on no shorter quantum and no longer work slows the program more (`k = 1`
/// for `S >= 2 - 1/J` without a cost); `d + c <= I (1 - S^(-1/P))` for daemons; `p >= 1/S` for a shared node.
///
/// # Errors
/// An argument is out of range, or the disturbance does not fit the number of ranks.
pub fn tolerance(
    disturbance: &Disturbance,
    ranks: u32,
    work_per_barrier_s: f64,
    slowdown: f64,
) -> Result<Tolerance, ModelError> {
    if ranks == 0 {
        return Err(ModelError::argument("ranks", "is 0; it must be at least 1"));
    }
    let work = at_least_zero(|| "work_per_barrier_s".into(), work_per_barrier_s, "s", true)?;
    if !(slowdown > 1.0 && slowdown < f64::INFINITY) {
        return Err(ModelError::argument("slowdown", format!("is {slowdown}; it must be finite and greater than 1")));
    }
    disturbance.check_ranks(ranks).map_err(|error| ModelError::Platform(Box::new(error)))?;
    let cost = disturbance.return_cost_s();
    let mut limits = Vec::new();
    for (at, source) in disturbance.sources.iter().enumerate() {
        let mut limit = |field: &str, given: f64, relation: Relation, limit: f64, unit: &'static str| {
            let of_program = ["ranks", "work_per_barrier_s"].contains(&field);
            let field = if of_program { field.to_owned() } else { format!("source[{at}].{field}") };
            let cause = source.causes().join(", ");
            let limit = limit.max(0.0);
            let kept = relation.holds(given, limit);
            limits.push(Limit { source: at, cause, field, given, relation, limit, unit, kept });
        };
        source::limits(source, ranks, work, slowdown, cost, &mut limit);
    }
    Ok(Tolerance { expected: bounds(disturbance, ranks, Some(work))?, limits })
}
