//! The root of a live farm, built from its options.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crosswind_access::Access;
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_live::LiveError;
use crosswind_live::farm::agent::{ExecutorFactories, factory};
use crosswind_live::farm::executor::ExecutorFactory;
use crosswind_live::farm::journal::Journal;
use crosswind_live::farm::result_writer::WriterSettings;
use crosswind_live::farm::root::{Root, RootConfig};
use crosswind_live::farm::task_source::{Own, TaskQueue, task_source};
use crosswind_live::log::Log;
use crosswind_schema::Experiment;
use crosswind_schema::experiment::Tasks;
use crosswind_schema::units::Quantity as _;
use serde::Deserialize;

use crate::work::kernel_factory;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootOptions {
    /// Settings sent to every agent.
    pub run: RunSettings,
    /// HOST:PORT to which children connect.
    pub listen: String,
    /// Directory for inputs and results that are too large for memory.
    pub spool_directory: PathBuf,
    /// Log file; `None`: standard error.
    pub log: Option<PathBuf>,
    /// Directory for the results; `None`: they are returned to the caller.
    pub out: Option<PathBuf>,
    /// Whether a result is reported only once it is on disk.
    pub sync: bool,
    /// An experiment's point whose tasks are run, as JSON; `None`: the caller submits tasks.
    pub drawn: Option<String>,
    pub discard: bool,
}

/// A root that listens and has not started its run.
pub struct Opened {
    /// Runs it to its end; call it on a separate thread.
    pub begin: Box<dyn FnOnce() + Send>,
    /// Queue to submit tasks and take results.
    pub queue: TaskQueue,
    /// HOST:PORT at which it listens.
    pub address: String,
    /// Number of tasks of the point; `None` if the caller submits them.
    pub tasks: Option<u64>,
}

fn wrong(what: &str, error: impl ToString) -> LiveError {
    LiveError::Setup(format!("{what}: {}", error.to_string()))
}

impl RootOptions {
    /// Opens the root. `code` is sent to every agent; `factories` creates the executors of this process.
    ///
    /// # Errors
    /// When the settings, the address or the workload are invalid.
    pub fn open(
        self,
        access: &Access,
        code: Vec<u8>,
        tasks_csv: Option<&[u8]>,
        factories: &mut dyn ExecutorFactories,
        journal: Option<Journal>,
    ) -> Result<Opened, LiveError> {
        let tasks = self.drawn.as_ref().map(|point| {
            let point = Experiment::from_json(point.as_bytes(), "experiment").map_err(|e| wrong("experiment", e))?;
            Tasks::draw(&point.workload, point.seed, tasks_csv).map_err(|error| wrong("tasks", error))
        });
        let tasks = tasks.transpose()?;
        let keeps = self.out.is_some() || journal.is_some();
        let writer_settings = keeps.then_some(WriterSettings { directory: self.out, journal, sync: self.sync });
        let own = factory(&self.run, code.clone(), self.spool_directory.clone(), factories)?;
        let root = self.run.platform.nodes.iter().find(|node| node.parent.is_none());
        let computes = root.is_some_and(|node| node.compute_per_s.get() > 0.0);
        let (blank, time_scale) = match self.run.work {
            Work::Emulated { time_scale, .. } => (true, time_scale),
            _ => (false, 1.0),
        };
        // A root that computes nothing does not load the callable.
        let own: Option<ExecutorFactory> = if computes { own } else { own.map(|_| kernel_factory("burn".into())) };
        let root = Root::open(RootConfig {
            run: self.run,
            listen: self.listen,
            access: access.clone(),
            code,
            spool_directory: self.spool_directory,
            log: Log::at("root", self.log.as_ref())?,
        })?;
        let address = root.address()?;
        let count = tasks.as_ref().map(|tasks| tasks.count);
        let (queue, mut task_source) = task_source(
            root.waker(),
            writer_settings,
            self.discard,
            tasks.map(|tasks| Own { tasks, blank, time_scale }),
        )?;
        let own_queue = queue.clone();
        let begin = Box::new(move || {
            // Threads that wait for results are notified even if this thread panics.
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let ended = root.run(&mut task_source, own);
                task_source.close(ended)
            }));
            own_queue.end(ended.unwrap_or_else(|panic| Err(LiveError::panicked("the root's thread", &*panic))));
        });
        Ok(Opened { begin, queue, address, tasks: count })
    }
}
