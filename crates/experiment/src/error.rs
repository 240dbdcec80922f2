//! Why an experiment's point comes to no run.

use crosswind_model::ModelError;
use crosswind_program::NoProgram;
use crosswind_schema::DescriptionError;
use crosswind_sim::SimError;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The experiment, or a file that it names, is wrong.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// Its tasks cannot be planned.
    #[error(transparent)]
    Plan(#[from] ModelError),
    /// Its program cannot be made.
    #[error(transparent)]
    Program(NoProgram),
    /// It does not come to an end in virtual time, or was given up.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The program computed something else than a plain computation does.
    #[error("wrong result: {0}")]
    WrongResult(String),
    /// What live agents should do.
    #[error("the command {0:?} has no {{input}}: each task's file would not be used")]
    Command(String),
    /// The same: there is no such work.
    #[error("work is {0:?}; it must be emulated, noop, command, callable, or the name of a kernel")]
    Work(String),
}

impl From<NoProgram> for ExperimentError {
    fn from(error: NoProgram) -> Self {
        match error {
            NoProgram::Description(error) => Self::Description(error),
            error @ NoProgram::Goal(_) => Self::Program(error),
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
