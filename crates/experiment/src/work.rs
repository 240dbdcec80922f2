//! The work of a live farm's tasks.

use crosswind_agent::settings::Work;
use crosswind_live::farm::command::uses_input;
use crosswind_live::farm::executor::{Answer, Executor, ExecutorFactory, Job};
use crosswind_live::farm::payload::Payload;
use crosswind_measure::kernel::{self, Kernel as Computing};
use crosswind_schema::Kernel;
use crosswind_schema::experiment::Execution;
use crosswind_schema::units::Quantity;
use serde::Deserialize;

use crate::ExperimentError;

/// Kind of work that agents do for a task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOf {
    /// `emulated`, `noop`, `command`, `callable`, or the name of a kernel.
    pub kind: String,
    /// For kind `command`: the command line, with `{input}` or another placeholder of it, and with `{output}` if it writes its result to a file.
    pub command: Option<String>,
}

impl WorkOf {
    /// Returns the work as sent to agents.
    ///
    /// # Errors
    /// When the kind does not exist, or the command does not use its input.
    pub fn to_live(&self, execution: &Execution, result_size_mb: f64) -> Result<Work, ExperimentError> {
        Ok(match self.kind.as_str() {
            "emulated" => Work::Emulated {
                time_scale: execution.time_scale.get(),
                result_bytes: (result_size_mb * 1e6).round_ties_even() as u64,
            },
            "noop" => Work::Noop,
            "callable" => Work::Callable,
            "command" => match self.command.as_deref().unwrap_or_default() {
                line if uses_input(line) => Work::Command { line: line.into() },
                line => return Err(ExperimentError::Command(line.into())),
            },
            name => match Kernel::named(name) {
                Some(kernel) => Work::Kernel { name: kernel.name().into() },
                None => return Err(ExperimentError::Work(name.into())),
            },
        })
    }
}

/// A compute kernel as the work of tasks.
struct KernelWork(Box<dyn Computing + Send>);

impl Executor for KernelWork {
    fn run(&mut self, job: &Job) -> Answer {
        let steps = (job.work * self.0.steps_per_unit()).ceil() as u64;
        for _ in 0..steps {
            if let Err(error) = self.0.step() {
                return Answer::failed(error.to_string());
            }
        }
        Answer::of(Payload::bytes(Vec::new()))
    }
}

/// Returns a factory that creates the named kernel on the computing thread.
#[must_use]
pub fn kernel_factory(name: String) -> ExecutorFactory {
    Box::new(move || {
        let known = Kernel::named(&name).ok_or_else(|| format!("there is no kernel {name:?}"))?;
        let made = kernel::synthetic(known, kernel::MATRIX, kernel::DIAGONALS).map_err(|error| error.to_string())?;
        Ok(Box::new(KernelWork(made)))
    })
}
