//! One run: nodes with burners and the ends of a ping, the network between them, and the event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crosswind_policy::coscheduling::BufferedCoscheduling;
use crosswind_schema::simulated_overlap::{RequestedCell, SimulatedOverlap, Wait};
use crosswind_schema::units::Quantity;

use super::node::{Effect, Node};
use super::process::{Ping, Program, Waiting};
use super::scheduler::Scheduler;
use crate::error::SimError;
use crate::time::{NEVER, Nanos, after, nanos};

/// Events between two calls of the caller's callback.
const WATCHED_EVERY: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// A process starts, or its sleep ends.
    Wakes { node: usize, process: usize },
    /// A message arrives at an end of the ping.
    Arrives { end: usize },
    /// A slice of buffered coscheduling ends and the next begins.
    Slice,
}

/// Which processes take part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Ping,
    Burners,
    Both,
}

/// Times of a run, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub ping: Nanos,
    pub burn: Nanos,
    pub ping_cpu: Nanos,
}

pub(super) struct Machine<'a> {
    request: &'a SimulatedOverlap,
    cell: &'a RequestedCell,
    nodes: Vec<Node>,
    /// Node and process of the ping's ends. The end that sends first comes first.
    ends: Vec<(usize, usize)>,
    agenda: BinaryHeap<Reverse<(Nanos, u64, Happens)>>,
    counter: u64,
    slices: Option<BufferedCoscheduling>,
    /// Message number and sending end of each message that waits for its time slices.
    posted: Vec<(u64, usize)>,
    flight: Nanos,
    running: usize,
    pinging: usize,
}

impl<'a> Machine<'a> {
    pub fn new(request: &'a SimulatedOverlap, cell: &'a RequestedCell, who: Who, turn: u32) -> Self {
        let (costs, network) = (&request.costs, &request.network);
        let cpus = request.cpus as usize;
        let (switch, wake) = (nanos(costs.switch_s.get()), nanos(costs.wake_s.get()));
        let node = || Node::new(Scheduler::new(request.scheduler, cpus), cpus, switch, wake);
        let length_s = cell.message_bytes as f64 / (network.mb_per_s.get() * 1e6);
        let mut machine = Self {
            request,
            cell,
            nodes: (0..request.nodes).map(|_| node()).collect(),
            ends: Vec::new(),
            agenda: BinaryHeap::new(),
            counter: 0,
            slices: None,
            posted: Vec::new(),
            flight: nanos(network.latency_s.get() + length_s),
            running: 0,
            pinging: 0,
        };
        machine.populate(who, turn);
        machine
    }

    fn populate(&mut self, who: Who, turn: u32) {
        let burners = (self.request.burners * self.request.nodes) as usize;
        // The ping's start is drawn first, so it does not depend on the number of burners.
        let starts = self.request.starts(turn, burners + 1);
        let waiting = Waiting::of(self.request, self.cell.wait);
        if who != Who::Ping {
            let work = nanos(self.request.burn_s.get());
            for burner in 0..burners {
                let node = burner % self.nodes.len();
                let burn = Program::Burn { work, done: false };
                let process = self.nodes[node].add(burn, waiting, self.cell.burn_nice);
                self.at(starts[burner + 1], Happens::Wakes { node, process });
                self.running += 1;
            }
        }
        if who != Who::Burners {
            for end in 0..2 {
                let node = end % self.nodes.len();
                let ping = Ping::new(self.request, self.cell, end == 0);
                let process = self.nodes[node].add(Program::Ping(ping), waiting, 0);
                self.ends.push((node, process));
                self.at(starts[0], Happens::Wakes { node, process });
                self.running += 1;
                self.pinging += 1;
            }
            if self.cell.wait == Wait::Buffered {
                let bytes = self.request.network.mb_per_s.get() * 1e6 * self.request.costs.slice_s.get();
                self.slices = Some(BufferedCoscheduling::new(2, bytes as u64));
                self.at(0, Happens::Slice);
            }
        }
    }

    fn at(&mut self, time: Nanos, what: Happens) {
        self.counter += 1;
        self.agenda.push(Reverse((time, self.counter, what)));
    }

