//! Errors of the model, with hints on how to fix them.

use crosswind_schema::DescriptionError;

/// An error of the model. Each variant is something that the caller can act on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// An argument is out of range. The sentence names value, unit and range.
    #[error("{field} {sentence}")]
    Argument {
        /// Name of the argument, with its path.
        field: String,
        /// "is -1 MB; it must be ...".
        sentence: String,
    },
    /// The parents do not form one tree, or the platform was changed after its checks.
    #[error("{0}")]
    Platform(Box<DescriptionError>),
    /// A rate, in tasks and seconds, outside the range in which arithmetic is safe: 0, or 1e-100 to 1e100.
    #[error("{what} of node {node} is {value:e} in tasks and seconds; it must be 0 or within 1e-100 to 1e100")]
    Extreme { node: usize, what: &'static str, value: f64 },
    /// A policy without a closed form here.
    #[error("order {order:?} has no closed form {where_}")]
    NoClosedForm {
        /// The order, as written in an experiment.
        order: &'static str,
        /// Place in which it has no closed form.
        where_: &'static str,
    },
    /// The exact search exceeded its budget.
    #[error("{jobs} jobs on {machines} machines: no proof of the optimum within {budget} steps")]
    TooHard { jobs: usize, machines: usize, budget: u64 },
}

impl ModelError {
    pub(crate) fn argument(field: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self::Argument { field: field.into(), sentence: sentence.into() }
    }

    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Argument { .. } => None,
            Self::Platform(error) => error.hint(),
            Self::Extreme { .. } => Some("check the units: MB, MB/s, work units, work units/s".into()),
            Self::NoClosedForm { .. } => Some("a simulation can tell what it reaches".into()),
            Self::TooHard { .. } => Some("ask for fewer jobs, or take the bound of longest-task-first".into()),
        }
    }
}

/// Returns the value if it is finite and at least (or, if `exclusive`, above) 0, and otherwise an error that names it.
#[inline]
pub(crate) fn at_least_zero(
    field: impl FnOnce() -> String,
    value: f64,
    unit: &str,
    exclusive: bool,
) -> Result<f64, ModelError> {
    if (value > 0.0 && value < f64::INFINITY) || (value == 0.0 && !exclusive) {
        return Ok(value);
    }
    Err(out_of_range(field(), value, unit, exclusive))
}

#[cold]
fn out_of_range(field: String, value: f64, unit: &str, exclusive: bool) -> ModelError {
    let relation = if exclusive { "greater than" } else { "at least" };
    ModelError::Argument { field, sentence: format!("is {value} {unit}; it must be finite and {relation} 0 {unit}") }
}
