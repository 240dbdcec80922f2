//! GOAL schedules whose ranks have several processors and interfaces, or send large messages by rendezvous.
//!
//! Processors of one rank affect each other at once, so there is no window of time in which ranks can be advanced one by
//! one. Events are handled in the order of time instead. At one time, packets reach interfaces first, then operations end in the
//! order in which they began, then packets pass the interfaces, then processors choose what to do. Of a rank's processors, that chooses first which handles a
//! packet or whose operation became free first. With one processor and one
//! interface per rank all times are those of [`super::simulate`] if g is at least o: there a processor that takes o per packet
//! holds up its interface, here others may take the next packet.
//!
//! A rendezvous send ends at the moment at which its message matches at the receiver, as in LogGOPSim: without a latency.
//!
//! Each processor keeps to its rank's timeline: what takes a rank away takes all of its processors.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crosswind_policy::window::{Away, WindowSettings};
use crosswind_program::goal::processors::{RankProcessors, Sender, Taken, Work};
use crosswind_program::{Goal, Program as _};
use crosswind_schema::disturbance::{NEVER, Timeline, Timelines};

use super::network::{Gap, Network};
use super::outcome::{self, Outcome, RankTimes};
use super::wires::Totals;
use crate::error::SimError;

/// Events between two calls of the caller's callback.
const EVENTS_PER_CALL: u64 = 1 << 20;

/// What happens, in the order in which it happens at one time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet reaches an interface of its destination.
    Arrives { to: u32, packet: Packet },
    /// A processor's current activity ends. `order`: among those that have begun.
    Ends { order: u64, rank: u32, cpu: u8 },
    /// A packet has passed the interface. `order`: among those that passed at that time.
    Passes { order: u64, to: u32, packet: Packet },
    /// Idle processors of a rank look for something to do.
    Chooses { rank: u32 },
}

/// A packet. Those that arrive at one time are in order of sender and of sending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    from: u32,
    /// Number among the packets of its sender.
    number: u64,
    tag: u64,
    bytes: u32,
    last: bool,
    /// The send of a rendezvous message, an operation of `from`.
    waits: Option<u32>,
    /// Processor and interface that the send named.
    cpu: u8,
    nic: u8,
}

/// A packet that waits for a processor.
#[derive(Clone, Copy)]
struct Arrived {
    id: u64,
    /// The receive of its message, if one was posted.
    receive: Option<u32>,
    last: bool,
    /// The send of a rendezvous message.
    sender: Option<Sender>,
}

/// The part of a message that is not with the network.
#[derive(Clone, Copy)]
struct Sending {
    operation: u32,
    to: u32,
    tag: u64,
    left: u64,
    /// Whether it ends only when its message has matched.
    waits: bool,
    nic: u8,
    /// Position among the operations of the rank, as [`Taken::order`].
    order: u32,
}

/// A processor's current activity, which ends at a known time.
enum Activity {
    Computes(u32),
    Sends(Sending),
    Handles(Arrived),
}

struct Processor {
    timeline: Timeline,
    /// Time up to which the timeline has been queried, ns: it does not go back.
    known: u64,
    activity: Option<Activity>,
    /// The message that it has begun to send.
    sending: Option<Sending>,
    arrived: VecDeque<Arrived>,
    /// Whether its last activity was the first operation of its queue, and computed.
    computed: bool,
    /// Time of its next choice, ns; `None` if it has nothing to do.
    chooses: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Interface {
    /// Time at which it accepts the next packet to send, ns.
    out: u64,
    /// Time at which the last packet passed it, ns.
    passed: Option<u64>,
}

struct Node {
    rank: RankProcessors,
    processors: Vec<Processor>,
    interfaces: Vec<Interface>,
    sent: u64,
    received: u64,
    times: RankTimes,
}

impl Node {
    fn processor(&mut self, cpu: u8, timelines: &Timelines, me: u32) -> &mut Processor {
        while self.processors.len() <= usize::from(cpu) {
            self.processors.push(Processor {
                timeline: timelines.rank(me),
                known: 0,
                activity: None,
                sending: None,
                arrived: VecDeque::new(),
                computed: false,
                chooses: None,
            });
        }
        &mut self.processors[usize::from(cpu)]
    }