    /// Runs to the end. `watch` is called periodically with the number of events so far. Returning `false` stops the
    /// run.
    pub fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Times, SimError> {
        let mut events = 0u64;
        while self.running > 0 {
            events += 1;
            if events % WATCHED_EVERY == 0 && !watch(events) {
                return Err(SimError::Interrupted);
            }
            let next = self.agenda.peek().map_or(NEVER, |Reverse((time, ..))| *time);
            let (node, due) = self.due();
            if next.min(due) >= NEVER || (next >= NEVER && self.nodes.iter().all(Node::only_waits)) {
                return Err(SimError::Endless);
            }
            if due < next {
                self.nodes[node].advance(due);
                self.take_effects(node, due)?;
            } else if let Some(Reverse((now, _, what))) = self.agenda.pop() {
                self.happens(what, now)?;
            }
        }
        Ok(self.times())
    }

    fn due(&self) -> (usize, Nanos) {
        let due = self.nodes.iter().map(Node::due).enumerate();
        due.fold((0, NEVER), |first, one| if one.1 < first.1 { one } else { first })
    }

    fn happens(&mut self, what: Happens, now: Nanos) -> Result<(), SimError> {
        match what {
            Happens::Wakes { node, process } => {
                self.nodes[node].wake(process, now);
                self.take_effects(node, now)
            }
            Happens::Arrives { end } => self.deliver(end, now),
            Happens::Slice => self.next_slice(now),
        }
    }

    fn deliver(&mut self, end: usize, now: Nanos) -> Result<(), SimError> {
        let (node, process) = self.ends[end];
        self.nodes[node].deliver(process, now);
        self.take_effects(node, now)
    }

    fn next_slice(&mut self, now: Nanos) -> Result<(), SimError> {
        if self.pinging == 0 {
            return Ok(());
        }
        let exchange = nanos(self.request.costs.exchange_s.get());
        if exchange > 0 {
            self.nodes.iter_mut().for_each(|node| node.take_processor(now, exchange));
        }
        let arrived = self.slices.as_mut().map(|slices| slices.next_slice().arrived).unwrap_or_default();
        for message in arrived {
            let at = self.posted.iter().position(|&(id, _)| id == message);
            let at = at.ok_or(SimError::Broken("a message arrived that was not posted"))?;
            let (_, from) = self.posted.swap_remove(at);
            self.at(now + nanos(self.request.network.latency_s.get()), Happens::Arrives { end: 1 - from });
        }
        self.at(after(now, self.request.costs.slice_s.get() * 1e9), Happens::Slice);
        Ok(())
    }

    fn take_effects(&mut self, node: usize, now: Nanos) -> Result<(), SimError> {
        for effect in std::mem::take(&mut self.nodes[node].effects) {
            match effect {
                Effect::Sleeps { process, until } => self.at(until, Happens::Wakes { node, process }),
                Effect::Ended { process } => {
                    self.running -= 1;
                    self.pinging -= usize::from(self.ends.contains(&(node, process)));
                }
                Effect::Sent { process } => {
                    let from = self.ends.iter().position(|end| *end == (node, process));
                    let from = from.ok_or(SimError::Broken("a process sent that is not an end of the ping"))?;
                    match &mut self.slices {
                        None => self.at(now.saturating_add(self.flight).min(NEVER), Happens::Arrives { end: 1 - from }),
                        Some(slices) => {
                            let posted = slices.post(from as u32, 1 - from as u32, self.cell.message_bytes);
                            let id = posted.map_err(|_| SimError::Broken("a message has no other end"))?;
                            self.posted.push((id, from));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn times(&self) -> Times {
        let mut times = Times::default();
        for (at, node) in self.nodes.iter().enumerate() {
            for (number, process) in node.processes.iter().enumerate() {
                let lasted = process.ended.unwrap_or(process.began) - process.began;
                if self.ends.contains(&(at, number)) {
                    times.ping_cpu += process.used;
                } else {
                    times.burn = times.burn.max(lasted);
                }
            }
        }
        if let Some(&(node, process)) = self.ends.first() {
            let ping = &self.nodes[node].processes[process];
            times.ping = ping.ended.unwrap_or(ping.began) - ping.began;
        }
        times
    }
}
