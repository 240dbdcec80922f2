//! A task source for use from other threads. They submit tasks and take results, while the root's event loop runs on its
//! own thread.
//!
//! A thread that submits faster than the tree takes tasks blocks. The tree in turn stops starting tasks while results are
//! not taken. If results are written to files or recorded in a journal, the result writer's thread does so
//! ([`crate::farm::result_writer`]) before they are reported.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosswind_agent::action::TaskBytes as _;
use crosswind_agent::printed::Printed;
use crosswind_agent::recall::{News, Ran};
use crosswind_agent::record::AgentEvent;
use crosswind_schema::experiment::Tasks;

use crate::error::LiveError;
use crate::farm::journal::Identity;
use crate::farm::payload::Payload;
use crate::farm::recalls::Recalls;
use crate::farm::result_writer::{ResultWriter, WriterSettings};
use crate::farm::root::{Delivery, NewTask, RunSummary, Supply, TaskSource};
use crosswind_linux::Waker;

/// Maximum number of submitted tasks that the event loop has not taken.
const WAITING: usize = 1_024;
/// Maximum bytes in memory of those tasks.
const WAITING_BYTES: u64 = 64 << 20;
/// Bytes in memory of untaken results at which no more tasks are started.
const UNTAKEN_BYTES: u64 = 256 << 20;
/// Number of untaken results at which no more tasks are started.
const UNTAKEN: usize = 100_000;

/// How the result of a task is stored.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// File name of the result. If empty, the task number is used.
    pub name: OsString,
    /// Identity of the task in the journal.
    pub identity: Identity,
}

#[derive(Default)]
struct Shared {
    waiting: VecDeque<(NewTask, Label)>,
    waiting_bytes: u64,
    over: bool,
    results: VecDeque<Delivery>,
    untaken_bytes: u64,
    /// Number of results that the result writer has not written yet, and their bytes in memory.
    unkept: usize,
    unkept_bytes: u64,
    interrupted: bool,
    failure: Option<LiveError>,
    ended: Option<Result<RunSummary, LiveError>>,
    has_ended: bool,
    delivered: u64,
    /// Whether tasks have been requested, which means that time 0 has passed.
    begun: bool,
    events: Vec<AgentEvent>,
    recalls: Recalls,
}

impl Shared {
    fn has_room(&self) -> bool {
        self.results.len() + self.unkept < UNTAKEN && self.untaken_bytes + self.unkept_bytes < UNTAKEN_BYTES
    }
}

struct Both {
    shared: Mutex<Shared>,
    changed: Condvar,
    waker: Arc<Waker>,
}

impl Both {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits up to `patience` for a state. `None` if it does not come.
    fn wait_until(&self, patience: Duration, is_so: impl Fn(&Shared) -> bool) -> Option<MutexGuard<'_, Shared>> {
        let until = Instant::now() + patience;
        let mut shared = self.lock();
        while !is_so(&shared) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            shared = self.wait(shared, left);
        }
        Some(shared)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, Shared>, time: Duration) -> MutexGuard<'a, Shared> {
        self.changed.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[derive(Clone)]
pub struct TaskQueue(Arc<Both>);

/// The side that the event loop uses.
pub struct QueuedTasks {
    both: Arc<Both>,
    writer: Option<ResultWriter>,
    /// Whether results are counted and dropped, because the caller does not want them.
    discard: bool,
    drawn: Option<Drawn>,
    labels: HashMap<u64, Label>,
}

/// The workload's own tasks, which no other thread submits.
pub struct Own {
    pub tasks: Tasks,
    /// Whether inputs are blank bytes, which receivers only count. Other inputs are stored, as a user's are.
    pub blank: bool,
    /// Seconds of the platform per second, in which the tasks' arrivals are.
    pub time_scale: f64,
}

/// The workload's own tasks, and which of them have been handed over.
struct Drawn {
    tasks: Tasks,
    time_scale: f64,
    /// When each was delivered, ns since time 0; empty unless tasks arrive over time, or have deadlines or users.
    done: Vec<u64>,
    next: u64,
    blank: bool,
    /// Input of the last task, shared by consecutive tasks of the same size.
    input: Payload,
}

