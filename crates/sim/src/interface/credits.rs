//! Credit flow control: one pair of endpoints for each pair of communicating hosts, and the grants in transit between
//! them.
//!
//! A grant takes the latency and no link capacity.

use std::collections::{BTreeMap, VecDeque};

use crosswind_policy::queue::{CreditSettings, Grant, ReceiverCredits, SenderCredits};
use crosswind_schema::Class;

use super::engine::{Engine, Route};
use super::observer::Observer;
use crate::time::Nanos;

pub(super) struct Credits {
    senders: Vec<SenderCredits>,
    receivers: Vec<ReceiverCredits>,
    /// The sending host of each connection.
    from: Vec<u32>,
    into: Vec<Vec<u32>>,
    /// By receiving host: parallel messages that have not arrived completely.
    announced: Vec<u32>,
    grants: VecDeque<(Nanos, u32, Grant)>,
}

impl Credits {
    /// Creates one connection for each pair of hosts of which one sends to the other.
    pub fn new(settings: CreditSettings, routes: &mut [Route], hosts: u32) -> Self {
        let mut connections = BTreeMap::new();
        let (mut from, mut into) = (Vec::new(), vec![Vec::new(); hosts as usize]);
        for route in routes {
            route.connection = *connections.entry((route.from, route.to)).or_insert_with(|| {
                let number = from.len() as u32;
                from.push(route.from);
                into[route.to as usize].push(number);
                number
            });
        }
        Self {
            senders: vec![SenderCredits::new(settings); from.len()],
            receivers: vec![ReceiverCredits::new(settings); from.len()],
            from,
            into,
            announced: vec![0; hosts as usize],
            grants: VecDeque::new(),
        }
    }

    /// Counts a message that has been created for a host.
    pub fn announce(&mut self, class: Class, to: u32) {
        if class == Class::Parallel {
            self.announced[to as usize] += 1;
        }
    }

    pub fn may_send(&self, route: &Route) -> bool {
        self.senders[route.connection as usize].may_send(route.class)
    }

    pub fn sent(&mut self, route: &Route) {
        self.senders[route.connection as usize].on_sent(route.class);
    }

    pub fn lost(&mut self, route: &Route) {
        self.senders[route.connection as usize].on_lost(route.class);
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Handles a frame that has arrived at its receiver's interface.
    pub fn on_frame_of(&mut self, route: u32, ends_message: bool) {
        let Route { to, class, connection, .. } = self.routes[route as usize];
        let Some(credits) = &mut self.control.credits else { return };
        if class == Class::Local {
            let grant = credits.receivers[connection as usize].on_frame(class, self.now, false);
            return self.post(connection, grant);
        }
        credits.announced[to as usize] -= u32::from(ends_message);
        let is_last = credits.announced[to as usize] == 0;
        let idle = self.agenda.layout.idle(to);
        let mut at = 0;
        while let Some(&other) = self.control.credits.as_ref().and_then(|credits| credits.into[to as usize].get(at)) {
            let Some(credits) = &mut self.control.credits else { return };
            let receiver = &mut credits.receivers[other as usize];
            let grant = if other == connection {
                receiver.on_frame(class, self.now, is_last)
            } else {
                receiver.on_parallel_elsewhere(self.now, is_last)
            };
            // A timer that fires early is harmless: the handler sets it again.
            let timer = receiver.next_timer();
            if let (Some(timer), false) = (timer, self.agenda.slots.is_set(idle)) {
                self.agenda.slots.set(idle, timer);
            }
            self.post(other, grant);
            at += 1;
        }
    }

    /// Handles a frame that has been taken from its receiver's queue.
    pub fn on_dequeue_of(&mut self, route: u32, class: Class) {
        let connection = self.routes[route as usize].connection;
        let Some(credits) = &mut self.control.credits else { return };
        let grant = credits.receivers[connection as usize].on_dequeue(class, self.now);
        self.post(connection, grant);
    }

    /// Handles a host's idle timer: perhaps no parallel frame has arrived for a while.
    pub fn on_idle(&mut self, host: u32) {
        let slot = self.agenda.layout.idle(host);
        self.agenda.slots.clear(slot);
        let Some(connections) = self.control.credits.as_ref().map(|credits| credits.into[host as usize].clone()) else {
            return;
        };
        let mut next = None;
        for connection in connections {
            let Some(credits) = &mut self.control.credits else { return };
            let receiver = &mut credits.receivers[connection as usize];
            let grant = receiver.on_timer(self.now);
            next = [next, receiver.next_timer()].into_iter().flatten().min();
            self.post(connection, grant);
        }
        if let Some(next) = next {
            self.agenda.slots.set(slot, next);
        }
    }

    fn post(&mut self, connection: u32, grant: Option<Grant>) {
        let (Some(credits), Some(grant)) = (&mut self.control.credits, grant) else { return };
        let at = self.now + self.settings.latency;
        credits.grants.push_back((at, connection, grant));
        if credits.grants.len() == 1 {
            self.agenda.slots.set(self.agenda.layout.grant(), at);
        }
    }

    pub fn on_grant(&mut self) {
        let slot = self.agenda.layout.grant();
        let Some(credits) = &mut self.control.credits else { return };
        let Some((_, connection, grant)) = credits.grants.pop_front() else { return };
        match credits.grants.front() {
            Some(&(at, ..)) => self.agenda.slots.set(slot, at),
            None => self.agenda.slots.clear(slot),
        }
        credits.senders[connection as usize].on_grant(grant);
        let from = credits.from[connection as usize];
        if self.hosts.outputs[from as usize].is_free() {
            self.send_next(from);
        }
    }
}
