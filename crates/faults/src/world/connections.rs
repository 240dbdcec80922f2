//! Connections: dialling, bytes in transit, closing ends, and cuts.

use crosswind_agent::Agent;
use crosswind_agent::action::{Inbound, Peer};
use crosswind_agent::settings::Admission;

use super::process::Process;
use super::{What, World, about};
use crate::bytes::Bytes;
use crate::schedule::MS;
use crate::wire::{Receiver, Sender};

/// Time between two attempts to reach a parent, ns.
const AGAIN_NS: u64 = 100 * MS;

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    pub node: usize,
    pub life: u64,
    /// Number of the child in the parent's policy. Used at the parent's end only.
    pub child: u32,
    /// Whether this end is closed, or was notified that the other one is.
    pub closed: bool,
}

#[derive(Debug)]
struct Line {
    free_ns: u64,
    last_ns: u64,
    sender: Sender,
    receiver: Receiver,
    /// Remaining bytes before the connection is cut. `None`: no cut is scheduled.
    cut_after: Option<u64>,
    /// Number of fragments in transit.
    under_way: u32,
}

/// A connection. Index 0 is the parent's end and the direction up to it; index 1 is the child's end and the direction
/// down.
#[derive(Debug)]
pub(super) struct Connection {
    pub ends: [End; 2],
    lines: [Line; 2],
    mute: bool,
    /// Whether the ends are notified of a cut.
    cut_is_notified: bool,
}

impl Connection {
    fn is_idle(&self) -> bool {
        !self.mute && self.lines.iter().all(|line| line.under_way == 0 && line.sender.is_idle())
    }
}