/// Creates both sides of a task source. `own` replaces submitted tasks by the workload's own.
///
/// # Errors
/// When the result writer's thread cannot be started.
pub fn task_source(
    waker: Arc<Waker>,
    settings: Option<WriterSettings>,
    discard: bool,
    own: Option<Own>,
) -> Result<(TaskQueue, QueuedTasks), LiveError> {
    let both = Arc::new(Both { shared: Mutex::default(), changed: Condvar::new(), waker });
    let drawn = own.map(|Own { tasks, blank, time_scale }| {
        let is_timed = tasks.arrivals.is_some() || tasks.users.is_some();
        let done = vec![0; if is_timed { tasks.count as usize } else { 0 }];
        Drawn { tasks, time_scale, done, next: 0, blank, input: Payload::Blank(0) }
    });
    let (kept, failed) = (Arc::clone(&both), Arc::clone(&both));
    let writer = settings.map(|settings| {
        ResultWriter::start(
            settings,
            Box::new(move |results, held| kept.report(results, held, discard)),
            Box::new(move |error| failed.fail(error)),
        )
        .map_err(LiveError::system("starting the thread that keeps results"))
    });
    let task_source =
        QueuedTasks { both: Arc::clone(&both), writer: writer.transpose()?, discard, drawn, labels: HashMap::new() };
    Ok((TaskQueue(both), task_source))
}

impl Both {
    /// Makes results available to the user.
    fn report(&self, results: &mut Vec<Delivery>, held_bytes: u64, discard: bool) {
        let mut shared = self.lock();
        shared.delivered += results.len() as u64;
        shared.unkept = shared.unkept.saturating_sub(results.len());
        shared.unkept_bytes = shared.unkept_bytes.saturating_sub(held_bytes);
        for result in results.iter() {
            shared.recalls.delivered(result.task);
        }
        if discard {
            results.clear();
        }
        shared.untaken_bytes += results.iter().map(|result| result.payload.in_memory()).sum::<u64>();
        shared.results.extend(results.drain(..));
        drop(shared);
        self.changed.notify_all();
    }

    /// Records the error that ends the run.
    fn fail(&self, error: LiveError) {
        self.lock().failure.get_or_insert(error);
        self.waker.wake();
    }
}

