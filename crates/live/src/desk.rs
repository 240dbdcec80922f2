//! A desk that other threads use: they hand tasks over and take results, while the root's loop runs on its own thread.
//!
//! Whoever hands over faster than the tree takes waits; so does the tree when results are not taken. With a directory,
//! results are files there; with a journal, each is noted before anybody is told of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosswind_schema::experiment::Tasks;

use crate::error::LiveError;
use crate::journal::{Delivered, Journal};
use crate::linux::Bell;
use crate::payload::Payload;
use crate::root::{Delivery, Desk, NewTask, RunSummary, Supply};

/// Tasks handed over and not yet taken by the root's loop.
const WAITING: usize = 1_024;
/// Bytes of those in memory.
const WAITING_BYTES: u64 = 64 << 20;
/// Bytes of results in memory that nobody has taken.
const UNTAKEN_BYTES: u64 = 256 << 20;
/// Results that nobody has taken.
const UNTAKEN: usize = 100_000;

#[derive(Default)]
struct Shared {
    waiting: VecDeque<(NewTask, String)>,
    waiting_bytes: u64,
    over: bool,
    results: VecDeque<Delivery>,
    untaken_bytes: u64,
    interrupted: bool,
    ended: Option<Result<RunSummary, LiveError>>,
    has_ended: bool,
    delivered: u64,
    /// Tasks are asked for: time 0 has come.
    begun: bool,
}

struct Both {
    shared: Mutex<Shared>,
    changed: Condvar,
    bell: Arc<Bell>,
}

impl Both {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, Shared>, time: Duration) -> MutexGuard<'a, Shared> {
        self.changed.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The users' side.
#[derive(Clone)]
pub struct Counter(Arc<Both>);

/// Where results are kept.
#[derive(Default)]
pub struct Keeping {
    /// A file for each result.
    pub directory: Option<PathBuf>,
    /// Notes each result.
    pub journal: Option<Journal>,
    /// Tasks that the journal has already: not done again.
    pub done: HashSet<u64>,
    /// Results are counted and dropped: nobody asks for them.
    pub discard: bool,
}

/// The loop's side.
pub struct SharedDesk {
    both: Arc<Both>,
    keeping: Keeping,
    drawn: Option<Drawn>,
    names: HashMap<u64, String>,
}

/// A workload's own tasks.
struct Drawn {
    tasks: Tasks,
    next: u64,
    /// Blank bytes are counted by who receives them; others have to be stored, as a user's would.
    blank: bool,
    /// The input of the last task: those of one size share it.
    input: Payload,
}

/// Both sides of a desk. `drawn`: the workload's own tasks, instead of those handed over, and whether their bytes are blank.
#[must_use]
pub fn desk(bell: Arc<Bell>, keeping: Keeping, drawn: Option<(Tasks, bool)>) -> (Counter, SharedDesk) {
    let both = Arc::new(Both { shared: Mutex::default(), changed: Condvar::new(), bell });
    let drawn = drawn.map(|(tasks, blank)| Drawn { tasks, next: 0, blank, input: Payload::Blank(0) });
    (Counter(Arc::clone(&both)), SharedDesk { both, keeping, drawn, names: HashMap::new() })
}

impl Counter {
    /// Hands a task over. False: there is no room; ask again after the time is over.
    ///
    /// # Errors
    /// When the run has ended.
    pub fn submit(&self, task: &mut Option<(NewTask, String)>, patience: Duration) -> Result<bool, LiveError> {
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
        if let Some((task, name)) = task.take() {
            if matches!(task.payload, Payload::Bytes(_)) {
                shared.waiting_bytes += task.payload.len();
            }
            // Whoever finds tasks waiting has been woken already.
            let ring = shared.waiting.is_empty();
            shared.waiting.push_back((task, name));
            drop(shared);
            if ring {
                self.0.bell.ring();
            }
        }
        Ok(true)
    }

    /// No more tasks.
    pub fn end_of_tasks(&self) {
        self.0.lock().over = true;
        self.0.bell.ring();
    }

    /// Ends the run as soon as possible.
    pub fn interrupt(&self) {
        self.0.lock().interrupted = true;
        self.0.bell.ring();
        self.0.changed.notify_all();
    }

