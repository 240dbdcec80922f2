//! Executors, which do the work of tasks, and the thread that they run on.
//!
//! An executor works on one task at a time. Work that costs less than handing it to another thread may run on the agent's
//! own thread ([`Executor::immediate`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crosswind_agent::action::{Trying, Worked};

use crate::error::panic_message;
use crate::farm::capture::Capture;
use crate::farm::payload::Payload;
use crate::farm::printer::{Lines, Printer};
use crate::farm::task_processes::Canceller;
use crosswind_linux::{self as linux, Waker};

#[derive(Debug)]
pub struct Job {
    pub task: u64,
    /// Work units; 0 if unknown.
    pub work: f64,
    pub input: Payload,
    /// The names of its input and of its result, separated by a 0 byte, if it has any.
    pub name: Option<Arc<[u8]>>,
    /// For a batch of calls: where the outcomes of its first calls go before it ends.
    pub early: Option<Early>,
    /// Where what it prints goes. `None` where that is not shown.
    pub printer: Option<Arc<Printer>>,
}

/// Where the outcomes of a batch's first calls go while it is computed.
#[derive(Clone)]
pub struct Early {
    task: u64,
    shared: Arc<Shared>,
}

impl Early {
    /// Passes on the outcomes of the first calls. The calls after the one in progress must not be computed here.
    pub fn pass(&self, outcomes: Vec<u8>) {
        self.shared.mailbox().partial.push((self.task, outcomes));
        self.shared.waker.wake();
    }

    /// Returns whether what calls print is shown: then [`Self::begin_call`] says whose it is.
    #[must_use]
    pub fn shows_prints(&self) -> bool {
        self.shared.prints.printer.is_some() && self.shared.prints.capture.is_some()
    }

    /// Returns whether this process's tasks have printed anything that was shown.
    #[must_use]
    pub fn has_shown_prints(&self) -> bool {
        self.shared.prints.capture.as_ref().is_some_and(|capture| capture.has_shown())
    }

    /// Begins a call of the batch, by its number from 1: what is printed from now on is its. 0: it is not known whose.
    pub fn begin_call(&self, call: u32) {
        if let (Some(capture), Some(printer)) = (&self.shared.prints.capture, &self.shared.prints.printer) {
            capture.drain();
            printer.begin_call(call);
        }
    }
}

impl std::fmt::Debug for Early {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Early").field("task", &self.task).finish_non_exhaustive()
    }
}

/// The outcome of a task.
#[derive(Debug)]
pub struct Answer {
    /// Whether the output is a result; otherwise it is the text of an error.
    pub ok: bool,
    /// The result, or the error text in UTF-8.
    pub output: Payload,
}

impl Answer {
    #[must_use]
    pub fn of(output: Payload) -> Self {
        Self { ok: true, output }
    }

    /// Creates a failed answer with the reason.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self { ok: false, output: Payload::bytes(why.into().into_bytes()) }
    }
}

/// Does the work of tasks.
pub trait Executor: Send {
    /// Does the work of one task. A failure is returned as an answer.
    fn run(&mut self, job: &Job) -> Answer;

    /// Returns whether every task takes at most a few microseconds.
    fn immediate(&self) -> bool {
        false
    }

    /// Returns a handle that cancels the running task from another thread. `None` if the task cannot be cancelled.
    fn canceller(&self) -> Option<Canceller> {
        None
    }

    /// Returns whether the executor itself ends a task that exceeds its time limit. If not, only ending the process does.
    fn ends_by_itself(&self) -> bool {
        self.immediate()
    }
}

/// Creates an executor on the thread that will run it.
pub type ExecutorFactory = Box<dyn FnOnce() -> Result<Box<dyn Executor>, String> + Send>;

pub struct Noop;

impl Executor for Noop {
    fn run(&mut self, _: &Job) -> Answer {
        Answer::of(Payload::bytes(Vec::new()))
    }

    fn immediate(&self) -> bool {
        true
    }
}

