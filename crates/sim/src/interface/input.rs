//! Input side of a host: frames in transit from the switch, the receive queues, and the receiving program's time per
//! frame.

use std::collections::VecDeque;

use crosswind_policy::queue::DoubleQueue;
use crosswind_schema::experiment::streams::ProcessorOrder;

use super::engine::{Engine, Message};
use super::flow::Loss;
use super::observer::Observer;
use super::processor::Task;
use crate::time::Nanos;

pub(super) struct Input {
    /// Arrival time, message and frame length. In plain mode, only the last frame of each message.
    coming: VecDeque<(Nanos, u32, u32)>,
    queue: DoubleQueue<u32>,
    /// Frames in the queue or on their way to it from the switch.
    held: u32,
    /// Message and length of the frame that the receiving program is processing.
    working: Option<(u32, u32)>,
}

impl Input {
    pub const fn new(queue: DoubleQueue<u32>) -> Self {
        Self { coming: VecDeque::new(), queue, held: 0, working: None }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Whether the switch may send a host another frame.
    #[inline]
    pub fn has_room(&self, host: u32) -> bool {
        self.settings.plain || self.settings.lossy || self.hosts.inputs[host as usize].held < self.settings.buffer
    }

    /// Starts a frame's transfer from the switch to a host.
    #[inline]
    pub fn approach(&mut self, host: u32, message: u32, bytes: u32) {
        let at = self.now + self.settings.latency;
        let input = &mut self.hosts.inputs[host as usize];
        if self.settings.plain {
            self.counts.frames += 1;
            if O::LISTENS {
                let seen = self.seen(message, bytes);
                self.observer.arrives(at, seen);
            }
            let left = &mut self.messages[message].left;
            *left -= 1;
            if *left > 0 {
                return;
            }
        } else {
            input.held += 1;
        }
        let input = &mut self.hosts.inputs[host as usize];
        input.coming.push_back((at, message, bytes));
        if input.coming.len() == 1 {
            let slot = self.agenda.layout.arrival(host);
            self.agenda.slots.set(slot, at);
        }
    }

    /// Handles the arrival of a frame, or of a whole message in plain mode.
    #[inline]
    pub fn on_arrival(&mut self, host: u32) {
        let slot = self.agenda.layout.arrival(host);
        let input = &mut self.hosts.inputs[host as usize];
        let Some((_, message, bytes)) = input.coming.pop_front() else { return };
        match input.coming.front() {
            Some(&(at, ..)) => self.agenda.slots.set(slot, at),
            None => self.agenda.slots.clear(slot),
        }
        if self.settings.plain {
            self.complete(message);
        } else {
            self.receive(host, message, bytes);
        }
    }

    fn receive(&mut self, host: u32, message: u32, bytes: u32) {
        let of = &mut self.messages[message];
        let (class, route) = (of.class, of.route);
        let input = &mut self.hosts.inputs[host as usize];
        if self.settings.lossy && input.queue.len(class) >= self.settings.buffer as usize {
            input.held -= 1;
            self.lose(Loss { route, message, bytes, was_sent: true });
            return;
        }
        of.coming -= 1;
        let ends_message = of.coming == 0;
        if self.settings.processor.is_some_and(|costs| costs.order == ProcessorOrder::Queues) {
            self.on_frame_of(route, ends_message);
            self.submit(host, Task::Receive { message, bytes });
            return;
        }
        input.queue.push(class, bytes, message);
        self.on_frame_of(route, ends_message);
        if self.hosts.inputs[host as usize].working.is_none() {
            self.work(host);
        }
    }

    /// Lets the receiving program take the next frame.
    fn work(&mut self, host: u32) {
        let slot = self.agenda.layout.service(host);
        loop {
            let input = &mut self.hosts.inputs[host as usize];
            let Some((_, bytes, message)) = input.queue.pop([true; 2]) else {
                self.agenda.slots.clear(slot);
                return;
            };
            self.taken(host, message);
            if self.settings.processor.is_some() {
                self.hosts.inputs[host as usize].working = Some((message, bytes));
                self.agenda.slots.clear(slot);
                self.submit(host, Task::Receive { message, bytes });
                return;
            }
            if self.settings.host_ns > 0 {
                self.hosts.inputs[host as usize].working = Some((message, bytes));
                self.agenda.slots.set(slot, self.now + self.settings.host_ns);
                return;
            }
            self.is_with_program(message, bytes);
        }
    }

    /// Frees the queue slot of a frame that has been taken, and restarts a stalled port.
    pub fn taken(&mut self, host: u32, message: u32) {
        let Message { route, class, .. } = self.messages[message];
        self.hosts.inputs[host as usize].held -= 1;
        if self.hosts.ports[host as usize].stalled {
            self.agenda.slots.set(self.agenda.layout.port(host), self.now);
        }
        self.on_dequeue_of(route, class);
    }

    /// Handles the receiving program's completion of a frame.
    pub fn on_service(&mut self, host: u32) {
        let working = self.hosts.inputs[host as usize].working.take();
        if let Some((message, bytes)) = working {
            self.is_with_program(message, bytes);
        }
        self.work(host);
    }

    pub fn is_with_program(&mut self, message: u32, bytes: u32) {
        self.counts.frames += 1;
        if O::LISTENS {
            let seen = self.seen(message, bytes);
            self.observer.arrives(self.now, seen);
        }
        let of = &mut self.messages[message];
        of.left -= 1;
        let (is_whole, route) = (of.left == 0, of.route);
        if self.settings.flows {
            self.acknowledge(route);
        }
        if is_whole {
            self.complete(message);
        }
    }
}
