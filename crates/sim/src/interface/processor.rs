//! A host's processor: it handles arrived frames first, then frames to send, then computes.
//!
//! Time spent on messages is lost to the job that computes on the same host: the interference of communication with
//! computation, in a platform's terms (s per MB sent or received). Tasks of one kind are served first come, first
//! served. With `order = "queues"`, frames to send and frames that arrived share the experiment's queues. A running
//! task is preempted by one that goes before it, and later resumes where it stopped.

use std::collections::VecDeque;

use crosswind_policy::queue::{DoubleQueue, QueueSettings};
use crosswind_schema::experiment::streams::{Processor as Description, ProcessorOrder};
use crosswind_schema::units::Quantity;

use super::engine::Engine;
use super::observer::Observer;
use crate::time::{Nanos, nanos};

#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Handle an arrived frame for the receiving program.
    Receive { message: u32, bytes: u32 },
    /// Handle an acknowledgement on a route.
    Acknowledgement { route: u32 },
    /// Prepare a frame for the interface.
    Send { route: u32, message: u32, bytes: u32 },
    /// Compute a superstep of a job's process.
    Compute { job: u32, process: u32, ns: Nanos },
}

impl Task {
    const fn level(self, order: ProcessorOrder) -> usize {
        match (self, order) {
            (Self::Compute { .. }, _) => 2,
            (Self::Send { .. }, ProcessorOrder::ArrivedFirst) => 1,
            _ => 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    send: (Nanos, f64),
    receive: (Nanos, f64),
    acknowledgement: Nanos,
    pub order: ProcessorOrder,
}

impl Costs {
    pub fn new(of: &Description) -> Self {
        // A megabyte is 10^6 bytes: s/MB is 10^3 ns for each byte.
        Self {
            send: (nanos(of.send_s.get()), of.ir_send_s_per_mb.get() * 1e3),
            receive: (nanos(of.receive_s.get()), of.ir_receive_s_per_mb.get() * 1e3),
            acknowledgement: nanos(of.acknowledgement_s.get()),
            order: of.order,
        }
    }

    fn of(&self, task: Task) -> Nanos {
        let per_frame =
            |(fixed, per_byte): (Nanos, f64), bytes: u32| fixed + (f64::from(bytes) * per_byte).round() as Nanos;
        match task {
            Task::Receive { bytes, .. } => per_frame(self.receive, bytes),
            Task::Send { bytes, .. } => per_frame(self.send, bytes),
            Task::Acknowledgement { .. } => self.acknowledgement,
            Task::Compute { ns, .. } => ns,
        }
    }
}

/// Tasks with their remaining time, ns.
pub(super) struct Processor {
    waiting: [VecDeque<(Task, Nanos)>; 3],
    /// Frames, with `order = "queues"`.
    queue: Option<DoubleQueue<Task>>,
    running: Option<(Task, Nanos)>,
    since: Nanos,
    /// Whether a task has just completed and its consequences are being queued.
    decides: bool,
}

impl Processor {
    pub fn new(costs: &Costs, queues: QueueSettings) -> Self {
        let queue = (costs.order == ProcessorOrder::Queues).then(|| DoubleQueue::new(queues));
        Self { waiting: Default::default(), queue, running: None, since: 0, decides: false }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Submits a task to a host's processor.
    pub fn submit(&mut self, host: u32, task: Task) {
        let Some(costs) = self.settings.processor else { return };
        let (now, order) = (self.now, costs.order);
        let own = &mut self.hosts.processors[host as usize];
        match (&mut own.queue, task) {
            (Some(queue), Task::Receive { message, bytes } | Task::Send { message, bytes, .. }) => {
                queue.push(self.messages[message].class, bytes, task);
            }
            _ => own.waiting[task.level(order)].push_back((task, costs.of(task))),
        }
        if own.decides {
            return;
        }
        if let Some((other, left)) = own.running {
            if other.level(order) <= task.level(order) {
                return;
            }
            let done = now - own.since;
            own.waiting[other.level(order)].push_front((other, left - done.min(left)));
            own.running = None;
        }
        self.go_on_with(host);
    }

    /// Starts or resumes the first task.
    fn go_on_with(&mut self, host: u32) {
        let Some(costs) = self.settings.processor else { return };
        let slot = self.agenda.layout.processor(host);
        let own = &mut self.hosts.processors[host as usize];
        let frame = |own: &mut Processor| own.queue.as_mut()?.pop([true; 2]).map(|(_, _, task)| (task, costs.of(task)));
        let [arrived, sent, _] = &mut own.waiting;
        let first = arrived.pop_front().or_else(|| sent.pop_front());
        own.running = match first {
            Some(first) => Some(first),
            None => frame(own).or_else(|| own.waiting[2].pop_front()),
        };
        own.since = self.now;
        match own.running {
            Some((_, left)) => self.agenda.slots.set(slot, self.now.saturating_add(left)),
            None => self.agenda.slots.clear(slot),
        }
        if let (Some((Task::Receive { message, .. }, _)), ProcessorOrder::Queues) = (own.running, costs.order) {
            self.taken(host, message);
        }
    }

    /// Handles the completion of a processor's task.
    pub fn on_processor(&mut self, host: u32) {
        let own = &mut self.hosts.processors[host as usize];
        let Some((task, _)) = own.running.take() else { return };
        own.decides = true;
        let order = self.settings.processor.map_or(ProcessorOrder::default(), |costs| costs.order);
        match task {
            Task::Receive { message, bytes } if order == ProcessorOrder::Queues => self.is_with_program(message, bytes),
            Task::Receive { .. } => self.on_service(host),
            Task::Acknowledgement { route } => self.is_acknowledged(route),
            Task::Send { route, message, bytes } => self.enqueue(route, message, bytes),
            Task::Compute { job, process, .. } => self.on_process(job, process),
        }
        self.hosts.processors[host as usize].decides = false;
        self.go_on_with(host);
    }
}