    /// Results that have come; waits for at least one. `None`: the run has ended and all are taken.
    #[must_use]
    pub fn results(&self, patience: Duration) -> Option<Vec<Delivery>> {
        let until = Instant::now() + patience;
        let mut shared = self.0.lock();
        while shared.results.is_empty() {
            if shared.has_ended {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Vec::new());
            }
            shared = self.0.wait(shared, left);
        }
        let was_full = shared.results.len() >= UNTAKEN || shared.untaken_bytes >= UNTAKEN_BYTES;
        shared.untaken_bytes = 0;
        let results = shared.results.drain(..).collect();
        drop(shared);
        if was_full {
            self.0.bell.ring();
        }
        Some(results)
    }

    /// Waits until the agents are there and time 0 has come, at most so long; whether it has.
    #[must_use]
    pub fn has_begun(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut shared = self.0.lock();
        while !shared.begun && !shared.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            shared = self.0.wait(shared, left);
        }
        shared.begun
    }

    /// Results delivered so far.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.0.lock().delivered
    }

    /// The run has ended, and so.
    pub fn end(&self, result: Result<RunSummary, LiveError>) {
        let mut shared = self.0.lock();
        (shared.ended, shared.has_ended) = (Some(result), true);
        drop(shared);
        self.0.changed.notify_all();
    }

    /// Whether the run has ended within a time.
    #[must_use]
    pub fn has_ended(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut shared = self.0.lock();
        while !shared.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            shared = self.0.wait(shared, left);
        }
        true
    }

    /// What the run came to, once.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<RunSummary, LiveError>> {
        self.0.lock().ended.take()
    }
}

impl SharedDesk {
    fn next_drawn(&mut self) -> Option<Supply> {
        let Drawn { tasks, next, blank, input } = self.drawn.as_mut()?;
        while self.keeping.done.contains(next) {
            *next += 1;
        }
        if *next >= tasks.count {
            return Some(Supply::Over);
        }
        let task = *next;
        *next += 1;
        let bytes = (tasks.size_mb.get(task) * 1e6).round() as u64;
        if *blank {
            *input = Payload::Blank(bytes);
        } else if matches!(input, Payload::Blank(_)) || input.len() != bytes {
            *input = Payload::bytes(vec![0x5a; bytes as usize]);
        }
        Some(Supply::Task(NewTask { task, payload: input.clone(), work: tasks.work.get(task) }))
    }

    /// Puts a result into its file.
    fn keep(&mut self, delivery: &mut Delivery) -> Result<(), LiveError> {
        let name = self.names.remove(&delivery.task);
        let Some(directory) = &self.keeping.directory else { return Ok(()) };
        if !delivery.ok {
            return Ok(());
        }
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{:08}", delivery.task));
        let path = directory.join(name);
        let writing = || LiveError::system(format!("writing {}", path.display()));
        // A name that has the whole result or does not exist, whenever this process ends.
        let part = part_of(&path);
        let written = write_whole(&delivery.payload, &part).and_then(|()| std::fs::rename(&part, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part); // it is only a part
        }
        written.map_err(writing())?;
        delivery.payload = Payload::file(&path).map_err(writing())?;
        Ok(())
    }
}

/// Where a result is written before it gets its name.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn write_whole(payload: &Payload, path: &Path) -> std::io::Result<()> {
    match payload {
        // On the same file system a rename would do; over two, only a copy does.
        Payload::File(file) => std::fs::copy(&file.path, path).map(drop),
        other => std::fs::write(path, other.read()?.as_slice()),
    }
}

impl Desk for SharedDesk {
    fn next(&mut self) -> Supply {
        if let Some(supply) = self.next_drawn() {
            return supply;
        }
        let mut shared = self.both.lock();
        if !std::mem::replace(&mut shared.begun, true) {
            self.both.changed.notify_all();
        }
        let Some((task, name)) = shared.waiting.pop_front() else {
            return if shared.over { Supply::Over } else { Supply::Later };
        };
        if matches!(task.payload, Payload::Bytes(_)) {
            shared.waiting_bytes -= task.payload.len();
        }
        let wake = shared.waiting.len() == WAITING / 2 || shared.waiting.is_empty();
        drop(shared);
        if wake {
            self.both.changed.notify_all();
        }
        if self.keeping.directory.is_some() {
            self.names.insert(task.task, name);
        }
        Supply::Task(task)
    }

    fn room(&self) -> bool {
        let shared = self.both.lock();
        shared.results.len() < UNTAKEN && shared.untaken_bytes < UNTAKEN_BYTES
    }

    fn deliver(&mut self, results: &mut Vec<Delivery>) -> Result<(), LiveError> {
        let mut whole = 0;
        let mut failure = None;
        for delivery in results.iter_mut() {
            match self.keep(delivery) {
                Ok(()) => whole += 1,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        // What stands in its file is noted, even when the next one did not fit.
        results.truncate(whole);
        if let Some(journal) = &mut self.keeping.journal {
            let noted = results.iter().map(|d| Delivered { task: d.task, ok: d.ok, bytes: d.payload.len() });
            journal.note(noted)?;
        }
        let mut shared = self.both.lock();
        shared.delivered += results.len() as u64;
        if self.keeping.discard {
            results.clear();
        }
        for delivery in results.drain(..) {
            if matches!(delivery.payload, Payload::Bytes(_)) {
                shared.untaken_bytes += delivery.payload.len();
            }
            shared.results.push_back(delivery);
        }
        drop(shared);
        self.both.changed.notify_all();
        failure.map_or(Ok(()), Err)
    }

    fn interrupted(&self) -> bool {
        self.both.lock().interrupted
    }
}
