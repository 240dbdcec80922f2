//! A host's processor: it deals with what has arrived, then with what is to be sent, then it computes.
//!
//! What messages take of it is missing to the job that computes on the same host: the interference of communication on computation,
//! in the terms of a platform (s for each MB that is sent or received). First come, first served among tasks of one kind; a
//! task gives way to one that goes first, and goes on where it was.

use std::collections::VecDeque;

use crosswind_schema::experiment::streams::Processor as Description;
use crosswind_schema::units::Quantity;

use super::engine::Engine;
use super::observer::Observer;
use crate::time::{Nanos, nanos};

/// What it does. The order is that in which it is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// A frame for the receiving program.
    Receive { bytes: u32 },
    /// Word that a frame of a route has arrived.
    Acknowledgement { route: u32 },
    /// A frame for the interface.
    Send { route: u32, message: u32, bytes: u32 },
    /// A superstep of a job's process.
    Compute { job: u32, process: u32, ns: Nanos },
}

impl Task {
    const fn level(self) -> usize {
        match self {
            Self::Receive { .. } | Self::Acknowledgement { .. } => 0,
            Self::Send { .. } => 1,
            Self::Compute { .. } => 2,
        }
    }
}

/// What each task takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    send: (Nanos, f64),
    receive: (Nanos, f64),
    acknowledgement: Nanos,
}

impl Costs {
    pub fn new(of: &Description) -> Self {
        // A megabyte is 10^6 bytes: s/MB is 10^3 ns for each byte.
        Self {
            send: (nanos(of.send_s.get()), of.ir_send_s_per_mb.get() * 1e3),
            receive: (nanos(of.receive_s.get()), of.ir_receive_s_per_mb.get() * 1e3),
            acknowledgement: nanos(of.acknowledgement_s.get()),
        }
    }

    fn of(&self, task: Task) -> Nanos {
        let per_frame =
            |(fixed, per_byte): (Nanos, f64), bytes: u32| fixed + (f64::from(bytes) * per_byte).round() as Nanos;
        match task {
            Task::Receive { bytes } => per_frame(self.receive, bytes),
            Task::Send { bytes, .. } => per_frame(self.send, bytes),
            Task::Acknowledgement { .. } => self.acknowledgement,
            Task::Compute { ns, .. } => ns,
        }
    }
}

/// Tasks with the time that is left of each.
#[derive(Default)]
pub(super) struct Processor {
    waiting: [VecDeque<(Task, Nanos)>; 3],
    running: Option<(Task, Nanos)>,
    since: Nanos,
    /// A task has just been done, and what follows of it is being put into the queues.
    decides: bool,
}

impl<O: Observer> Engine<'_, O> {
    /// A task comes to a host's processor.
    pub fn submit(&mut self, host: u32, task: Task) {
        let Some(costs) = self.settings.processor else { return };
        let now = self.now;
        let own = &mut self.hosts.processors[host as usize];
        own.waiting[task.level()].push_back((task, costs.of(task)));
        if own.decides {
            return;
        }
        if let Some((other, left)) = own.running {
            if other.level() <= task.level() {
                return;
            }
            let done = now - own.since;
            own.waiting[other.level()].push_front((other, left - done.min(left)));
            own.running = None;
        }
        self.go_on_with(host);
    }

    /// The first task begins, or goes on.
    fn go_on_with(&mut self, host: u32) {
        let slot = self.agenda.layout.processor(host);
        let own = &mut self.hosts.processors[host as usize];
        own.running = own.waiting.iter_mut().find_map(VecDeque::pop_front);
        own.since = self.now;
        match own.running {
            Some((_, left)) => self.agenda.slots.set(slot, self.now.saturating_add(left)),
            None => self.agenda.slots.clear(slot),
        }
    }

    /// A host's processor is done with a task.
    pub fn on_processor(&mut self, host: u32) {
        let own = &mut self.hosts.processors[host as usize];
        let Some((task, _)) = own.running.take() else { return };
        own.decides = true;
        match task {
            Task::Receive { .. } => self.on_service(host),
            Task::Acknowledgement { route } => self.is_acknowledged(route),
            Task::Send { route, message, bytes } => self.enqueue(route, message, bytes),
            Task::Compute { job, process, .. } => self.on_process(job, process),
        }
        self.hosts.processors[host as usize].decides = false;
        self.go_on_with(host);
    }
}
