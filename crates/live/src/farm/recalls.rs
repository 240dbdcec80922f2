//! What the user's threads ask of tasks and learn of them before their results: withdrawals, begun tasks, and early
//! outcomes of batches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crosswind_agent::printed::Printed;
use crosswind_agent::recall::{News, Ran};

/// Maximum number of ended commands that wait to be taken. Further ones are dropped.
const MOST_RAN: usize = 100_000;
/// Maximum bytes of what tasks printed that wait to be taken.
const MOST_PRINTED: usize = 1 << 20;

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
    /// What tasks printed and the user's threads have not taken, with the names of their nodes.
    printed: Vec<(Arc<str>, Printed)>,
    printed_bytes: usize,
    /// Bytes that there was no room for.
    unprinted_bytes: u64,
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
        let room = MOST_RAN.saturating_sub(self.ran.len());
        self.ran.extend(news.ran.into_iter().take(room));
    }

    /// Keeps what a task printed for the user, as far as there is room.
    pub fn print(&mut self, node: &Arc<str>, mut printed: Printed) {
        printed.left_out += std::mem::take(&mut self.unprinted_bytes);
        // Empty texts count too: a node that sends many must not fill this process either.
        let bytes = printed.text.len() + size_of::<Printed>();
        if self.printed_bytes + bytes > MOST_PRINTED {
            self.unprinted_bytes = printed.left_out + printed.text.len() as u64;
            return;
        }
        self.printed_bytes += bytes;
        self.printed.push((Arc::clone(node), printed));
    }

    pub fn has_printed(&self) -> bool {
        !self.printed.is_empty()
    }

    pub fn take_printed(&mut self) -> Vec<(Arc<str>, Printed)> {
        self.printed_bytes = 0;
        std::mem::take(&mut self.printed)
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
        std::mem::take(&mut self.ran)
    }

    pub fn take_news(&mut self) -> News {
        let begun = std::mem::take(&mut self.begun).into_iter().collect();
        let partial = std::mem::take(&mut self.partial).into_iter().collect();
        News { begun, withdrawn: std::mem::take(&mut self.withdrawn), partial, ran: Vec::new() }
    }
}
