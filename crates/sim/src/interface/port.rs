//! The switch: one output port and one link per host, served first come, first served, regardless of class.
//!
//! A frame passes a free port while it is arriving (as the cells of an ATM switch do), so its transmission time counts
//! once. Behind other frames it waits. Where senders wait for room, a buffer slot is taken when a frame's transmission
//! begins, so the buffer never overflows. Where they do not, a frame that finds the buffer full is lost.

use std::collections::VecDeque;

use super::engine::Engine;
use super::flow::Loss;
use super::observer::Observer;
use crate::time::Nanos;

#[derive(Default)]
pub(super) struct Port {
    /// Message and length of each frame; the first is on the link.
    queue: VecDeque<(u32, u32)>,
    /// Frames in the buffer or on their way to it.
    pub held: u32,
    free_at: Nanos,
    carry: u64,
    /// Whether the first frame waits for room at the host.
    pub stalled: bool,
    /// Hosts that wait for room in the buffer.
    pub waiters: VecDeque<u32>,
}

impl<O: Observer> Engine<'_, O> {
    /// Handles a frame that has arrived completely at the switch.
    #[inline]
    pub fn reach_port(&mut self, message: u32, bytes: u32) {
        let to = self.messages[message].to;
        let port = &mut self.hosts.ports[to as usize];
        if self.settings.lossy {
            if port.held >= self.settings.buffer {
                let route = self.messages[message].route;
                self.lose(Loss { route, message, bytes, was_sent: true });
                return;
            }
            port.held += 1;
        }
        if port.queue.is_empty() {
            let gone = port.free_at + self.pace.alone(bytes);
            if gone <= self.now && self.has_room(to) {
                self.hosts.ports[to as usize].free_at = self.now;
                self.depart(to, message, bytes);
                return;
            }
            let slot = self.agenda.layout.port(to);
            self.agenda.slots.set(slot, gone.max(self.now));
        }
        self.hosts.ports[to as usize].queue.push_back((message, bytes));
    }

    /// Handles the end of transmission of a port's first frame.
    pub fn on_port(&mut self, to: u32) {
        let slot = self.agenda.layout.port(to);
        let has_room = self.has_room(to);
        let port = &mut self.hosts.ports[to as usize];
        port.stalled = !has_room;
        let first = if has_room { port.queue.pop_front() } else { None };
        let Some((message, bytes)) = first else {
            self.agenda.slots.clear(slot);
            return;
        };
        port.free_at = self.now;
        match port.queue.front() {
            Some(&(_, next)) => {
                let takes = self.pace.next(next, &mut port.carry);
                self.agenda.slots.set(slot, self.now + takes);
            }
            None => self.agenda.slots.clear(slot),
        }
        self.depart(to, message, bytes);
    }

    /// Sends a frame from the port to its host.
    #[inline]
    fn depart(&mut self, to: u32, message: u32, bytes: u32) {
        let port = &mut self.hosts.ports[to as usize];
        if !self.settings.lossy {
            self.hosts.full_ports -= u32::from(port.held == self.settings.buffer);
        }
        port.held -= 1;
        let wake = !port.waiters.is_empty();
        self.approach(to, message, bytes);
        if wake {
            self.wake(to);
        }
    }
}
