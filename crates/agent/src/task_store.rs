//! Task store of a node: keeps a task's bytes from its arrival until its result is passed on, and counts its failed
//! attempts.

use std::sync::Arc;

use crosswind_policy::farm::giving_up;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::action::TaskBytes;

/// A task that is held here or in a child's subtree.
#[derive(Debug)]
pub(crate) struct Stored<P> {
    pub payload: P,
    pub work: f64,
}

/// A result on its way up.
#[derive(Clone, Debug)]
pub struct Finished<P> {
    pub task: u64,
    /// The node that computed it.
    pub node: u32,
    /// `true` for a result, `false` for an error text.
    pub ok: bool,
    pub payload: P,
}

/// Tasks and results by number. They are only looked up, never iterated, so the order of a hash map has no effect. Each
/// task is looked up some twenty times on its way, and its number comes from the root: a hash against foreign keys would
/// cost more than the rest of the look-up.
#[derive(Debug)]
pub(crate) struct TaskStore<P> {
    tasks: FxHashMap<u64, Stored<P>>,
    finished: FxHashMap<u64, Finished<P>>,
    held_bytes: u64,
    /// How many children were lost while they computed each task.
    lost_with: FxHashMap<u64, u32>,
    /// Attempts of each task that ended their agents by exceeding the time limit.
    over_time: FxHashMap<u64, u32>,
    /// Tasks that the user withdraws, held by a child's subtree that has not answered yet.
    recalling: FxHashSet<u64>,
    /// Tasks that are withdrawn: no node begins them any more.
    recalled: FxHashSet<u64>,
    /// The names of tasks that have one.
    names: FxHashMap<u64, Arc<[u8]>>,
    /// Tasks that are batches of calls, and whether the outcomes of their first calls have been passed on.
    batches: FxHashMap<u64, bool>,
}

impl<P: TaskBytes> TaskStore<P> {
    pub fn new() -> Self {
        Self {
            tasks: FxHashMap::default(),
            finished: FxHashMap::default(),
            held_bytes: 0,
            lost_with: FxHashMap::default(),
            over_time: FxHashMap::default(),
            recalling: FxHashSet::default(),
            recalled: FxHashSet::default(),
            names: FxHashMap::default(),
            batches: FxHashMap::default(),
        }
    }

    pub fn get(&self, task: u64) -> Option<&Stored<P>> {
        self.tasks.get(&task)
    }

    pub fn work(&self, task: u64) -> f64 {
        self.tasks.get(&task).map_or(0.0, |stored| stored.work)
    }

    /// Number of tasks whose result has not been passed on.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Number of tasks whose result has not been passed on, those that are withdrawn excepted.
    pub fn wanted(&self) -> usize {
        self.tasks.len() - self.recalled.len()
    }

    /// Bytes of inputs in memory.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of results that have not been passed on.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Stores a task until its result is passed on.
    pub fn hold(&mut self, task: u64, payload: P, work: f64) {
        self.held_bytes += payload.in_memory();
        if let Some(before) = self.tasks.insert(task, Stored { payload, work }) {
            self.held_bytes -= before.payload.in_memory();
        }
    }

    pub fn finish(&mut self, finished: Finished<P>) {
        self.finished.insert(finished.task, finished);
    }

    /// Removes a result, and the failure counts of its task.
    pub fn take_finished(&mut self, task: u64) -> Option<Finished<P>> {
        let finished = self.finished.remove(&task)?;
        if !self.lost_with.is_empty() {
            self.lost_with.remove(&task);
        }
        self.over_time.remove(&task);
        Some(finished)
    }

    /// Removes a task. Returns its bytes.
    pub fn drop_task(&mut self, task: u64) -> Option<P> {
        self.recalling.remove(&task);
        self.recalled.remove(&task);
        self.names.remove(&task);
        self.batches.remove(&task);
        let stored = self.tasks.remove(&task)?;
        self.held_bytes -= stored.payload.in_memory();
        Some(stored.payload)
    }

    /// Stores the name of a task, before or after the task itself.
    pub fn name(&mut self, task: u64, name: Arc<[u8]>) {
        self.names.insert(task, name);
    }

    pub fn name_of(&self, task: u64) -> Option<Arc<[u8]>> {
        self.names.get(&task).map(Arc::clone)
    }

    /// Marks a task as a batch of calls, before or after the task itself.
    pub fn mark_batch(&mut self, task: u64) {
        self.batches.insert(task, false);
    }

    pub fn is_batch(&self, task: u64) -> bool {
        self.batches.contains_key(&task)
    }

    /// Notes that the outcomes of a batch's first calls are passed on. Returns whether they may be: once for each batch.
    pub fn passes_partial(&mut self, task: u64) -> bool {
        self.batches.get_mut(&task).is_some_and(|passed| !std::mem::replace(passed, true))
    }

    /// Whether a task's result is here and has not been passed on.
    pub fn has_finished(&self, task: u64) -> bool {
        self.finished.contains_key(&task)
    }

    /// Notes that a child was asked to give back a task.
    pub fn recall(&mut self, task: u64) {
        self.recalling.insert(task);
    }

    /// Notes that a child has begun a task that it may have been asked to give back.
    pub fn goes_on(&mut self, task: u64) {
        self.recalling.remove(&task);
    }

    /// Whether a child was asked to give back a task and has not answered.
    pub fn is_recalling(&self, task: u64) -> bool {
        self.recalling.contains(&task)
    }

    /// Marks a task as withdrawn. Returns its input, which is no longer needed.
    pub fn withdraw(&mut self, task: u64) -> Option<P> {
        self.recalling.remove(&task);
        let stored = self.tasks.get_mut(&task)?;
        self.recalled.insert(task);
        self.held_bytes -= stored.payload.in_memory();
        Some(std::mem::replace(&mut stored.payload, P::blank(0)))
    }

    /// Whether a task is withdrawn.
    pub fn is_withdrawn(&self, task: u64) -> bool {
        self.recalled.contains(&task)
    }

    /// Counts a child that was lost while it computed a task.
    pub fn lost_with(&mut self, task: u64) {
        *self.lost_with.entry(task).or_default() += 1;
    }

    /// Counts `tried` attempts, at least 1, of a task whose time limit ended a child.
    pub fn was_over_time(&mut self, task: u64, tried: u32) {
        let tries = self.over_time.entry(task).or_default();
        *tries = tries.saturating_add(tried.max(1));
    }

    /// Returns the number of timed-out attempts if it exceeds `retries`; `None` if the task may be tried again.
    pub fn tried_in_vain(&self, task: u64, retries: u32) -> Option<u32> {
        self.over_time.get(&task).copied().filter(|tries| giving_up::after_over_time(*tries, retries))
    }

    /// Whether a task is given up because too many children were lost with it.
    pub fn ends_children(&self, task: u64) -> bool {
        let lost = self.lost_with.get(&task);
        lost.is_some_and(|lost| giving_up::after_lost_agents(*lost, self.is_batch(task)))
    }
}