    fn interface(&mut self, nic: u8) -> &mut Interface {
        if self.interfaces.len() <= usize::from(nic) {
            self.interfaces.resize(usize::from(nic) + 1, Interface::default());
        }
        &mut self.interfaces[usize::from(nic)]
    }
}

struct Engine<'a> {
    nodes: Vec<Node>,
    timelines: &'a Timelines,
    network: &'a Network,
    per_byte: Gap,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// Number of packets that have passed an interface, and of activities that have begun.
    passed: u64,
    begun: u64,
    totals: Totals,
}

/// Simulates a schedule whose ranks have any number of processors and interfaces. `watch` is called periodically with the
/// number of operations begun so far. Returning `false` ends the run.
///
/// # Errors
/// [`SimError::Deadlock`] when no event is pending and some operations have not ended; [`SimError::OneProcessor`] for
/// settings that need one processor per rank; [`SimError::Network`] and others when the description cannot be simulated;
/// [`SimError::Interrupted`].
pub fn simulate_processors(
    goal: &Goal,
    network: &Network,
    window: WindowSettings,
    timelines: &Timelines,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome<RankProcessors>, SimError> {
    super::check(goal.ranks(), network, timelines)?;
    let settings = [
        ("network.fat_tree", network.fat_tree.is_some()),
        ("policy.window_packets", window.limits()),
        ("policy.away = \"discard\"", window.away != Away::Buffer),
    ];
    if let Some((setting, _)) = settings.iter().find(|(_, is_set)| *is_set) {
        return Err(SimError::OneProcessor { setting });
    }
    let node = |rank| Node {
        rank: goal.processors(rank),
        processors: Vec::new(),
        interfaces: Vec::new(),
        sent: 0,
        received: 0,
        times: RankTimes { end_ns: 0, busy_ns: 0, stalled_ns: 0 },
    };
    let mut engine = Engine {
        nodes: (0..goal.ranks()).map(node).collect(),
        timelines,
        network,
        per_byte: network.gap_per_byte(),
        events: BinaryHeap::new(),
        passed: 0,
        begun: 0,
        totals: Totals::default(),
    };
    for rank in 0..goal.ranks() {
        engine.wake(rank, 0);
    }
    engine.run(watch)
}

impl Engine<'_> {
    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome<RankProcessors>, SimError> {
        let mut handled = 0_u64;
        while let Some(Reverse((now, event))) = self.events.pop() {
            if now >= NEVER {
                return Err(SimError::Endless);
            }
            match event {
                Event::Arrives { to, packet } => self.arrives(to, packet, now),
                Event::Ends { rank, cpu, .. } => self.ends(rank, cpu, now),
                Event::Passes { to, packet, .. } => self.passes(to, packet, now),
                Event::Chooses { rank } => self.chooses(rank, now)?,
            }
            handled += 1;
            if handled % EVENTS_PER_CALL == 0 && !watch(self.totals.operations) {
                return Err(SimError::Interrupted);
            }
        }
        self.outcome()
    }

    fn add(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((time, event)));
    }

    /// Has an idle processor choose at `time`, unless it does so earlier.
    fn visit(&mut self, rank: u32, cpu: u8, time: u64) {
        let processor = self.nodes[rank as usize].processor(cpu, self.timelines, rank);
        if processor.activity.is_none() && processor.chooses.is_none_or(|at| time < at) {
            processor.chooses = Some(time);
            self.add(time, Event::Chooses { rank });
        }
    }

    /// Has the processors choose whose queues have grown, after sends whose messages have matched here have ended.
    fn wake(&mut self, rank: u32, now: u64) {
        let mut ranks = vec![rank];
        while let Some(rank) = ranks.pop() {
            let grown: Vec<u8> = self.nodes[rank as usize].rank.grown().collect();
            for cpu in grown {
                self.visit(rank, cpu, now);
            }
            while let Some(sender) = self.nodes[rank as usize].rank.matched() {
                let node = &mut self.nodes[sender.rank as usize];
                node.times.end_ns = node.times.end_ns.max(now);
                node.rank.has_matched(sender.operation);
                ranks.push(sender.rank);
            }
        }
    }

    /// Passes a packet through the interface when that is free.
    fn arrives(&mut self, to: u32, packet: Packet, now: u64) {
        let gap = self.network.gap_ns + self.per_byte.train(packet.bytes);
        let interface = self.nodes[to as usize].interface(packet.nic);
        let passes = interface.passed.map_or(now, |passed| now.max(passed + gap));
        interface.passed = Some(passes);
        self.passed += 1;
        let order = self.passed;
        self.add(passes, Event::Passes { order, to, packet });
    }

    /// Hands a packet to the processor of its receive, or to that of its send if no receive is posted.
    fn passes(&mut self, to: u32, packet: Packet, now: u64) {
        let Packet { from, tag, last, .. } = packet;
        let sender = packet.waits.map(|operation| Sender { rank: from, operation });
        let node = &mut self.nodes[to as usize];
        node.received += 1;
        let id = node.received;
        let cpu = node.rank.receiver(from, tag).unwrap_or(packet.cpu);
        let receive = if last { node.rank.passed(id, from, tag, sender) } else { None };
        node.processor(cpu, self.timelines, to).arrived.push_back(Arrived { id, receive, last, sender });
        self.visit(to, cpu, now);
    }

    /// Has one of the rank's processors begin what it does next. Others choose when that has had its effects.
    fn chooses(&mut self, rank: u32, now: u64) -> Result<(), SimError> {
        let mut first: Option<((bool, u32), usize)> = None;
        let mut later: Vec<(u8, u64)> = Vec::new();
        let mut choosing = 0;
        let Node { rank: operations, processors, interfaces, .. } = &mut self.nodes[rank as usize];
        let free = |nic: u8| interfaces.get(usize::from(nic)).map_or(0, |interface| interface.out);
        for (cpu, processor) in processors.iter_mut().enumerate() {
            if processor.chooses != Some(now) || processor.activity.is_some() {
                continue;
            }
            let number = cpu as u8;
            let on = processor.timeline.next_on(now.max(processor.known));
            processor.known = on;
            if on >= NEVER {
                return Err(SimError::Endless);
            }
            let goes_on = processor.computed && operations.computes_next(number);
            let handles = !goes_on && !processor.arrived.is_empty();
            let waits = match processor.sending {
                _ if on > now => Some(on),
                _ if handles => None,
                Some(sending) => Some(free(sending.nic)),
                None if operations.first(number, |nic| free(nic) <= now).is_some() => None,
                None => operations.interfaces(number).map(free).min().or(Some(u64::MAX)),
            };
            if let Some(time) = waits.filter(|&time| time > now) {
                processor.chooses = None;
                if on <= now {
                    processor.computed = false;
                }
                if time < u64::MAX {
                    later.push((number, time));
                }
                continue;
            }
            choosing += 1;
            let order = match processor.sending {
                _ if handles => 0,
                Some(sending) => sending.order,
                None => operations.first(number, |nic| free(nic) <= now).unwrap_or_default(),
            };
            let key = ((!handles, order), cpu);
            if first.is_none_or(|first| key < first) {
                first = Some(key);
            }
        }
        for (cpu, time) in later {
            self.visit(rank, cpu, time);
        }
        if choosing > 1 {
            self.add(now, Event::Chooses { rank });
        }
        let Some(((begins, _), cpu)) = first else { return Ok(()) };
        let Node { rank: operations, processors, interfaces, .. } = &mut self.nodes[rank as usize];
        let processor = &mut processors[cpu];
        processor.chooses = None;
        processor.computed = false;
        let number = cpu as u8;
        if !begins && let Some(arrived) = processor.arrived.pop_front() {
            if let Some(sender) = arrived.sender {
                operations.begins_to_handle(arrived.id, arrived.receive, sender);
            }
            self.works(rank, number, now, self.network.overhead_ns, Activity::Handles(arrived));
            self.wake(rank, now);
        } else if let Some(sending) = processor.sending {
            self.send(rank, number, now, sending);
        } else {
            let free = |nic: u8| interfaces.get(usize::from(nic)).map_or(0, |interface| interface.out);
            if let Some(taken) = operations.take(number, |nic| free(nic) <= now) {
                return self.begin(rank, number, now, taken);
            }
        }
        Ok(())
    }

    fn begin(&mut self, rank: u32, cpu: u8, now: u64, taken: Taken) -> Result<(), SimError> {
        let Taken { operation, work, place, order, first } = taken;
        self.totals.operations += 1;
        match work {
            Work::Calc { ns } => {
                self.nodes[rank as usize].processors[usize::from(cpu)].computed = first;
                self.works(rank, cpu, now, ns, Activity::Computes(operation));
            }
            Work::Send { to, tag, bytes, waits } => {
                let ranks = self.nodes.len() as u32;
                if to >= ranks {
                    return Err(SimError::NoSuchRank { rank, named: to, ranks });
                }
                self.totals.messages += 1;
                self.send(
                    rank,
                    cpu,
                    now,
                    Sending { operation, to, tag, left: bytes.max(1), waits, nic: place.nic, order },
                );
            }
        }
        self.nodes[rank as usize].rank.record(operation, false);
        self.wake(rank, now);
        Ok(())
    }

    /// Sends one packet of a message through a free interface.
    fn send(&mut self, rank: u32, cpu: u8, now: u64, sending: Sending) {
        let bytes = sending.left.min(u64::from(self.network.packet_bytes)) as u32;
        let rest = Sending { left: sending.left - u64::from(bytes), ..sending };
        let overhead = self.network.overhead_ns;
        let end = self.works(rank, cpu, now, overhead, Activity::Sends(rest));
        let node = &mut self.nodes[rank as usize];
        // The gap runs from the beginning of the overhead.
        let train = self.per_byte.train(bytes);
        node.interface(sending.nic).out = end - overhead.min(end) + self.network.gap_ns + train;
        node.sent += 1;
        let Sending { to, tag, nic, .. } = sending;
        let last = rest.left == 0;
        let waits = (sending.waits && last).then_some(sending.operation);
        let packet = Packet { from: rank, number: node.sent, tag, bytes, last, waits, cpu, nic };
        self.totals.packets += 1;
        self.add(end.saturating_add(self.network.latency_ns + train), Event::Arrives { to, packet });
    }

    /// Occupies a processor for `ns` of an undisturbed one. Returns the time at which it is done.
    fn works(&mut self, rank: u32, cpu: u8, now: u64, ns: u64, activity: Activity) -> u64 {
        let node = &mut self.nodes[rank as usize];
        node.times.busy_ns = node.times.busy_ns.saturating_add(ns);
        let processor = &mut node.processors[usize::from(cpu)];
        let end = processor.timeline.work(now, ns);
        processor.activity = Some(activity);
        self.begun += 1;
        self.add(end, Event::Ends { order: self.begun, rank, cpu });
        end
    }

    fn ends(&mut self, rank: u32, cpu: u8, now: u64) {
        let node = &mut self.nodes[rank as usize];
        node.times.end_ns = node.times.end_ns.max(now);
        let processor = &mut node.processors[usize::from(cpu)];
        match processor.activity.take() {
            Some(Activity::Computes(operation)) => node.rank.record(operation, true),
            Some(Activity::Sends(rest)) if rest.left > 0 => processor.sending = Some(rest),
            Some(Activity::Sends(rest)) => {
                processor.sending = None;
                if rest.waits {
                    node.rank.waits(rest.operation, rest.to);
                } else {
                    node.rank.record(rest.operation, true);
                }
            }
            Some(Activity::Handles(Arrived { id, receive, last: true, .. })) => {
                self.totals.handled += 1;
                node.rank.handled(id, receive);
            }
            Some(Activity::Handles(_)) | None => {}
        }
        self.visit(rank, cpu, now);
        self.wake(rank, now);
    }

    fn outcome(self) -> Result<Outcome<RankProcessors>, SimError> {
        let waiting: Vec<(u32, String)> =
            (0..).zip(&self.nodes).filter_map(|(rank, node)| Some((rank, node.rank.waits_for()?))).collect();
        let last = self.nodes.iter().map(|node| node.times.end_ns).max().unwrap_or_default();
        outcome::all_are_done(self.nodes.len(), &waiting, last)?;
        Ok(Outcome {
            makespan_ns: last,
            totals: self.totals,
            times: self.nodes.iter().map(|node| node.times).collect(),
            ranks: self.nodes.into_iter().map(|node| node.rank).collect(),
        })
    }
}
