//! Flow control by windows: how many frames a flow may have in flight, where frames are lost or windows are fixed.
//!
//! Slow start: the window begins at one frame and grows by one for each frame acknowledged, so it doubles every round
//! trip, until a frame finds a buffer full. The flow then waits until everything in flight has arrived or is known to
//! be lost, and restarts with one frame. The paper assumes this of TCP (communication-interactions, section 2; E4-1 and
//! E4-2 of `docs/papers/`).
//!
//! Congestion avoidance, which the paper omits: a loss halves the window to half of what is in flight, and the window
//! then grows by one frame per window acknowledged (TCP Reno, RFC 5681). Further losses among the frames in flight at
//! that time count as the same loss.
//!
//! A fixed window (`network.window_bytes`) limits the unacknowledged bytes of a connection, like a socket's buffer.
//! Where nothing is lost, it is the window itself.
//!
//! Every loss is known after one round trip, so there are no timeouts. Acknowledgements take the latency and no link
//! capacity.

use std::collections::VecDeque;

use crosswind_schema::experiment::streams::Transport;

use super::engine::{Engine, Route};
use super::observer::Observer;
use super::processor::Task;

#[derive(Debug)]
pub(super) struct Flow {
    /// Messages with frames not yet sent.
    pub waiting: VecDeque<u32>,
    /// Message and length of each frame to retransmit.
    again: Vec<(u32, u32)>,
    window: u32,
    /// Upper bound of the window, frames.
    most: u32,
    /// Whether the window neither grows nor shrinks.
    is_fixed: bool,
    under_way: u32,
    /// Frames in flight at the last loss that have neither arrived nor are known to be lost.
    recovering: u32,
    /// `avoids`: whether the flow uses congestion avoidance. `acknowledged`: frames acknowledged since the window last
    /// grew; `None` before the first loss.
    avoids: bool,
    acknowledged: Option<u32>,
}

impl Flow {
    pub const fn new(transport: Transport, most: Option<u32>) -> Self {
        let most = match most {
            Some(most) => most,
            None => u32::MAX,
        };
        let is_fixed = matches!(transport, Transport::Reliable);
        Self {
            waiting: VecDeque::new(),
            again: Vec::new(),
            window: if is_fixed { most } else { 1 },
            most,
            is_fixed,
            under_way: 0,
            recovering: 0,
            avoids: matches!(transport, Transport::CongestionAvoidance),
            acknowledged: None,
        }
    }

    const fn may_send(&self) -> bool {
        let drains = self.recovering > 0 && !self.avoids;
        !drains && self.under_way < self.window && self.under_way < self.most
    }

    fn on_arrived(&mut self) {
        if self.recovering == 0 && !self.is_fixed {
            match &mut self.acknowledged {
                None => self.window = self.window.saturating_add(1),
                Some(acknowledged) => {
                    *acknowledged += 1;
                    if *acknowledged >= self.window {
                        (*acknowledged, self.window) = (0, self.window.saturating_add(1));
                    }
                }
            }
        }
        self.settled();
    }

    fn on_lost(&mut self) {
        if self.recovering == 0 {
            self.recovering = self.under_way;
            self.window = if self.avoids { (self.under_way / 2).max(1) } else { 1 };
            self.acknowledged = self.avoids.then_some(0);
        }
        self.settled();
    }

    /// Removes a frame from those in flight.
    fn settled(&mut self) {
        self.under_way -= 1;
        self.recovering = self.recovering.saturating_sub(1);
    }
}

/// A frame that was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub route: u32,
    pub message: u32,
    pub bytes: u32,
    /// Whether it had left its sender's queue.
    pub was_sent: bool,
}

