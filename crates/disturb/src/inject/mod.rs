//! Injects a disturbance into a command and all its processes: `crosswind inject disturbance.toml -- COMMAND`.
//!
//! | question | module |
//! |---|---|
//! | what is injected, and how? | [`script`] |
//! | which processes are the command's, and which rank is each? | [`processes`] |
//! | how does the command start and end? | `command` |
//! | when is time 0? | `start` |
//! | what keeps the time? | `rank`: a thread per rank |
//! | how is a processor taken away? | [`hold`] (stopped by tracing, or frozen in a [`group`]), or by a thread of higher [`priority`] |
//! | what does the processor do meanwhile? | [`busy`] |
//! | what undoes it in every case? | the kernel or `crosswind_linux::freezer` for holds, `crosswind_linux::watchdog` for the rest (`changes`) |
//! | what runs all that? | `supervisor` |
//! | what was actually injected? | [`outcome`] |
//!
//! It does not depend on Python and draws no random numbers: the intervals are supplied by a script.

pub mod busy;
mod changes;
mod command;
pub mod group;
pub mod hold;
pub mod options;
pub mod outcome;
pub mod priority;
pub mod processes;
mod rank;
pub mod script;
mod start;
pub mod summary;
mod supervisor;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::outcome::{How, Outcome};
use self::rank::locked;
use self::script::Script;
use crate::DisturbError;
use crosswind_linux::Waker;

#[derive(Clone, Debug)]
pub struct InjectConfig {
    pub command: Vec<OsString>,
    /// Ranks that the command will have; others are left alone. `None`: every rank that is found.
    pub ranks: Option<u32>,
    pub limit: Duration,
    /// Method for every interval; `None`: the one that suits its cause.
    pub how: Option<How>,
    /// Binds rank r to the r-th CPU that this process may use, wrapping around.
    pub pin: bool,
    /// Keeps the processors of a rank busy while it is held.
    pub busy: bool,
    /// At the time limit, ends the disturbance and lets the command run on; otherwise the command is ended too.
    pub keep_running: bool,
    /// Time 0 of the disturbance is when the command creates this file; `None`: when the command starts.
    pub start_file: Option<PathBuf>,
    /// Redirects the command's stdout to this process's stderr.
    pub stdout_to_stderr: bool,
}

/// A running injection, on a thread of its own.
#[derive(Debug)]
pub struct Injection {
    stop: Arc<(Waker, Mutex<Option<i32>>)>,
    thread: Option<JoinHandle<Result<Outcome, DisturbError>>>,
    began: Instant,
}

impl Injection {
    /// Starts the watchdog, then the command, then its disturbance.
    ///
    /// # Errors
    /// When the program does not exist, or the watchdog or the method `how` is not available.
    pub fn start(config: InjectConfig, script: Arc<dyn Script>) -> Result<Self, DisturbError> {
        let stop = Arc::new((Waker::new().map_err(DisturbError::system("creating a waker"))?, Mutex::new(None)));
        let begun = supervisor::begin(config, script, stop.clone())?;
        let began = Instant::now();
        Ok(Self { stop, thread: Some(std::thread::spawn(move || begun.supervise())), began })
    }

    /// Requests its end with a signal, which the command also receives.
    pub fn stop(&self, signal: i32) {
        let (waker, stop) = &*self.stop;
        locked(stop).get_or_insert(signal);
        waker.wake();
    }

    /// Waits for its end, at most `most`. Returns whether it has ended.
    #[must_use]
    pub fn wait(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while !self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5).min(most));
        }
        true
    }

    /// Returns the seconds since its start.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits for the end and takes the outcome.
    ///
    /// # Errors
    /// The first failure; all changes are undone in any case.
    pub fn outcome(&mut self) -> Result<Outcome, DisturbError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(DisturbError::Setup("the thread that supervises the command broke down".into())),
            None => Err(DisturbError::Setup("the outcome was taken already".into())),
        }
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop(libc::SIGTERM);
            let _ = self.outcome(); // the result is no longer needed
        }
    }
}