impl TaskQueue {
    /// Submits a task. Returns false if there is still no room after `patience`; the task then stays in `task`.
    ///
    /// # Errors
    /// When the run has ended.
    pub fn submit(&self, task: &mut Option<(NewTask, Label)>, patience: Duration) -> Result<bool, LiveError> {
        let until = Instant::now() + patience;
        let mut shared = self.0.lock();
        loop {
            if shared.has_ended {
                return Err(LiveError::Lost("the run has ended; no task can be handed over".into()));
            }
            if shared.waiting.len() < WAITING && (shared.waiting_bytes < WAITING_BYTES || shared.waiting.is_empty()) {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            shared = self.0.wait(shared, left);
        }
        if let Some((task, label)) = task.take() {
            shared.waiting_bytes += task.payload.in_memory();
            // If tasks are waiting, the event loop has already been woken.
            let wakes = shared.waiting.is_empty();
            shared.waiting.push_back((task, label));
            drop(shared);
            if wakes {
                self.0.waker.wake();
            }
        }
        Ok(true)
    }

    pub fn end_of_tasks(&self) {
        self.0.lock().over = true;
        self.0.waker.wake();
    }

    /// Ends the run as soon as possible.
    pub fn interrupt(&self) {
        self.0.lock().interrupted = true;
        self.0.waker.wake();
        self.0.changed.notify_all();
    }

    /// Takes the available results; waits up to `patience` for at least one, or for what tasks print. Returns `None` if
    /// the run has ended and all results are taken.
    #[must_use]
    pub fn results(&self, patience: Duration) -> Option<Vec<Delivery>> {
        self.results_unless(patience, |shared| shared.recalls.has_printed())
    }

    /// As [`Self::results`], but also returns when there is news ([`Self::news`]).
    #[must_use]
    pub fn results_or_news(&self, patience: Duration) -> Option<Vec<Delivery>> {
        self.results_unless(patience, |shared| shared.recalls.has_news() || shared.recalls.has_printed())
    }

    fn results_unless(&self, patience: Duration, enough: impl Fn(&Shared) -> bool) -> Option<Vec<Delivery>> {
        let is_there = |shared: &Shared| !shared.results.is_empty() || shared.has_ended || enough(shared);
        let Some(mut shared) = self.0.wait_until(patience, is_there) else { return Some(Vec::new()) };
        if shared.results.is_empty() {
            return if shared.has_ended { None } else { Some(Vec::new()) };
        }
        let was_full = !shared.has_room();
        shared.untaken_bytes = 0;
        let results = shared.results.drain(..).collect();
        drop(shared);
        if was_full {
            self.0.waker.wake();
        }
        Some(results)
    }

    /// Takes what is known of tasks since the last call.
    #[must_use]
    pub fn news(&self) -> News {
        self.0.lock().recalls.take_news()
    }

    /// Whether tasks printed since the last call of [`Self::printed`].
    #[must_use]
    pub fn has_printed(&self) -> bool {
        self.0.lock().recalls.has_printed()
    }

    /// Takes what tasks printed since the last call, with the names of their nodes. What the tasks of all results that
    /// were taken printed is among it.
    #[must_use]
    pub fn printed(&self) -> Vec<(Arc<str>, Printed)> {
        self.0.lock().recalls.take_printed()
    }

    /// Takes the commands that have ended since the last call. Those of all results that were taken are among them.
    #[must_use]
    pub fn ran(&self) -> Vec<Ran> {
        self.0.lock().recalls.take_ran()
    }

    /// Withdraws tasks that no node has begun. Returns those that wait here; [`Self::recalled`] has the others' answers.
    /// Requests must not overlap.
    #[must_use]
    pub fn recall(&self, tasks: &[u64]) -> Vec<u64> {
        let requested: HashSet<u64> = tasks.iter().copied().collect();
        let mut shared = self.0.lock();
        let (recalled, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut shared.waiting).into_iter().partition(|(task, _)| requested.contains(&task.task));
        shared.waiting = kept;
        shared.waiting_bytes -= recalled.iter().map(|(task, _)| task.payload.in_memory()).sum::<u64>();
        let withdrawn: Vec<u64> = recalled.iter().map(|(task, _)| task.task).collect();
        let here: HashSet<u64> = withdrawn.iter().copied().collect();
        requested.difference(&here).for_each(|task| shared.recalls.ask(*task));
        drop(shared);
        self.0.waker.wake();
        self.0.changed.notify_all();
        withdrawn
    }

    /// Waits up to `patience` for the answers to [`Self::recall`]. Returns whether all are there, or the run has ended.
    #[must_use]
    pub fn recalled(&self, patience: Duration) -> bool {
        self.0.wait_until(patience, |shared| !shared.recalls.is_open() || shared.has_ended).is_some()
    }

    /// Ends a request. Returns the tasks that are withdrawn; the others have begun, are done, or had no answer in time.
    #[must_use]
    pub fn take_withdrawn(&self) -> Vec<u64> {
        self.0.lock().recalls.take_withdrawn()
    }

    /// Waits up to `patience` until the agents are connected and time 0 has passed. Returns whether that is so.
    #[must_use]
    pub fn has_begun(&self, patience: Duration) -> bool {
        self.0.wait_until(patience, |shared| shared.begun || shared.has_ended).is_some_and(|shared| shared.begun)
    }

    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.0.lock().delivered
    }

    /// Returns the events so far, without the first `known`.
    #[must_use]
    pub fn events(&self, known: usize) -> Vec<AgentEvent> {
        self.0.lock().events.get(known..).unwrap_or_default().to_vec()
    }

    /// Records how the run ended.
    pub fn end(&self, result: Result<RunSummary, LiveError>) {
        let mut shared = self.0.lock();
        (shared.ended, shared.has_ended) = (Some(result), true);
        drop(shared);
        self.0.changed.notify_all();
    }

    /// Waits up to `patience` for the end of the run. Returns whether it has ended.
    #[must_use]
    pub fn has_ended(&self, patience: Duration) -> bool {
        self.0.wait_until(patience, |shared| shared.has_ended).is_some()
    }

    /// Takes the outcome of the run. `None` before the end and after the first call that returned it.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<RunSummary, LiveError>> {
        self.0.lock().ended.take()
    }
}