impl<O: Observer> Engine<'_, O> {
    /// Moves frames of a flow into its sender's queue, as far as its window allows.
    pub fn pump(&mut self, route: u32) {
        let from = self.routes[route as usize].from;
        loop {
            let flow = &mut self.control.flows[route as usize];
            if !flow.may_send() {
                break;
            }
            let (message, bytes) = if let Some(again) = flow.again.pop() {
                again
            } else if let Some(&message) = flow.waiting.front() {
                let unsent = &mut self.messages[message].unsent;
                let bytes = (*unsent).min(self.settings.frame_bytes);
                *unsent -= bytes;
                if *unsent == 0 {
                    flow.waiting.pop_front();
                }
                (message, bytes)
            } else {
                break;
            };
            flow.under_way += 1;
            if self.settings.processor.is_some() {
                self.submit(from, Task::Send { route, message, bytes });
            } else {
                self.push(route, message, bytes);
            }
        }
        if self.hosts.outputs[from as usize].is_free() {
            self.send_next(from);
        }
    }

    /// Hands a frame to the interface after the host's processor has handled it.
    pub fn enqueue(&mut self, route: u32, message: u32, bytes: u32) {
        let from = self.routes[route as usize].from;
        self.push(route, message, bytes);
        if self.hosts.outputs[from as usize].is_free() {
            self.send_next(from);
        }
    }

    /// Puts a frame into its sender's queue. Where nothing is lost, windows bound the queue.
    fn push(&mut self, route: u32, message: u32, bytes: u32) {
        let Route { from, class, .. } = self.routes[route as usize];
        let output = &mut self.hosts.outputs[from as usize];
        if self.settings.lossy && output.is_full(class, self.settings.one_queue, self.settings.buffer) {
            self.lose(Loss { route, message, bytes, was_sent: false });
        } else {
            output.queue.push(class, bytes, message);
        }
    }

    /// Drops a frame that finds no room. Its sender learns of it one round trip later.
    pub fn lose(&mut self, loss: Loss) {
        self.counts.dropped += 1;
        if O::LISTENS {
            let seen = self.seen(loss.message, loss.bytes);
            self.observer.lost(self.now, seen);
        }
        let at = self.now + self.round_trip();
        self.control.losses.push_back((at, loss));
        if self.control.losses.len() == 1 {
            self.agenda.slots.set(self.agenda.layout.loss(), at);
        }
    }

    pub fn on_loss(&mut self) {
        let Some((_, loss)) = self.control.losses.pop_front() else { return };
        let slot = self.agenda.layout.loss();
        match self.control.losses.front() {
            Some(&(at, _)) => self.agenda.slots.set(slot, at),
            None => self.agenda.slots.clear(slot),
        }
        if let (true, Some(credits)) = (loss.was_sent, &mut self.control.credits) {
            credits.lost(&self.routes[loss.route as usize]);
        }
        let flow = &mut self.control.flows[loss.route as usize];
        flow.again.push((loss.message, loss.bytes));
        flow.on_lost();
        self.pump(loss.route);
    }

    /// Schedules the acknowledgement of a frame, one latency from now.
    pub fn acknowledge(&mut self, route: u32) {
        let at = self.now + self.settings.latency;
        self.control.acknowledgements.push_back((at, route));
        if self.control.acknowledgements.len() == 1 {
            self.agenda.slots.set(self.agenda.layout.acknowledgement(), at);
        }
    }

    pub fn on_acknowledgement(&mut self) {
        let Some((_, route)) = self.control.acknowledgements.pop_front() else { return };
        let slot = self.agenda.layout.acknowledgement();
        match self.control.acknowledgements.front() {
            Some(&(at, _)) => self.agenda.slots.set(slot, at),
            None => self.agenda.slots.clear(slot),
        }
        if self.settings.processor.is_some() {
            self.submit(self.routes[route as usize].from, Task::Acknowledgement { route });
        } else {
            self.is_acknowledged(route);
        }
    }

    /// Handles an acknowledgement at the sender.
    pub fn is_acknowledged(&mut self, route: u32) {
        self.control.flows[route as usize].on_arrived();
        self.pump(route);
    }
}
