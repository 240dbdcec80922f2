//! Simulation of parallel programs: ranks on disturbed processors, a network, and flow control by windows.
//!
//! A rank's processor does one thing at a time, at the speed given by its
//! [`Timeline`](crosswind_schema::disturbance::Timeline). Arriving packets wait until the rank polls: before each
//! operation except computing, and while it waits. Decisions about credits come from `crosswind_policy::window`, random
//! draws from the schema crate, and programs from `crosswind-program`.
//!
//! # How
//!
//! An action of a rank at `t` affects no other rank before `t` + latency + overhead. Time is therefore cut into windows
//! of that length. Within a window, ranks can be advanced one by one in any order, because everything that arrives in
//! the window was sent before it began. Packets are handled in the order of arrival, source and number, so the order in
//! which ranks were advanced does not show in the results. A rank that computes beyond the window's end, or waits, is
//! entered in the calendar for the window in which it can continue. Windows in which no rank can continue are skipped.
//!
//! | question | file |
//! |---|---|
//! | what does a message cost? | `network` |
//! | what does a rank do next? | `node` |
//! | which packets are in transit to it, and when do they arrive? | `inbox` |
//! | what has just been sent? | `outbox` |
//! | which rank is visited next? | `calendar` |
//! | what if packets arrive while it is away? | `watch` |
//! | are all at the barrier? | `meeting` |
//! | which send belongs to which receive? | `matching` |
//! | what if the network's buffers fill? | `fat_tree` |
//! | what if ranks have several processors? | `processors` |

mod calendar;
mod fat_tree;
mod inbox;
mod matching;
mod meeting;
mod memory;
mod network;
mod node;
mod outbox;
mod outcome;
mod processors;
mod watch;
mod wires;

use crosswind_policy::window::{Away, Credits, WindowSettings};
use crosswind_program::Program;
use crosswind_schema::disturbance::{NEVER, Timelines};

use self::calendar::{Calendar, Order};
use self::inbox::{Inbox, NEVER_VISITED};
use self::meeting::Meeting;
use self::node::{Node, State};
use self::outbox::Outbox;
use self::watch::Watch;
use self::wires::{Divisor, Windows, Wires};
use crate::error::SimError;

pub use self::fat_tree::FatTree;
pub use self::network::Network;
pub use self::outcome::{Outcome, RankTimes};
pub use self::processors::simulate_processors;
pub use self::wires::Totals;

/// Visits between two calls of the caller's callback.
const LOOKS_PER_CALL: u64 = 1 << 20;
/// With more visits than this in a window, ranks are visited in memory order and prefetched.
const MANY: usize = 512;

