//! The program that an experiment names, made of its parameters: once, for virtual time and for real ranks.

use crosswind_program::{Bsp, Cholesky, Column, Connect, Em3d, Goal, GoalError, Program, Sample, Skeleton};
use crosswind_schema::DescriptionError;
use crosswind_schema::experiment::{Parameters, ProgramExperiment};

/// What is to be done with a program, whichever it is.
pub trait With {
    /// What comes of it.
    type Out;

    /// Does it.
    fn with<P: Program>(self, program: &P) -> Self::Out;
}

/// Why there is no program.
pub enum Unmade {
    /// Its parameters are wrong.
    Description(DescriptionError),
    /// Its GOAL file is.
    Goal(GoalError),
}

impl std::fmt::Display for Unmade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Description(error) => error.fmt(f),
            Self::Goal(error) => write!(f, "workload.parameters.file: {error}"),
        }
    }
}

/// Makes the program of a point, and does something with it. `goal`: the text of the GOAL file that the point names.
pub fn with_program<W: With>(point: &ProgramExperiment, goal: Option<&[u8]>, with: W) -> Result<W::Out, Unmade> {
    let ranks = point.workload.ranks.unwrap_or(1) as u32;
    let seed = point.workload.data_seed(point.seed);
    Ok(match point.workload.parameters().map_err(Unmade::Description)? {
        Parameters::Bsp(parameters) => with.with(&Bsp::of(&parameters, ranks)),
        Parameters::Cholesky(parameters) => with.with(&Cholesky::new(&parameters, ranks, seed)),
        Parameters::Column(parameters) => with.with(&Column::new(&parameters, ranks, seed)),
        Parameters::Connect(parameters) => with.with(&Connect::new(&parameters, ranks, seed)),
        Parameters::Em3d(parameters) => with.with(&Em3d::new(&parameters, ranks, seed)),
        Parameters::Sample(parameters) => with.with(&Sample::new(&parameters, ranks, seed)),
        Parameters::Nas(parameters) => with.with(&Skeleton::new(&parameters, ranks)),
        Parameters::Goal(_) => with.with(&Goal::parse(goal.unwrap_or_default()).map_err(Unmade::Goal)?),
    })
}