impl World<'_> {
    /// Dials the parent of a process that has no agent.
    pub(super) fn dial(&mut self, node: usize, life: u64) {
        let plan = &self.schedule.nodes[node];
        let Some(parent) = plan.parent else { return };
        let (name, latency_ns, guest) = (format!("n{node}"), plan.latency_ns, plan.guest);
        let at = self.now;
        let is_there = self.places[parent].stopped_until <= at && self.agent(parent).is_some();
        if !is_there || self.ended.is_some() {
            self.at(at + AGAIN_NS, What::Dial { node, life });
            return;
        }
        let local = self.local(parent);
        let random = self.random.word() as u32 >> 1;
        let rates = if guest { about(self.schedule, node).to_string() } else { String::new() };
        let chunk = self.run.policy.chunk_kib * 1024;
        let Some(agent) = self.agent(parent) else { return };
        let registered = agent.reserve_slot(&name, &rates, random, local).map(|slot| {
            let admission = agent.admission(&slot, false);
            (agent.register(slot, local), admission)
        });
        match registered {
            Err((_, why)) => {
                self.note(|| format!("n{parent} refuses {name}: {why}"));
                self.at(at + 2 * AGAIN_NS, What::Dial { node, life });
            }
            Ok((child, admission)) => {
                let line = || Line {
                    free_ns: at,
                    last_ns: at + latency_ns,
                    sender: Sender::new(chunk),
                    receiver: Receiver::default(),
                    cut_after: None,
                    under_way: 0,
                };
                let parents_life = self.places[parent].lives;
                let ends = [
                    End { node: parent, life: parents_life, child, closed: false },
                    End { node, life, child: 0, closed: false },
                ];
                let connection = self.connections.len();
                self.connections.push(Connection { ends, lines: [line(), line()], mute: false, cut_is_notified: true });
                if let Some(process) = &mut self.places[parent].process {
                    process.connect(child, connection);
                }
                self.note(|| format!("n{parent} lets {name} in as child {child}"));
                let admission = Box::new(admission);
                self.at(at + latency_ns, What::Welcomed { connection, node, life, admission });
            }
        }
        self.turn(parent);
    }

    pub(super) fn welcomed(&mut self, connection: usize, node: usize, life: u64, admission: Admission) {
        let (local, at) = (self.local(node), self.now);
        let is_closed = self.connections[connection].ends[1].closed;
        let Some(process) = self.process(node, life) else {
            // The process ended meanwhile.
            self.close(connection, 1, true);
            return;
        };
        if is_closed {
            self.at(at + AGAIN_NS, What::Dial { node, life });
            return;
        }
        let numbers = Some((admission.number, admission.parent));
        match Agent::new(&format!("n{node}"), numbers, admission.run, admission.running, local) {
            Ok(agent) => (process.agent, process.parent) = (Some(agent), Some(connection)),
            Err(error) => self.violations.push(format!("n{node} is welcomed, and: {error}")),
        }
        self.turn(node);
    }

    /// Sends bytes up to the parent (0) or down to the child (1).
    pub(super) fn transmit(&mut self, connection: usize, down: usize, bytes: Vec<u8>) {
        let child = self.connections[connection].ends[1].node;
        let plan = &self.schedule.nodes[child];
        let (times, until) = self.places[child].slow;
        let times = if self.now < until { times } else { 1 };
        let (latency_ns, takes_ns) =
            (plan.latency_ns * times.min(20), bytes.len() as u64 * MS * times / plan.bytes_per_ms);
        let now = self.now;
        let Connection { lines, mute, cut_is_notified, .. } = &mut self.connections[connection];
        let line = &mut lines[down];
        line.free_ns = line.free_ns.max(now) + takes_ns;
        line.last_ns = line.last_ns.max(line.free_ns + latency_ns);
        let at = line.last_ns;
        if *mute {
            return;
        }
        let mut bytes = bytes;
        let mut is_cut = false;
        if let Some(after) = &mut line.cut_after {
            if bytes.len() as u64 >= *after {
                bytes.truncate(*after as usize);
                (*mute, is_cut) = (true, true);
            }
            *after -= bytes.len() as u64;
        }
        let is_notified = is_cut && *cut_is_notified;
        // Fragment at random points: reads need not match writes.
        while !bytes.is_empty() {
            let whole = self.random.chance(700);
            let part = if whole { bytes.len() } else { self.random.between(1, bytes.len() as u64 + 1) as usize };
            let rest = bytes.split_off(part);
            self.connections[connection].lines[down].under_way += 1;
            self.at(at, What::Arrive { connection, down, bytes });
            bytes = rest;
        }
        if is_cut {
            self.losses += 1;
            self.note(|| format!("the connection of n{child} is cut"));
        }
        if is_notified {
            (0..2).for_each(|end| self.at(at, What::Broken { connection, end }));
        }
    }

    /// Sends what waits for the line to be free.
    pub(super) fn is_free(&mut self, connection: usize, down: usize) {
        let node = self.connections[connection].ends[1 - down].node;
        if self.connections[connection].ends[1 - down].closed {
            return;
        }
        self.pump(connection, down);
        self.collect(connection, down);
        self.turn(node);
    }

    /// Starts the next chunk if the line is free. Otherwise schedules this for when it is.
    pub(super) fn pump(&mut self, connection: usize, down: usize) {
        let node = self.connections[connection].ends[1 - down].node;
        let (local, now) = (self.local(node), self.now);
        let line = &mut self.connections[connection].lines[down];
        if line.free_ns > now {
            if !line.sender.is_idle() {
                let at = line.free_ns;
                self.at(at, What::Free { connection, down });
            }
            return;
        }
        if let Some(bytes) = line.sender.next(local) {
            self.transmit(connection, down, bytes);
            let at = self.connections[connection].lines[down].free_ns.max(now + 1);
            self.at(at, What::Free { connection, down });
        }
    }

    pub(super) fn sender(&mut self, connection: usize, down: usize) -> &mut Sender {
        &mut self.connections[connection].lines[down].sender
    }

    /// Reports the outcomes of transfers to their agent.
    pub(super) fn collect(&mut self, connection: usize, down: usize) {
        let end = &self.connections[connection].ends[1 - down];
        let (node, peer) = (end.node, if down == 1 { Peer::Child(end.child) } else { Peer::Parent });
        let local = self.local(node);
        let done = std::mem::take(&mut self.sender(connection, down).done);
        let Some(agent) = self.agent(node) else { return };
        for done in done {
            agent.transferred(peer, done, local);
        }
    }

    pub(super) fn arrive(&mut self, connection: usize, down: usize, bytes: &[u8]) {
        let Connection { ends, lines, .. } = &mut self.connections[connection];
        let (end, line) = (&ends[down], &mut lines[down]);
        line.under_way -= 1;
        let (node, life, peer) = (end.node, end.life, if down == 0 { Peer::Child(end.child) } else { Peer::Parent });
        let mut inbound = Vec::new();
        let result = line.receiver.take(bytes, &mut inbound);
        let is_closed = end.closed;
        let (local, now) = (self.local(node), self.now);
        let is_full = self.places[node].disk_full_until > now;
        if is_closed || self.process(node, life).is_none_or(|process| process.agent.is_none()) {
            return;
        }
        if is_full
            && inbound.iter().any(|inbound| matches!(inbound, Inbound::Task { .. } | Inbound::Result { .. }))
            && node > 0
        {
            self.fail(node);
            return;
        }
        let Some(agent) = self.agent(node) else { return };
        agent.alive(peer, local);
        for inbound in inbound {
            agent.on_inbound(peer, inbound, local);
        }
        if let Err(why) = result {
            self.violations.push(format!("n{node} cannot read what {peer:?} wrote: {why}"));
        }
        self.turn(node);
    }

    /// Closes one end and, with `notified`, notifies the other.
    pub(super) fn close(&mut self, connection: usize, end: usize, notified: bool) {
        let Connection { ends, lines, mute, .. } = &mut self.connections[connection];
        if std::mem::replace(&mut ends[end].closed, true) {
            return;
        }
        let silent = *mute || !notified;
        *mute |= !notified;
        // Bytes written before still arrive.
        let latency_ns = self.schedule.nodes[ends[1].node].latency_ns;
        let at = lines[1 - end].last_ns.max(self.now + latency_ns);
        if !silent {
            self.at(at, What::Broken { connection, end: 1 - end });
        }
    }

    pub(super) fn is_broken(&mut self, connection: usize, end: usize) {
        let End { node, life, child, closed } = &mut self.connections[connection].ends[end];
        let (node, life, peer) = (*node, *life, if end == 0 { Peer::Child(*child) } else { Peer::Parent });
        if std::mem::replace(closed, true) {
            return;
        }
        let local = self.local(node);
        let Some(agent) = self.process(node, life).and_then(|process: &mut Process| process.agent.as_mut()) else {
            return;
        };
        agent.lost(peer, "the connection was closed", local);
        self.turn(node);
    }

    /// Schedules a cut of a connection after `up` bytes upwards or `down` bytes downwards, whichever comes first.
    pub(super) fn cut(&mut self, connection: usize, (up, down): (u64, u64), notified: bool) {
        let connection = &mut self.connections[connection];
        connection.cut_is_notified = notified;
        (connection.lines[0].cut_after, connection.lines[1].cut_after) = (Some(up), Some(down));
    }

    /// If nothing is in transit between them, checks that parent and child agree on the number of outstanding tasks.
    pub(super) fn compare_books(&mut self, node: usize) {
        let Some(process) = &self.places[node].process else { return };
        let Some(parents) = &process.agent else { return };
        for &connection in process.children.iter().flatten() {
            let Connection { ends, .. } = &self.connections[connection];
            if !self.connections[connection].is_idle() || ends.iter().any(|end| end.closed) {
                continue;
            }
            let below = self.places[ends[1].node].process.as_ref().filter(|process| process.life == ends[1].life);
            let Some(below) = below.filter(|process| process.parent == Some(connection)) else { continue };
            let Some(childs) = below.agent.as_ref().filter(|agent| !agent.has_actions()) else { continue };
            let (out, (held, _, _)) = (parents.out_under(ends[0].child), childs.holds());
            if out != held as u64 {
                let child = ends[1].node;
                self.violations.push(format!("n{node} has {out} tasks out under n{child}, which holds {held}"));
                return;
            }
        }
    }

    pub(super) fn payload_is_right(&mut self, task: u64, payload: &Bytes) -> bool {
        let plan = self.schedule.tasks.iter().find(|plan| plan.task == task);
        plan.is_some_and(|plan| crate::bytes::result(plan, &crate::bytes::input(plan)) == *payload)
    }
}
