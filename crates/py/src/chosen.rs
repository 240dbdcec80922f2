//! The program that an experiment names, made of its parameters.

use crosswind_program::{Bsp, Cholesky, Column, Connect, Em3d, Program, Sample};
use crosswind_schema::error::{DescriptionError, Problem};
use crosswind_schema::experiment::{Parameters, ProgramExperiment};

/// What is to be done with a program, whichever it is.
pub trait With {
    /// What comes of it.
    type Out;

    /// Does it.
    fn with<P: Program>(self, program: &P) -> Self::Out;
}

/// Makes the program of a point, and does something with it.
pub fn with_program<W: With>(point: &ProgramExperiment, with: W) -> Result<W::Out, DescriptionError> {
    let ranks = point.workload.ranks.unwrap_or(1) as u32;
    Ok(match point.workload.parameters()? {
        Parameters::Bsp(parameters) => with.with(&Bsp::of(&parameters, ranks)),
        Parameters::Cholesky(parameters) => with.with(&Cholesky::new(&parameters, ranks, point.seed)),
        Parameters::Column(parameters) => with.with(&Column::new(&parameters, ranks, point.seed)),
        Parameters::Connect(parameters) => with.with(&Connect::new(&parameters, ranks, point.seed)),
        Parameters::Em3d(parameters) => with.with(&Em3d::new(&parameters, ranks, point.seed)),
        Parameters::Sample(parameters) => with.with(&Sample::new(&parameters, ranks, point.seed)),
        Parameters::Goal(_) => {
            let only = "is \"goal\", which is simulated only: its sends have no data that could be checked";
            return Err(Problem::Value(only.into()).at("workload.program".into()));
        }
    })
}