/// Runs an executor on a job, and again after each failure until `retries` are used up. Also returns when the last attempt
/// began, ns. A panic is a failure, so that the farm neither waits for this task nor loses the agent.
pub(crate) fn work(
    executor: &mut dyn Executor,
    job: &Job,
    retries: u32,
    trying: &dyn Fn(Trying),
) -> (Worked<Payload>, u64) {
    let began_ns = linux::now_ns();
    let (mut tried, mut last_began_ns) = (1, began_ns);
    let answer = loop {
        trying(Trying { task: job.task, tried, began_ns: last_began_ns });
        let answer = catch_unwind(AssertUnwindSafe(|| executor.run(job))).unwrap_or_else(|panic| {
            Answer::failed(format!("a fault of Crosswind: the executor panicked: {}", panic_message(&*panic)))
        });
        if answer.ok || tried > retries {
            break answer;
        }
        tried += 1;
        last_began_ns = linux::now_ns();
    };
    let Answer { ok, output } = answer;
    let worked = Worked { task: job.task, ok, output, began_ns, ended_ns: linux::now_ns(), tried };
    (worked, last_began_ns)
}

#[derive(Default)]
struct Mailbox {
    jobs: VecDeque<Job>,
    worked: Vec<(Worked<Payload>, u64)>,
    /// Batches that have not ended, with the outcomes of their first calls.
    partial: Vec<(u64, Vec<u8>)>,
    ended: bool,
    failure: Option<String>,
    canceller: Option<Canceller>,
    /// The attempt in progress, if only ending the process can stop it.
    trying: Option<Trying>,
}

struct Shared {
    mailbox: Mutex<Mailbox>,
    given: Condvar,
    waker: Arc<Waker>,
    prints: Prints,
}

/// Where what tasks print goes.
#[derive(Clone, Default)]
pub(crate) struct Prints {
    /// `None` where the run does not show it.
    pub printer: Option<Arc<Printer>>,
    /// What captures it, if tasks are computed in this process and not by commands.
    pub capture: Option<Arc<Capture>>,
}

impl Prints {
    fn begin(&self, task: u64) {
        if let Some(printer) = &self.printer {
            printer.begin(task);
        }
    }

    /// Passes on what is left of what a task printed, before its result.
    fn end(&self) {
        if let Some(capture) = &self.capture {
            capture.drain();
        }
        if let Some(printer) = &self.printer {
            printer.end();
        }
    }
}

impl Shared {
    fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct ComputeThread(Arc<Shared>);

/// What the computing thread has done.
pub(crate) struct Done {
    /// Batches that had not ended, with the outcomes of their first calls.
    pub partial: Vec<(u64, Vec<u8>)>,
    /// Each with the start of its last attempt, ns.
    pub worked: Vec<(Worked<Payload>, u64)>,
    pub printed: Vec<Lines>,
}

impl ComputeThread {
    pub fn start(factory: ExecutorFactory, retries: u32, waker: Arc<Waker>, prints: Prints) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { mailbox: Mutex::default(), given: Condvar::new(), waker, prints });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("cw-compute".into()).spawn(move || run(factory, retries, &own))?;
        Ok(Self(shared))
    }

    pub fn give(&self, mut job: Job, is_batch: bool) {
        job.early = is_batch.then(|| Early { task: job.task, shared: Arc::clone(&self.0) });
        job.printer.clone_from(&self.0.prints.printer);
        self.0.mailbox().jobs.push_back(job);
        self.0.given.notify_one();
    }

    /// Returns what the thread has done since the last call, or the reason why no executor could be made.
    pub fn take(&self) -> Result<Done, String> {
        let mut mailbox = self.0.mailbox();
        if let Some(failure) = mailbox.failure.take() {
            return Err(failure);
        }
        let (partial, worked) = (std::mem::take(&mut mailbox.partial), std::mem::take(&mut mailbox.worked));
        drop(mailbox);
        // After the tasks that have ended: all that they printed is among it.
        let printed = self.0.prints.printer.as_ref().map(|printer| printer.take()).unwrap_or_default();
        Ok(Done { partial, worked, printed })
    }

    /// Returns the attempt in progress, if only ending this process can stop it.
    pub fn trying(&self) -> Option<Trying> {
        self.0.mailbox().trying
    }
}

