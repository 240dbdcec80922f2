//! What does the work of a task, and the thread that it runs on.
//!
//! One task at a time. Work so short that handing it to another thread would cost more than itself may run on the agent's
//! own thread ([`Executor::immediate`]).

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::linux::{self, Bell};
use crate::payload::Payload;

/// A task to be worked on.
#[derive(Debug)]
pub struct Job {
    /// Its number.
    pub task: u64,
    /// Work units; 0 where not known.
    pub work: f64,
    /// Its input.
    pub input: Payload,
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    /// Whether it is a result, not an error's text.
    pub ok: bool,
    /// The result, or the text in UTF-8.
    pub output: Payload,
}

impl Answer {
    /// A result.
    #[must_use]
    pub fn of(output: Payload) -> Self {
        Self { ok: true, output }
    }

    /// A failure, with what is known of it.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self { ok: false, output: Payload::bytes(why.into().into_bytes()) }
    }
}

/// Does the work of tasks.
pub trait Executor: Send {
    /// Does the work of one task. A failure is an answer, too.
    fn run(&mut self, job: &Job) -> Answer;

    /// Whether it takes a few microseconds at most, always.
    fn immediate(&self) -> bool {
        false
    }
}

/// Makes an executor, on the thread that will run it.
pub type Maker = Box<dyn FnOnce() -> Result<Box<dyn Executor>, String> + Send>;

/// Nothing.
pub struct Noop;

impl Executor for Noop {
    fn run(&mut self, _: &Job) -> Answer {
        Answer::of(Payload::bytes(Vec::new()))
    }

    fn immediate(&self) -> bool {
        true
    }
}

/// A task that was worked on.
#[derive(Debug)]
pub(crate) struct Worked {
    pub task: u64,
    pub answer: Answer,
    pub began_ns: u64,
    pub ended_ns: u64,
    pub tried: u32,
}

/// Runs an executor, again where it failed and may be tried again.
pub(crate) fn work(executor: &mut dyn Executor, job: &Job, retries: u32) -> Worked {
    let began_ns = linux::now_ns();
    let mut tried = 1;
    let answer = loop {
        let answer = executor.run(job);
        if answer.ok || tried > retries {
            break answer;
        }
        tried += 1;
    };
    Worked { task: job.task, answer, began_ns, ended_ns: linux::now_ns(), tried }
}

#[derive(Default)]
struct Desk {
    jobs: VecDeque<Job>,
    worked: Vec<Worked>,
    ended: bool,
    failure: Option<String>,
}

struct Shared {
    desk: Mutex<Desk>,
    given: Condvar,
    bell: Arc<Bell>,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The computing thread.
pub(crate) struct ComputeThread(Arc<Shared>);

impl ComputeThread {
    pub fn start(maker: Maker, retries: u32, bell: Arc<Bell>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { desk: Mutex::default(), given: Condvar::new(), bell });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("cw-compute".into()).spawn(move || run(maker, retries, &own))?;
        Ok(Self(shared))
    }

    pub fn give(&self, job: Job) {
        self.0.desk().jobs.push_back(job);
        self.0.given.notify_one();
    }

    /// What has been worked on since the last call.
    pub fn take(&self) -> Result<Vec<Worked>, String> {
        let mut desk = self.0.desk();
        desk.failure.take().map_or_else(|| Ok(std::mem::take(&mut desk.worked)), Err)
    }
}

impl Drop for ComputeThread {
    // A user's function that still runs is left to itself: nobody can end it, and nobody waits for it.
    fn drop(&mut self) {
        let mut desk = self.0.desk();
        desk.ended = true;
        desk.jobs.clear();
        self.0.given.notify_one();
    }
}

fn run(maker: Maker, retries: u32, shared: &Shared) {
    let made = maker();
    let mut executor = match made {
        Ok(executor) => executor,
        Err(why) => {
            shared.desk().failure = Some(why);
            shared.bell.ring();
            return;
        }
    };
    loop {
        let job = {
            let idle = |desk: &mut Desk| desk.jobs.is_empty() && !desk.ended;
            let mut desk = shared.given.wait_while(shared.desk(), idle).unwrap_or_else(PoisonError::into_inner);
            match desk.jobs.pop_front() {
                Some(job) if !desk.ended => job,
                _ => return,
            }
        };
        let worked = work(executor.as_mut(), &job, retries);
        let mut desk = shared.desk();
        desk.worked.push(worked);
        drop(desk);
        shared.bell.ring();
    }
}