/// Simulates a parallel program.
///
/// `watch` is called periodically with the number of operations begun so far. Returning `false` ends the run.
///
/// # Errors
/// [`SimError::Deadlock`] when no event is pending and some ranks have not finished; [`SimError::Network`] and others
/// when the description cannot be simulated; [`SimError::Interrupted`].
pub fn simulate<P: Program>(
    program: &P,
    network: &Network,
    window: WindowSettings,
    timelines: &Timelines,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome<P::Rank>, SimError> {
    if let Some(tree) = network.fat_tree {
        return fat_tree::simulate(program, network, tree, window, timelines, watch);
    }
    Engine::new(program, network, window, timelines)?.run(watch)
}

/// # Errors
/// The network cannot be simulated, there are no ranks, or the disturbance is for another number of ranks.
fn check(ranks: u32, network: &Network, timelines: &Timelines) -> Result<(), SimError> {
    network.check()?;
    if ranks == 0 {
        return Err(SimError::NoRanks);
    }
    if timelines.ranks() != ranks {
        return Err(SimError::Timelines { ranks, timelines: timelines.ranks() });
    }
    Ok(())
}

struct Engine<R> {
    nodes: Vec<Node<R>>,
    inboxes: Vec<Inbox>,
    wires: Wires,
}

impl<R: crosswind_program::Rank> Engine<R> {
    fn new<P: Program<Rank = R>>(
        program: &P,
        network: &Network,
        window: WindowSettings,
        timelines: &Timelines,
    ) -> Result<Self, SimError> {
        let ranks = program.ranks();
        check(ranks, network, timelines)?;
        if let Away::Discard { resend_ns } = window.away {
            let round_trip = 2 * (network.latency_ns + network.overhead_ns);
            if resend_ns < round_trip {
                return Err(SimError::Resend { resend_ns, round_trip_ns: round_trip });
            }
        }
        let watched = Watch::needed(&window);
        let length = network.lookahead(window.limits());
        let mut nodes = Vec::with_capacity(ranks as usize);
        let mut inboxes: Vec<Inbox> = Vec::with_capacity(ranks as usize);
        memory::in_large_pages(&nodes);
        memory::in_large_pages(&inboxes);
        nodes.extend((0..ranks).map(|rank| {
            let credits = window.limits().then(|| Credits::new(&window));
            let watch = watched.then(|| Box::new(Watch::new(timelines.rank(rank), &window)));
            Node::new(program.rank(rank), timelines.rank(rank), credits, watch)
        }));
        inboxes.extend((0..ranks).map(|_| Inbox::new()));
        let running = if window.follows() { (0..ranks).map(|rank| timelines.rank(rank)).collect() } else { Vec::new() };
        let mut wires = Wires {
            network: *network,
            window,
            ranks,
            calendar: Calendar::new(),
            meeting: Meeting::default(),
            totals: Totals::default(),
            gap_per_byte: network.gap_per_byte(),
            windows: Windows { length, lengths: Divisor::new(length), horizon: 0 },
            running,
            outbox: Outbox::default(),
            starved: None,
            one_way: 0,
        };
        for (rank, inbox) in (0..).zip(&mut inboxes) {
            wires.look_at(rank, inbox, 0);
        }
        Ok(Self { nodes, inboxes, wires })
    }

    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome<R>, SimError> {
        let mut looks = 0;
        let mut ranks = Vec::new();
        let mut order = Order::of(self.wires.ranks);
        while let Some(window) = self.wires.calendar.next(&mut ranks) {
            self.wires.windows.horizon = (window + 1).saturating_mul(self.wires.windows.length);
            if self.wires.windows.horizon >= NEVER {
                return Err(SimError::Endless);
            }
            // Ranks lie in memory in rank order, and many do not fit into a near cache.
            let many = ranks.len() > MANY;
            if many {
                order.sort(&mut ranks);
            }
            for (at, &rank) in ranks.iter().enumerate() {
                if many {
                    self.ask_for(ranks.get(at + 2), ranks.get(at + 4));
                }
                let inbox = &mut self.inboxes[rank as usize];
                // It was visited earlier and needs no visit now.
                if inbox.visit != window {
                    continue;
                }
                inbox.visit = NEVER_VISITED;
                inbox.listens = false;
                self.nodes[rank as usize].advance(rank, inbox, &mut self.wires)?;
                if self.wires.outbox.is_full() {
                    self.deliver();
                }
            }
            self.deliver();
            if let Some((from, to)) = self.wires.starved {
                return Err(SimError::Starved { from, to, time_s: self.wires.windows.horizon as f64 * 1e-9 });
            }
            looks += ranks.len() as u64;
            if looks >= LOOKS_PER_CALL {
                looks = 0;
                if !watch(self.wires.totals.operations) {
                    return Err(SimError::Interrupted);
                }
            }
            if let Some(since) = self.wires.meeting.over(self.nodes.len() as u32, self.wires.one_way) {
                self.wires.totals.meetings += 1;
                self.release(since + self.wires.network.control_ns);
            }
        }
        self.outcome()
    }

    /// Moves sent packets into inboxes.
    #[inline]
    fn deliver(&mut self) {
        let mut outbox = std::mem::take(&mut self.wires.outbox);
        if self.nodes.len() > MANY {
            outbox.prefetch(&self.inboxes);
        }
        for (to, packet) in outbox.drain() {
            let inbox = &mut self.inboxes[*to as usize];
            let at = packet.at;
            inbox.push(packet);
            if inbox.listens {
                self.wires.look_at(*to, inbox, at);
            }
        }
        self.wires.outbox = outbox;
    }

    /// Prefetches the rank visited next, and the inbox of one visited soon.
    #[inline]
    fn ask_for(&self, next: Option<&u32>, soon: Option<&u32>) {
        if let Some(&soon) = soon {
            memory::prefetch(&self.inboxes[soon as usize]);
        }
        if let Some(&next) = next {
            memory::prefetch(&self.nodes[next as usize]);
            self.inboxes[next as usize].prefetch();
        }
    }

    /// Releases all ranks from the barrier.
    fn release(&mut self, at: u64) {
        for (rank, (node, inbox)) in (0..).zip(self.nodes.iter_mut().zip(&mut self.inboxes)) {
            node.state = State::Released(at);
            self.wires.look_at(rank, inbox, at.max(node.now));
        }
    }

    fn outcome(self) -> Result<Outcome<R>, SimError> {
        let waiting: Vec<(u32, String)> =
            (0..).zip(&self.nodes).filter_map(|(rank, node)| Some((rank, node.waits_for()?))).collect();
        let last = self.nodes.iter().map(|node| node.end).max().unwrap_or_default();
        outcome::all_are_done(self.nodes.len(), &waiting, last)?;
        if !self.nodes.iter().all(Node::is_settled) {
            return Err(SimError::Broken("a credit or an answer was lost"));
        }
        let times = self
            .nodes
            .iter()
            .map(|node| RankTimes { end_ns: node.end, busy_ns: node.busy, stalled_ns: node.stalled })
            .collect();
        Ok(Outcome {
            makespan_ns: last,
            totals: self.wires.totals,
            times,
            ranks: self.nodes.into_iter().map(|node| node.rank).collect(),
        })
    }
}