impl Drop for ComputeThread {
    // A running command is ended. A user's function keeps running, because only ending the process stops it.
    fn drop(&mut self) {
        let mut mailbox = self.0.mailbox();
        mailbox.ended = true;
        mailbox.jobs.clear();
        if let Some(canceller) = mailbox.canceller.take() {
            canceller.cancel();
        }
        self.0.given.notify_one();
    }
}

fn run(factory: ExecutorFactory, retries: u32, shared: &Shared) {
    let made = catch_unwind(AssertUnwindSafe(factory)).unwrap_or_else(|panic| {
        Err(format!("a fault of Crosswind: creating the executor panicked: {}", panic_message(&*panic)))
    });
    let mut executor = match made {
        Ok(executor) => executor,
        Err(why) => {
            shared.mailbox().failure = Some(why);
            shared.waker.wake();
            return;
        }
    };
    shared.mailbox().canceller = executor.canceller();
    let note = !executor.ends_by_itself();
    let trying = |trying| {
        if note {
            shared.mailbox().trying = Some(trying);
        }
    };
    loop {
        let job = {
            let idle = |mailbox: &mut Mailbox| mailbox.jobs.is_empty() && !mailbox.ended;
            let mut mailbox = shared.given.wait_while(shared.mailbox(), idle).unwrap_or_else(PoisonError::into_inner);
            match mailbox.jobs.pop_front() {
                Some(job) if !mailbox.ended => job,
                _ => return,
            }
        };
        shared.prints.begin(job.task);
        let worked = work(executor.as_mut(), &job, retries, &trying);
        shared.prints.end();
        let mut mailbox = shared.mailbox();
        mailbox.trying = None;
        mailbox.worked.push(worked);
        drop(mailbox);
        shared.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics on odd tasks.
    struct Panics;

    impl Executor for Panics {
        fn run(&mut self, job: &Job) -> Answer {
            assert!(job.task.is_multiple_of(2), "task {} is odd", job.task);
            Answer::of(Payload::bytes(vec![7]))
        }
    }

    fn job(task: u64) -> Job {
        Job { task, work: 0.0, input: Payload::bytes(Vec::new()), name: None, early: None, printer: None }
    }

    fn thread(factory: ExecutorFactory) -> (ComputeThread, Arc<Waker>) {
        let waker = Arc::new(Waker::new().expect("creating a waker"));
        (ComputeThread::start(factory, 1, Arc::clone(&waker), Prints::default()).expect("starts"), waker)
    }

    fn wait(waker: &Waker) {
        let mut watched = [linux::watch(waker.fd(), true, false)];
        linux::wait(&mut watched, Some(60_000_000_000)).expect("waits");
        assert!(linux::readable(&watched[0]), "the computing thread did not ring");
        waker.clear();
    }

    #[test]
    fn a_panic_fails_its_task_after_the_retries_and_the_thread_computes_the_next() {
        let (thread, waker) = thread(Box::new(|| Ok(Box::new(Panics))));
        thread.give(job(1), false);
        thread.give(job(2), false);
        let mut worked = Vec::new();
        while worked.len() < 2 {
            wait(&waker);
            worked.extend(thread.take().expect("an executor").worked);
        }
        let (failed, done) = (&worked[0].0, &worked[1].0);
        assert_eq!((failed.task, failed.ok, failed.tried), (1, false, 2));
        let why = String::from_utf8(failed.output.read().expect("in memory").as_slice().to_vec()).expect("text");
        assert_eq!(why, "a fault of Crosswind: the executor panicked: task 1 is odd");
        assert_eq!((done.task, done.ok, done.tried), (2, true, 1));
    }

    #[test]
    fn a_panic_while_the_executor_is_created_is_the_reason_why_there_is_none() {
        let (thread, waker) = thread(Box::new(|| panic!("no kernel")));
        wait(&waker);
        let why = thread.take().err().expect("a reason");
        assert_eq!(why, "a fault of Crosswind: creating the executor panicked: no kernel");
    }
}
