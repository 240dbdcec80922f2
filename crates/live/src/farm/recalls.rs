//! What the user's threads ask of tasks and learn of them before their results: withdrawals, begun tasks, and early
//! outcomes of batches.

use std::collections::{BTreeSet, HashMap};

use crosswind_agent::recall::{News, Ran};

/// Maximum number of ended commands, and maximum bytes that they printed, that wait to be taken. Further ones
/// are dropped.
const MOST_RAN: usize = 100_000;
const MOST_STDERR: usize = 4 << 20;

/// The state of requests, shared by the user's threads and the event loop.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    /// Tasks that the event loop has not been asked for.
    requested: Vec<u64>,
    /// Whether a task is withdrawn. `None` until that is known.
    answers: HashMap<u64, Option<bool>>,
    /// Tasks that have begun and have no result, which the user's threads have not taken.
    begun: BTreeSet<u64>,
    /// Tasks that are withdrawn, which the user's threads have not taken.
    withdrawn: Vec<u64>,
    /// Early outcomes of batches that have no result, which the user's threads have not taken.
    partial: HashMap<u64, Vec<u8>>,
    /// Commands that have ended, which the user's threads have not taken.
    ran: Vec<Ran>,
    stderr_bytes: usize,
}

impl Recalls {
    /// Requests that a task be withdrawn.
    pub fn ask(&mut self, task: u64) {
        self.requested.push(task);
        self.answers.insert(task, None);
    }

    /// Returns the tasks that were requested since the last call.
    pub fn take_requested(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.requested)
    }

    /// Records what the event loop learned. `unknown` tasks have no answer: their results are there.
    pub fn learn(&mut self, news: News, unknown: &[u64]) {
        for task in &news.withdrawn {
            self.answer(*task, true);
        }
        for task in news.begun.iter().chain(unknown) {
            self.answer(*task, false);
        }
        self.begun.extend(news.begun);
        self.withdrawn.extend(news.withdrawn);
        self.partial.extend(news.partial);
        for mut ran in news.ran {
            if self.ran.len() >= MOST_RAN {
                break;
            }
            if self.stderr_bytes + ran.stderr.len() > MOST_STDERR {
                ran.stderr = Vec::new();
            }
            self.stderr_bytes += ran.stderr.len();
            self.ran.push(ran);
        }
    }

    /// Records that a task has a result.
    pub fn delivered(&mut self, task: u64) {
        self.begun.remove(&task);
        self.partial.remove(&task); // the result holds the same outcomes
        self.answer(task, false);
    }

    fn answer(&mut self, task: u64, withdrawn: bool) {
        if let Some(answer) = self.answers.get_mut(&task) {
            answer.get_or_insert(withdrawn);
        }
    }

    /// Whether a request has no answer yet.
    pub fn is_open(&self) -> bool {
        self.answers.values().any(Option::is_none)
    }

    /// Ends the requests. Returns those tasks that are withdrawn.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.answers).into_iter().filter_map(|(task, answer)| answer?.then_some(task)).collect()
    }

    pub fn has_news(&self) -> bool {
        !self.begun.is_empty() || !self.withdrawn.is_empty() || !self.partial.is_empty()
    }

    pub fn take_ran(&mut self) -> Vec<Ran> {
        self.stderr_bytes = 0;
        std::mem::take(&mut self.ran)
    }

    pub fn take_news(&mut self) -> News {
        let begun = std::mem::take(&mut self.begun).into_iter().collect();
        let partial = std::mem::take(&mut self.partial).into_iter().collect();
        News { begun, withdrawn: std::mem::take(&mut self.withdrawn), partial, ran: Vec::new() }
    }
}