impl QueuedTasks {
    fn next_drawn(&mut self, now_ns: u64) -> Option<Supply> {
        let Drawn { tasks, time_scale, next, blank, input, .. } = self.drawn.as_mut()?;
        if *next >= tasks.count {
            return Some(Supply::Over);
        }
        let task = *next;
        let release = tasks.arrivals.as_ref().and_then(|arrivals| arrivals.release_s.get(task as usize));
        let at_ns = release.map_or(0, |release_s| (release_s / *time_scale * 1e9) as u64);
        if at_ns > now_ns {
            return Some(Supply::At(at_ns));
        }
        *next += 1;
        let bytes = (tasks.size_mb.get(task) * 1e6).round() as u64;
        if *blank {
            *input = Payload::Blank(bytes);
        } else if matches!(input, Payload::Blank(_)) || input.len() != bytes {
            *input = Payload::bytes(vec![0x5a; bytes as usize]);
        }
        Some(Supply::Task(NewTask {
            task,
            payload: input.clone(),
            work: tasks.work.get(task),
            name: Vec::new(),
            is_batch: false,
        }))
    }

    /// Waits until the delivered results are written. Returns how the run ended.
    ///
    /// # Errors
    /// What ended the run, or an error in writing results, such as a full disk.
    pub fn close(mut self, ended: Result<RunSummary, LiveError>) -> Result<RunSummary, LiveError> {
        let kept = self.writer.take().map_or(Ok(()), ResultWriter::close);
        let failure = self.both.lock().failure.take().or(kept.err());
        match (ended, failure) {
            (Ok(_), Some(error)) => Err(error),
            (ended, _) => ended,
        }
    }
}

impl TaskSource for QueuedTasks {
    fn writes_files(&self) -> bool {
        self.writer.is_some()
    }

    fn events(&mut self, events: &[AgentEvent]) {
        self.both.lock().events.extend_from_slice(events);
    }

    fn next(&mut self, now_ns: u64) -> Supply {
        if let Some(supply) = self.next_drawn(now_ns) {
            return supply;
        }
        let mut shared = self.both.lock();
        if !std::mem::replace(&mut shared.begun, true) {
            self.both.changed.notify_all();
        }
        let Some((task, label)) = shared.waiting.pop_front() else {
            return if shared.over { Supply::Over } else { Supply::Later };
        };
        shared.waiting_bytes -= task.payload.in_memory();
        let wake = shared.waiting.len() == WAITING / 2 || shared.waiting.is_empty();
        drop(shared);
        if wake {
            self.both.changed.notify_all();
        }
        if self.writer.is_some() {
            self.labels.insert(task.task, label);
        }
        Supply::Task(task)
    }

    fn recalls(&mut self) -> Vec<u64> {
        self.both.lock().recalls.take_requested()
    }

    fn learn(&mut self, news: News, unknown: &[u64]) {
        self.both.lock().recalls.learn(news, unknown);
        self.both.changed.notify_all();
    }

    fn printed(&mut self, node: &Arc<str>, printed: Printed) {
        let mut shared = self.both.lock();
        let wakes = !shared.recalls.has_printed();
        shared.recalls.print(node, printed);
        drop(shared);
        if wakes {
            self.both.changed.notify_all();
        }
    }

    fn room(&self) -> bool {
        self.both.lock().has_room()
    }

    fn take_done(&mut self) -> Vec<u64> {
        self.drawn.as_mut().map_or_else(Vec::new, |drawn| std::mem::take(&mut drawn.done))
    }

    fn deliver(&mut self, results: &mut Vec<Delivery>, now_ns: u64) {
        if let Some(drawn) = self.drawn.as_mut().filter(|drawn| !drawn.done.is_empty()) {
            for result in results.iter() {
                drawn.done[result.task as usize] = now_ns;
            }
        }
        let Some(writer) = &self.writer else {
            self.both.report(results, 0, self.discard);
            return;
        };
        let mut shared = self.both.lock();
        shared.unkept += results.len();
        shared.unkept_bytes += results.iter().map(|result| result.payload.in_memory()).sum::<u64>();
        drop(shared);
        let labels = &mut self.labels;
        writer.write(results.drain(..).map(|result| (labels.remove(&result.task).unwrap_or_default(), result)));
    }

    fn failure(&mut self) -> Option<LiveError> {
        let mut shared = self.both.lock();
        shared.failure.take().or_else(|| shared.interrupted.then_some(LiveError::Interrupted))
    }
}
