//! The children with unmet requests, and which of them is served next.

use crosswind_schema::plan::Ports;

use super::event::{Child, TaskId};
use super::in_time::Entry;
use super::order::Rule;
use super::requests::{Queue, Requests};
use super::settings::ChildSettings;
use crate::heap::{First, Heap};

/// State of a send to a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transfer {
    #[default]
    None,
    /// Bytes of it are being sent.
    Running,
    /// Bytes are being sent until the end of the chunk.
    Holding,
    /// Held, to be resumed later.
    Paused,
}

/// A child and its requests. The fields that every send reads and writes come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ChildState {
    /// Whether it is ever served.
    pub served: bool,
    gone: bool,
    /// Whether nothing below it is known to compute: it handed a task back, or had no tasks and no requests while tasks
    /// waited for a child. Ends when it requests a task.
    idle: bool,
    /// Whether it ever requested a task.
    requested: bool,
    pub transfer: Transfer,
    /// Requested tasks whose send has not begun.
    requests: u32,
    /// Tasks whose send has begun.
    begun: u64,
    /// Its key, or with planned rates the time between its tasks, s.
    key: f64,
    /// Tasks sent to it whose result has not arrived. Used at the end of a run.
    pub out: u32,
    /// Tasks per second that its subtree uses.
    pub uses: f64,
    /// Tasks per second at which it computes what it has.
    empties: f64,
    /// Duration of a send to it at its pace, s.
    send_s: f64,
    /// Receive limit, MB/s. This and the following fields are used with several ports only.
    pub receive_limit: f64,
    /// Rate at which it is sent to among others, MB/s.
    pub pace: f64,
    pub task: TaskId,
    /// Its key when the current send began.
    pub rank: f64,
    /// Share of the send limit, MB/s.
    pub share: f64,
}

impl ChildState {
    pub fn new(settings: ChildSettings) -> Self {
        Self {
            key: settings.key.unwrap_or(0.0),
            served: settings.key.is_some(),
            gone: false,
            idle: false,
            requested: false,
            uses: settings.uses_tasks_per_s,
            empties: settings.empties_tasks_per_s,
            send_s: settings.send_s,
            out: 0,
            requests: 0,
            begun: 0,
            receive_limit: settings.receive_limit_mb_per_s,
            pace: settings.pace_mb_per_s,
            transfer: Transfer::None,
            task: 0,
            rank: 0.0,
            share: 0.0,
        }
    }
}

impl ChildState {
    /// Whether its subtree computes: see `ending`.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.served && !self.gone && !self.idle && self.uses > 0.0
    }

    /// Whether a task may be sent to it, now or once it requests one.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.served && !self.idle
    }

    /// Whether a task may wait for it: it has tasks or has requested some, or its first request is expected.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.is_open() && (self.requests > 0 || self.out > 0 || !self.requested && self.uses > 0.0)
    }

    /// Ends the idle state because of a request. Returns whether it was idle.
    #[inline]
    pub fn wakes(&mut self) -> bool {
        std::mem::take(&mut self.idle)
    }

    /// Whether it takes tasks. A child that has none and requests none does not, although it may be able to.
    pub fn takes_tasks(&self) -> bool {
        self.is_counted() && (self.requests > 0 || self.out > 0)
    }

    /// When it would finish one more task, s. The task is sent while those that it has are computed.
    #[inline]
    pub fn done_s(&self) -> f64 {
        self.send_s.max(f64::from(self.out) / self.empties) + 1.0 / self.empties
    }
}

/// The waiting children, in the order of service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pub rule: Rule,
    /// In the place of all that follows: first come, first served with a single port.
    queue: Option<Queue>,
    ranking: Heap<f64, First>,
    requests: Requests,
}

impl Waiting {
    pub fn by(rule: Rule, ports: Ports) -> Self {
        let queue = (rule == Rule::Arrival && ports == Ports::Single).then(Queue::default);
        Self { rule, queue, ..Self::default() }
    }

    #[inline]
    pub fn key(&self, child: &ChildState) -> f64 {
        match self.rule {
            Rule::Fixed | Rule::Arrival => child.key,
            Rule::Planned => (child.begun + 1) as f64 * child.key,
        }
    }

