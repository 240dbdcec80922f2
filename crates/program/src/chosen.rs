//! Builds the program that an experiment names from its parameters, both for the simulator and for real ranks.

use crosswind_schema::DescriptionError;
use crosswind_schema::experiment::{Parameters, ProgramExperiment};

use crate::{Bsp, Cholesky, Column, Connect, Em3d, Goal, GoalError, Program, Sample, Skeleton};

/// An operation on a program of any type.
pub trait ProgramVisitor {
    /// The result of the operation.
    type Out;

    fn visit<P: Program>(self, program: &P) -> Self::Out;

    /// Visits a schedule whose ranks have several processors, or send by rendezvous, which is no [`Program`].
    ///
    /// # Errors
    /// [`NoProgram::SeveralProcessors`] or [`NoProgram::Rendezvous`] where the visitor needs a [`Program`].
    fn visit_processors(self, goal: &Goal) -> Result<Self::Out, NoProgram>
    where
        Self: Sized,
    {
        Err(match goal.several_processors() {
            Some(rank) => NoProgram::SeveralProcessors { rank },
            None => NoProgram::Rendezvous,
        })
    }
}

/// Why a program could not be built.
#[derive(Clone, Debug, PartialEq)]
pub enum NoProgram {
    Description(DescriptionError),
    Goal(GoalError),
    /// A rank of the GOAL file has several processors or interfaces.
    SeveralProcessors {
        rank: u32,
    },
    /// Messages of the GOAL file are rendezvous above some size.
    Rendezvous,
    /// The program was recorded: it is made of its recording, not of parameters.
    Recorded,
}

impl std::fmt::Display for NoProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Description(error) => error.fmt(f),
            Self::Goal(error) => write!(f, "workload.parameters.file: {error}"),
            Self::SeveralProcessors { rank } => write!(
                f,
                "workload.parameters.file: operations of rank {rank} name a cpu or nic other than 0, and live ranks have one of \
                 each; `crosswind run --on sim` simulates several"
            ),
            Self::Rendezvous => f.write_str(
                "workload.parameters.rendezvous_above_bytes is given, and live ranks send messages of any size eagerly; leave it \
                 out, or simulate the schedule: `crosswind run --on sim`",
            ),
            Self::Recorded => {
                f.write_str("workload.program is \"recorded\"; a recorded program runs in virtual time only")
            }
        }
    }
}

impl std::error::Error for NoProgram {}

/// Builds the program of a point and passes it to `visitor`. `goal`: text of the GOAL file that the point names.
///
/// # Errors
/// The parameters or the GOAL file are invalid.
pub fn with_program<V: ProgramVisitor>(
    point: &ProgramExperiment,
    goal: Option<&[u8]>,
    visitor: V,
) -> Result<V::Out, NoProgram> {
    let ranks = point.workload.ranks.unwrap_or(1) as u32;
    let seed = point.workload.data_seed(point.seed);
    Ok(match point.workload.parameters().map_err(NoProgram::Description)? {
        Parameters::Bsp(parameters) => visitor.visit(&Bsp::of(&parameters, ranks)),
        Parameters::Cholesky(parameters) => visitor.visit(&Cholesky::new(&parameters, ranks, seed)),
        Parameters::Column(parameters) => visitor.visit(&Column::new(&parameters, ranks, seed)),
        Parameters::Connect(parameters) => visitor.visit(&Connect::new(&parameters, ranks, seed)),
        Parameters::Em3d(parameters) => visitor.visit(&Em3d::new(&parameters, ranks, seed)),
        Parameters::Sample(parameters) => visitor.visit(&Sample::new(&parameters, ranks, seed)),
        Parameters::Nas(parameters) => visitor.visit(&Skeleton::new(&parameters, ranks)),
        Parameters::Recorded(_) => return Err(NoProgram::Recorded),
        Parameters::Goal(parameters) => {
            let mut goal = Goal::parse(goal.unwrap_or_default()).map_err(NoProgram::Goal)?;
            if let Some(above) = parameters.rendezvous_above_bytes {
                goal = goal.with_rendezvous(above);
            }
            if goal.several_processors().is_some() || goal.has_rendezvous() {
                return visitor.visit_processors(&goal);
            }
            visitor.visit(&goal)
        }
    })
}
