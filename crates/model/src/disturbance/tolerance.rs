//! The calculator: which quantum, skew, daemon, share, work, number of ranks keeps a stated slowdown.

use crosswind_schema::disturbance::Disturbance;
use serde::Serialize;

use super::bounds::{Bounds, bounds};
use super::source;
use crate::error::{ModelError, at_least_zero};

/// On which side of a limit is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Relation {
    /// It must not be more.
    #[serde(rename = "at most")]
    AtMost,
    /// It must not be less.
    #[serde(rename = "at least")]
    AtLeast,
}

/// What a field may be so that its source alone keeps the stated slowdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Place of the source that it is about, in the disturbance file.
    pub source: usize,
    /// The cause that it is about.
    pub cause: String,
    /// Path of the field in the disturbance file; `ranks` and `work_per_barrier_s` are the program's own.
    pub field: String,
    /// What it is now (of a distribution: its mean).
    pub given: f64,
    /// On which side is well.
    pub relation: Relation,
    pub limit: f64,
    /// Unit of both; empty for a pure number.
    pub unit: &'static str,
    /// Whether it is kept now.
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
    /// What to expect of the disturbance as it is.
    pub expected: Bounds,
    /// What each field may be.
    pub limits: Vec<Limit>,
}

/// What a disturbance may be for a barrier program of so many ranks, each of which computes `work_per_barrier_s` between two
/// barriers, to be slowed by at most `slowdown` (above 1) by each source alone.
///
/// The closed forms of [`super::slowdown`], solved for one field at a time, all others as they are: `s + c <= Q (1 - 1/S)` for
/// skew; `k ((J - 1) Q + c) <= (J S - 1) w` for local scheduling, where k turns between barriers are the fewest from which on
/// no quantum that is shorter, and no work that is longer, slows the program by more (`k = 1` for `S >= 2 - 1/J` without a cost);
/// `d + c <= I (1 - S^(-1/P))` for daemons; `p >= 1/S` for a shared node.
///
/// # Errors
/// An argument out of its range.
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