    #[inline]
    pub fn ask(&mut self, children: &mut [ChildState], child: Child, tasks: u64) {
        let Some(state) = children.get_mut(child as usize) else { return };
        if state.gone || tasks == 0 {
            return;
        }
        let requested = u32::try_from(tasks).unwrap_or(u32::MAX).min(u32::MAX - state.requests);
        state.requested = true;
        state.requests += requested;
        if let Some(queue) = &mut self.queue {
            if state.served && requested > 0 {
                queue.came(child, requested);
            }
            return;
        }
        if self.rule == Rule::Arrival {
            self.requests.came(child, u64::from(requested));
            state.key = self.requests.oldest(child);
        }
        // A child that is never served may be later. A child that is being sent to waits again when the send is over.
        if !state.served || state.transfer != Transfer::None {
            return;
        }
        let key = self.key(state);
        self.ranking.put(key, child);
    }

    /// The child to be served next, with its key.
    #[inline]
    pub fn first(&self) -> Option<(f64, Child)> {
        match &self.queue {
            Some(queue) => queue.first().map(|child| (0.0, child)),
            None => self.ranking.first(),
        }
    }

    /// The child's entry for `in_time`.
    pub fn entry(&self, child: &ChildState) -> Entry {
        // A child of unknown speed would never finish. Cap its time so that it is served if no other child finishes
        // earlier.
        let done_s = child.done_s().min(f64::MAX);
        let waits = child.served && child.requests > 0 && child.transfer == Transfer::None;
        let if_it = |is: bool, value: f64| if is { value } else { f64::INFINITY };
        Entry {
            waiting_s: if_it(waits, done_s),
            key: if_it(waits, self.key(child)),
            taking_s: if_it(child.takes_tasks(), done_s),
        }
    }

    /// Serves a waiting child, which meets one of its requests. With one port it may continue to wait.
    #[inline]
    pub fn take(&mut self, children: &mut [ChildState], child: Child) {
        self.begin(children, child);
        if self.queue.is_some() {
            return;
        }
        let state = &mut children[child as usize];
        match self.rule {
            _ if state.requests == 0 => self.ranking.remove(child),
            Rule::Fixed => {}
            Rule::Planned | Rule::Arrival => {
                let key = self.key(state);
                self.ranking.put(key, child);
            }
        }
    }

    /// Serves the next child, which does not wait while it is served.
    pub fn take_out(&mut self, children: &mut [ChildState], child: Child) {
        self.begin(children, child);
        self.ranking.remove(child);
    }

    #[inline]
    fn begin(&mut self, children: &mut [ChildState], child: Child) {
        let state = &mut children[child as usize];
        state.requests -= 1;
        state.begun += 1;
        if let Some(queue) = &mut self.queue {
            queue.meet();
        } else if self.rule == Rule::Arrival {
            self.requests.meet(child);
            state.key = self.requests.oldest(child);
        }
    }

    /// Makes a child that was served wait again if it has further requests.
    pub fn wait_again(&mut self, children: &[ChildState], child: Child) {
        let state = &children[child as usize];
        if state.requests == 0 || !state.served {
            return;
        }
        let key = self.key(state);
        self.ranking.put(key, child);
    }

    /// Applies new settings of a child. Planned rates stay, because they concern the whole tree, which no node knows.
    pub fn know(&mut self, children: &mut [ChildState], child: Child, settings: ChildSettings) {
        let Some(state) = children.get_mut(child as usize) else { return };
        if state.gone {
            return;
        }
        (state.receive_limit, state.pace) = (settings.receive_limit_mb_per_s, settings.pace_mb_per_s);
        state.uses = settings.uses_tasks_per_s;
        (state.empties, state.send_s) = (settings.empties_tasks_per_s, settings.send_s);
        if self.rule != Rule::Fixed {
            return;
        }
        (state.served, state.key) = (settings.key.is_some(), settings.key.unwrap_or(0.0));
        if state.transfer == Transfer::None {
            self.ranking.remove(child);
            self.wait_again(children, child);
        }
    }

    /// Stops sending to a child below which nothing computes until it requests a task.
    pub fn suspend(&mut self, children: &mut [ChildState], child: Child) {
        (children[child as usize].idle, children[child as usize].requests) = (true, 0);
        self.ranking.remove(child);
        self.requests.forget(child);
        if let Some(queue) = &mut self.queue {
            queue.forget(child);
        }
    }

    /// Removes a child that left, for good.
    pub fn forget(&mut self, children: &mut [ChildState], child: Child) {
        (children[child as usize].served, children[child as usize].gone) = (false, true);
        self.suspend(children, child);
    }
}
