//! Output side of a host: its send queues and the link to the switch.
//!
//! A message that finds its queue full waits in front of it, like a program blocked in a write. A queue therefore never
//! exceeds the configured length, and frames of a message never overtake those of another message of the same class.

use std::collections::VecDeque;

use crosswind_policy::queue::DoubleQueue;
use crosswind_schema::Class;

use super::engine::{Engine, NONE};
use super::observer::Observer;
use crate::time::Nanos;

pub(super) struct Output {
    pub queue: DoubleQueue<u32>,
    /// Messages with frames that do not fit into the queue yet. With one queue, all are in the first element.
    before: [VecDeque<u32>; 2],
    /// Message and length of the frame on the link. [`NONE`] means that the link is free.
    on_link: (u32, u32),
    carry: u64,
}

impl Output {
    pub const fn new(queue: DoubleQueue<u32>) -> Self {
        Self { queue, before: [VecDeque::new(), VecDeque::new()], on_link: (NONE, 0), carry: 0 }
    }

    #[inline]
    pub const fn is_free(&self) -> bool {
        self.on_link.0 == NONE
    }

    /// Whether the queue for a class is full.
    #[inline]
    pub fn is_full(&self, class: Class, one_queue: bool, buffer: u32) -> bool {
        let others = if one_queue { self.queue.len(class.other()) } else { 0 };
        self.queue.len(class) + others >= buffer as usize
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Accepts a message at a host's interface.
    #[inline]
    pub fn give(&mut self, host: u32, message: u32) {
        let lane = self.lane(self.messages[message].class);
        self.hosts.outputs[host as usize].before[lane].push_back(message);
        self.refill(host, lane);
        if self.hosts.outputs[host as usize].is_free() {
            self.send_next(host);
        }
    }

    #[inline]
    const fn lane(&self, class: Class) -> usize {
        if self.settings.one_queue { 0 } else { class as usize }
    }

    /// Fills a queue with frames of the messages waiting in front of it.
    #[inline]
    fn refill(&mut self, host: u32, lane: usize) {
        let output = &mut self.hosts.outputs[host as usize];
        while let Some(&message) = output.before[lane].front() {
            let of = &mut self.messages[message];
            if output.is_full(of.class, self.settings.one_queue, self.settings.buffer) {
                break;
            }
            let bytes = of.unsent.min(self.settings.frame_bytes);
            of.unsent -= bytes;
            output.queue.push(of.class, bytes, message);
            if of.unsent == 0 {
                output.before[lane].pop_front();
            }
        }
    }

    /// Handles the end of a frame's transmission on the link.
    #[inline]
    pub fn on_output(&mut self, host: u32) {
        let (message, bytes) = self.hosts.outputs[host as usize].on_link;
        self.reach_port(message, bytes);
        self.send_next(host);
    }

    /// Puts the next eligible frame, if any, onto the link.
    #[inline]
    pub fn send_next(&mut self, host: u32) {
        let may_send = if self.hosts.full_ports == 0 && self.control.credits.is_none() {
            [true; 2]
        } else {
            self.classes_that_may_send(host)
        };
        let output = &mut self.hosts.outputs[host as usize];
        let Some((class, bytes, message)) = output.queue.pop(may_send) else {
            output.on_link.0 = NONE;
            self.agenda.slots.clear(host as usize);
            return;
        };
        output.on_link = (message, bytes);
        let on_link = self.settings.host_ns + self.pace.next(bytes, &mut output.carry);
        self.agenda.slots.set(host as usize, self.now + on_link);
        let lane = if self.settings.one_queue { 0 } else { class as usize };
        if !output.before[lane].is_empty() {
            self.refill(host, lane);
        }
        if O::LISTENS {
            self.observer.leaves(self.now, self.seen(message, bytes));
        }
        if !self.settings.lossy {
            let port = &mut self.hosts.ports[self.messages[message].to as usize];
            port.held += 1;
            self.hosts.full_ports += u32::from(port.held == self.settings.buffer);
        }
        if let Some(credits) = &mut self.control.credits {
            credits.sent(&self.routes[self.messages[message].route as usize]);
        }
    }

    /// Returns which classes may send: those whose first frame has a credit and room at its destination port. A sender
    /// without room is woken when there is room. With one queue, a frame without room blocks all others.
    fn classes_that_may_send(&mut self, host: u32) -> [bool; 2] {
        let queue = &self.hosts.outputs[host as usize].queue;
        let first = Class::BOTH.map(|class| queue.front(class).map(|(_, &message)| message));
        let mut may_send = first.map(|message| {
            message.is_some_and(|message| {
                let route = &self.routes[self.messages[message].route as usize];
                self.control.credits.as_ref().is_none_or(|credits| credits.may_send(route))
            })
        });
        if self.settings.lossy {
            return may_send;
        }
        let next = if self.settings.one_queue && may_send == [true; 2] { queue.longest_waiting() } else { None };
        for class in Class::BOTH {
            let (true, Some(message)) = (may_send[class as usize], first[class as usize]) else { continue };
            // With one queue, a frame that is not first waits for the first frame, not for a port of its own.
            if next.is_some_and(|next| next != class) {
                continue;
            }
            let port = &mut self.hosts.ports[self.messages[message].to as usize];
            if port.held < self.settings.buffer {
                continue;
            }
            if !port.waiters.contains(&host) {
                port.waiters.push_back(host);
            }
            may_send[class as usize] = false;
            if self.settings.one_queue {
                return [false; 2];
            }
        }
        may_send
    }

    /// Lets senders that wait for room at a port continue, in the order in which they began to wait.
    #[inline]
    pub fn wake(&mut self, to: u32) {
        while self.hosts.ports[to as usize].held < self.settings.buffer {
            let Some(host) = self.hosts.ports[to as usize].waiters.pop_front() else { return };
            if self.hosts.outputs[host as usize].is_free() {
                self.send_next(host);
            }
        }
    }

    /// Returns the round trip of an empty network, ns: the transmission of a full frame, with the sender's time per
    /// frame, and the latency both ways, rounded up. The receiver's time is not included.
    pub fn round_trip(&self) -> Nanos {
        2 * self.settings.latency + self.settings.host_ns + self.pace.alone(self.settings.frame_bytes) + 1
    }
}
