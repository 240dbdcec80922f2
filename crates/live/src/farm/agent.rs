//! An agent: one node of a farm as a process. It dials its parent, serves its own children, and ends with the run.
//!
//! When the parent is lost, the agent drops its tasks (the parent's ledger still has them), disconnects its children, and
//! dials again.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_agent::Agent;
use crosswind_agent::action::End;
use crosswind_agent::frame::Refusal;
use crosswind_agent::settings::{RunSettings, Work};
use serde::Deserialize;

use crate::dial::{Handshake, PeerRole, Welcome};
use crate::error::LiveError;
use crate::farm::capture::Capture;
use crate::farm::command::UsersCommand;
use crate::farm::event_loop::EventLoop;
use crate::farm::executor::ExecutorFactory;
use crate::farm::link::Link;
use crate::farm::payload::Spool;
use crate::farm::root::make_room_for;
use crate::farm::runtime::{NodeRuntime, Processor};
use crate::farm::status_file::StatusFile;
use crate::farm::task_processes::marked::Marked;
use crate::farm::task_processes::wait_for_all;
use crate::listener::Listener;
use crate::log::Log;
use crosswind_linux::watchdog::{Undo as _, Watchdog};
use crosswind_linux::{self as linux, Waker, now_ns};

/// Time after the start during which a taken name means that the parent has not yet noticed the death of this agent's
/// predecessor.
const SUCCESSION: Duration = Duration::from_secs(5);

/// Time allowed from SIGKILL to the end of the processes that received it.
const LAST_SIGNAL: Duration = Duration::from_secs(1);

pub struct AgentConfig {
    pub parent: String,
    /// Name of the node in the platform.
    pub name: String,
    /// HOST:PORT where its children connect. `None` for an agent without children.
    pub listen: Option<String>,
    /// Credentials that the agent, its parent and its children use to authenticate each other.
    pub access: Access,
    /// JSON with the node's rates, for a node that the platform does not list. May be empty.
    pub about: String,
    /// Directory for large inputs and results.
    pub spool_directory: PathBuf,
    /// How long to wait for the parent, at the start and after its loss, s.
    pub patience_s: f64,
    /// Descriptor whose end of input ends the agent.
    pub watch_input: Option<RawFd>,
    /// Descriptor on which a byte asks the agent to leave: it returns waiting tasks, finishes the rest, and ends. A
    /// second byte ends it immediately.
    pub leave: Option<RawFd>,
    /// Value of [`MARK`](crate::farm::task_processes::marked::MARK) in this process's environment, if the process is an
    /// agent and nothing else. Processes that tasks leave behind then end with it.
    pub mark: Option<String>,
    /// Directory in which the agent writes its status for another process. `None` writes nothing.
    pub status_file: Option<PathBuf>,
    pub log: Log,
}

/// Options of an agent as received in text form: the fields of [`AgentConfig`] that can be deserialized.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOptions {
    parent: String,
    name: String,
    listen: Option<String>,
    about: String,
    spool_directory: PathBuf,
    patience_s: f64,
    watch_input: Option<RawFd>,
    leave: Option<RawFd>,
    mark: Option<String>,
    #[serde(rename = "standing")]
    status_file: Option<PathBuf>,
    log: Option<PathBuf>,
}

impl AgentOptions {
    /// Builds the configuration and opens the log.
    ///
    /// # Errors
    /// When its log cannot be written.
    pub fn config(self, access: Access) -> Result<AgentConfig, LiveError> {
        Ok(AgentConfig {
            log: Log::at(&self.name, self.log.as_ref())?,
            parent: self.parent,
            name: self.name,
            listen: self.listen,
            access,
            about: self.about,
            spool_directory: self.spool_directory,
            patience_s: self.patience_s,
            watch_input: self.watch_input,
            leave: self.leave,
            mark: self.mark,
            status_file: self.status_file,
        })
    }
}

/// Factory of executors for work that this crate does not implement.
pub trait ExecutorFactories {
    /// Returns the executor factory for the run's work, with the code that the parent sent.
    ///
    /// # Errors
    /// When this agent cannot do it.
    fn factory(&mut self, work: &Work, code: Vec<u8>) -> Result<ExecutorFactory, LiveError>;
}

/// Workshop for the work that this crate implements itself: emulated, no-op and commands. It rejects everything else.
pub struct Bare;

impl ExecutorFactories for Bare {
    fn factory(&mut self, work: &Work, _: Vec<u8>) -> Result<ExecutorFactory, LiveError> {
        Err(LiveError::Setup(format!("this agent does not know how to do {work:?}")))
    }
}

/// Returns the executor factory for the run's work, from `factories` if needed. `None` if the work needs no thread.
///
/// # Errors
/// When this agent cannot do the work.
pub fn factory(
    run: &RunSettings,
    code: Vec<u8>,
    directory: PathBuf,
    factories: &mut dyn ExecutorFactories,
) -> Result<Option<ExecutorFactory>, LiveError> {
    match &run.work {
        Work::Emulated { .. } | Work::Noop => Ok(None),
        Work::Command { line } => {
            let (line, limits) = (line.clone(), run.task_limits.clone());
            Ok(Some(Box::new(move || Ok(Box::new(UsersCommand::new(&line, &limits, &directory)?)))))
        }
        Work::Kernel { .. } | Work::Callable => factories.factory(&run.work, code).map(Some),
    }
}

