//! Errors of running an experiment's point.

use crosswind_model::ModelError;
use crosswind_program::NoProgram;
use crosswind_schema::DescriptionError;
use crosswind_sim::SimError;

/// Reason why a point has no run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The experiment, or a file that it refers to, is invalid.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// Its tasks cannot be planned.
    #[error(transparent)]
    Plan(#[from] ModelError),
    /// Its program cannot be built.
    #[error(transparent)]
    Program(NoProgram),
    /// A policy of the user's own, without its class.
    #[error(
        "policy.order is {0:?}, a policy of your own: `crosswind run --on sim` and `crosswind.run` simulate it, nothing else does"
    )]
    NoPolicy(&'static str),
    /// A recording does not hold what the run needs.
    #[error("workload.parameters.file: {0}")]
    Recording(String),
    /// The simulation does not end, or was cancelled.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The program's result differs from that of a plain computation.
    #[error("wrong result: {0}")]
    WrongResult(String),
    /// The command for live agents does not use its input.
    #[error("the command {0:?} has no {{input}}: each task's file would not be used")]
    Command(String),
    /// The kind of work does not exist.
    #[error("work is {0:?}; it must be emulated, noop, command, callable, or the name of a kernel")]
    Work(String),
}

impl From<NoProgram> for ExperimentError {
    fn from(error: NoProgram) -> Self {
        match error {
            NoProgram::Description(error) => Self::Description(error),
            error @ (NoProgram::Goal(_)
            | NoProgram::SeveralProcessors { .. }
            | NoProgram::Rendezvous
            | NoProgram::Recorded) => Self::Program(error),
        }
    }
}

impl ExperimentError {
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Command(_) => Some("wc -l < {input}".into()),
            _ => None,
        }
    }
}