/// Runs an agent until the run ends. Calls `listening` with the address at which children connect.
///
/// # Errors
/// When the parent can't be reached or refuses, or the work can't be done here.
pub fn run_agent(
    mut config: AgentConfig,
    factories: &mut dyn ExecutorFactories,
    listening: &mut dyn FnMut(&str),
) -> Result<(), LiveError> {
    let mut listener = match &config.listen {
        Some(address) => {
            let listener = Listener::open(address, config.access.clone())?;
            listening(&listener.address().map_err(LiveError::system("listening"))?);
            Some(listener)
        }
        None => None,
    };
    if config.mark.is_some() {
        linux::continue_at_end_of_starter(); // its watchdog, which would end it then, may be stopped as well
    }
    let patience = Duration::from_secs_f64(config.patience_s.clamp(0.1, 1e6));
    let (watch_input, leave) = (config.watch_input, config.leave);
    let still = || {
        let unwatched = watch_input.is_none_or(|fd| !linux::input_has_ended(fd));
        unwatched && leave.is_none_or(|fd| linux::take_waiting(fd) == 0)
    };
    let begun = Instant::now();
    let mut again = false;
    let mut ending = Ending::default();
    loop {
        let handshake = Handshake {
            address: &config.parent,
            role: PeerRole::Parent,
            name: &config.name,
            about: &config.about,
            access: &config.access,
            patience,
            still: &still,
        };
        let welcome = match handshake.dial() {
            Ok(welcome) => welcome,
            // A parent gives this answer until it notices that this agent, or its predecessor, was lost.
            Err(LiveError::Refused { refusal: Refusal::NameTaken, .. }) if again || begun.elapsed() < SUCCESSION => {
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            // The process that started this one has ended, or asked it to leave.
            Err(LiveError::Interrupted) => return Ok(()),
            Err(error) => return Err(error),
        };
        if ending.watchdog.is_none() {
            ending.prepare(config.mark.as_deref(), watch_input, &welcome.admission.run)?;
        }
        let served = serve(&mut config, welcome, listener.as_mut(), factories, ending.capture.clone());
        match served.inspect_err(|error| ending.perform(error))? {
            End::Bye => {
                ending.wait();
                return Ok(());
            }
            End::ParentLost(why) | End::AllLost(why) => {
                config.log.note(&format!("the parent is lost: {why}; dialling again"))
            }
        }
        again = true;
    }
}

/// What an agent undoes at its end: it ends the processes of tasks, and prints as before.
#[derive(Default)]
struct Ending {
    grace: Duration,
    /// Present if tasks can leave processes behind.
    watchdog: Option<(Marked, Watchdog)>,
    /// Present if tasks are computed in this process, which does nothing else.
    capture: Option<Arc<Capture>>,
}

impl Ending {
    /// Before the first task.
    fn prepare(&mut self, mark: Option<&str>, starter: Option<RawFd>, run: &RunSettings) -> Result<(), LiveError> {
        run.check()?;
        self.grace = Duration::from_secs_f64(run.task_limits.grace_s);
        if let (Some(mark), Work::Command { .. } | Work::Callable) = (mark, &run.work) {
            if matches!(run.work, Work::Callable) {
                self.capture = Some(Capture::start().map_err(LiveError::system("capturing what tasks print"))?);
            }
            let marked = Marked::new(mark, self.grace, starter, self.capture.as_ref().map(|capture| capture.rest()));
            let watchdog = marked.watched().map_err(LiveError::system("starting a watchdog"))?;
            self.watchdog = Some((marked, watchdog));
        }
        Ok(())
    }

    /// Cleans up after an error. An agent whose task exceeded its time limit may restart in this process, so no process
    /// of that attempt may remain.
    fn perform(&mut self, error: &LiveError) {
        self.wait();
        if let (LiveError::OverTime { .. }, Some((marked, watchdog))) = (error, self.watchdog.take()) {
            marked.perform();
            watchdog.dismiss();
        }
    }

    /// Waits for commands that are being ended.
    fn wait(&self) {
        wait_for_all(self.grace + LAST_SIGNAL);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(capture) = &self.capture {
            capture.end();
        }
    }
}

fn serve(
    config: &mut AgentConfig,
    welcome: Welcome,
    listener: Option<&mut Listener>,
    factories: &mut dyn ExecutorFactories,
    capture: Option<Arc<Capture>>,
) -> Result<End, LiveError> {
    let Welcome { stream, admission, code, rest } = welcome;
    let run = admission.run;
    run.check()?;
    make_room_for(&run);
    let waker = Arc::new(Waker::new().map_err(LiveError::system("creating a waker"))?);
    let factory = factory(&run, code.clone(), config.spool_directory.clone(), factories)?;
    let processor = Processor::start(&run, factory, &waker, capture)?;
    let starting = || LiveError::system("talking to the parent");
    let chunk = run.policy.chunk_kib.saturating_mul(1024);
    let link = Link::new(stream, &rest, chunk, run.sizes.largest_task_bytes, now_ns()).map_err(starting())?;
    let link = link.accept_functions();
    let over = if matches!(run.work, Work::Command { .. }) { 0 } else { run.sizes.spool_over_bytes };
    let spool = Spool::below(&config.spool_directory, over).map_err(LiveError::system("making a spool"))?;
    let numbers = Some((admission.number, admission.parent));
    let agent = Agent::new(&config.name, numbers, run, admission.running, now_ns())?;
    let node = NodeRuntime::new(agent, Some(Box::new(link)), processor, spool, &mut config.log);
    let mut events = EventLoop::new(node, listener, waker, Arc::new(code));
    (events.watch_input, events.leave) = (config.watch_input, config.leave);
    events.status_file = config.status_file.clone().map(|directory| StatusFile::new(directory, now_ns()));
    let result = events.run();
    if let Some(status_file) = &mut events.status_file {
        status_file.write_all(&events.node.agent);
    }
    // Children end only with the run. If this node is cut off, they dial until it is back.
    if matches!(result, Ok(End::Bye)) {
        events.send_goodbye();
    }
    result
}
