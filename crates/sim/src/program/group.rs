//! Ranks that one thread advances, with their calendar and the packets between them.

use std::ops::Range;

use crosswind_policy::window::{Credits, WindowSettings};
use crosswind_program::{Program, Rank};
use crosswind_schema::disturbance::{NEVER, Timelines};

use super::calendar::{Calendar, Order};
use super::inbox::{Inbox, NEVER_VISITED, Packet};
use super::meeting::Meeting;
use super::memory;
use super::network::Network;
use super::node::{Node, State};
use super::outbox::Outbox;
use super::outcome::{self, Outcome, RankTimes};
use super::watch::Watch;
use super::wires::{Divisor, Totals, Windows, Wires};
use crate::error::SimError;

/// Visits between two calls of the caller's callback.
pub const CHECKS_PER_CALL: u64 = 1 << 20;
/// With more visits than this in a window, ranks are visited in memory order and prefetched.
const MANY: usize = 512;

pub struct Group<R> {
    /// The first of the ranks.
    first: u32,
    nodes: Vec<Node<R>>,
    inboxes: Vec<Inbox>,
    pub wires: Wires,
    /// Ranks to visit in the current window.
    ranks: Vec<u32>,
    order: Order,
    /// Packets to ranks of other groups.
    pub away: Vec<(u32, Packet)>,
}

impl<R: Rank> Group<R> {
    /// Creates the ranks `part` of a program. The settings have been checked.
    pub fn new<P: Program<Rank = R>>(
        program: &P,
        network: &Network,
        window: WindowSettings,
        timelines: &Timelines,
        part: Range<u32>,
    ) -> Self {
        let watched = Watch::needed(&window);
        let length = network.lookahead(window.limits());
        let mut nodes = Vec::with_capacity(part.len());
        let mut inboxes: Vec<Inbox> = Vec::with_capacity(part.len());
        memory::in_large_pages(&nodes);
        memory::in_large_pages(&inboxes);
        nodes.extend(part.clone().map(|rank| {
            let credits = window.limits().then(|| Credits::new(&window));
            let watch = watched.then(|| Box::new(Watch::new(timelines.rank(rank), &window)));
            Node::new(program.rank(rank), timelines.rank(rank), credits, watch)
        }));
        inboxes.extend(part.clone().map(|_| Inbox::new()));
        let all = 0..program.ranks();
        let running = if window.follows() { all.map(|rank| timelines.rank(rank)).collect() } else { Vec::new() };
        let mut wires = Wires {
            network: *network,
            window,
            ranks: program.ranks(),
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
        for (rank, inbox) in part.clone().zip(&mut inboxes) {
            wires.look_at(rank, inbox, 0);
        }
        let order = Order::of(part.clone());
        Self { first: part.start, nodes, inboxes, wires, ranks: Vec::new(), order, away: Vec::new() }
    }

    /// Runs a program whose ranks are all in this group.
    pub fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome<R>, SimError> {
        let mut checks = 0;
        while let Some(window) = self.wires.calendar.first() {
            checks += self.advance(window)?;
            if checks >= CHECKS_PER_CALL {
                checks = 0;
                if !watch(self.wires.totals.operations) {
                    return Err(SimError::Interrupted);
                }
            }
            if let Some(since) = self.wires.meeting.over(self.wires.ranks, self.wires.one_way) {
                self.wires.totals.meetings += 1;
                self.release(since + self.wires.network.control_ns);
            }
        }
        outcome(vec![self])
    }

    /// Advances all ranks that can continue in a window, which is the first with visits or earlier. Returns the number
    /// of visits.
    pub fn advance(&mut self, window: u64) -> Result<u64, SimError> {
        self.wires.calendar.take(window, &mut self.ranks);
        self.wires.windows.horizon = (window + 1).saturating_mul(self.wires.windows.length);
        if self.wires.windows.horizon >= NEVER {
            return Err(SimError::Endless);
        }
        let mut ranks = std::mem::take(&mut self.ranks);
        // Ranks lie in memory in rank order, and many do not fit into a near cache.
        let many = ranks.len() > MANY;
        if many {
            self.order.sort(&mut ranks);
        }
        for (at, &rank) in ranks.iter().enumerate() {
            if many {
                self.ask_for(ranks.get(at + 2), ranks.get(at + 4));
            }
            let place = (rank - self.first) as usize;
            let inbox = &mut self.inboxes[place];
            // It was visited earlier and needs no visit now.
            if inbox.visit != window {
                continue;
            }
            inbox.visit = NEVER_VISITED;
            inbox.listens = false;
            self.nodes[place].advance(rank, inbox, &mut self.wires)?;
            if self.wires.outbox.is_full() {
                self.deliver();
            }
        }
        self.deliver();
        if let Some((from, to)) = self.wires.starved {
            return Err(SimError::Starved { from, to, time_s: self.wires.windows.horizon as f64 * 1e-9 });
        }
        let visits = ranks.len() as u64;
        self.ranks = ranks;
        Ok(visits)
    }

    /// Moves sent packets into inboxes, or to those for other groups.
    #[inline]
    fn deliver(&mut self) {
        let mut outbox = std::mem::take(&mut self.wires.outbox);
        if self.nodes.len() > MANY {
            outbox.prefetch(&self.inboxes, self.first);
        }
        for (to, packet) in outbox.drain() {
            let Some(inbox) = self.inboxes.get_mut(to.wrapping_sub(self.first) as usize) else {
                self.away.push((*to, std::mem::replace(packet, Packet::ACKNOWLEDGEMENT)));
                continue;
            };
            let at = packet.at;
            inbox.push(packet);
            if inbox.listens {
                self.wires.look_at(*to, inbox, at);
            }
        }
        self.wires.outbox = outbox;
    }

    /// Takes packets of another group into inboxes.
    pub fn take_mail(&mut self, mail: &mut Vec<(u32, Packet)>) {
        for (to, mut packet) in mail.drain(..) {
            let inbox = &mut self.inboxes[(to - self.first) as usize];
            let at = packet.at;
            inbox.push(&mut packet);
            if inbox.listens {
                self.wires.look_at(to, inbox, at);
            }
        }
    }

    /// Prefetches the rank visited next, and the inbox of one visited soon.
    #[inline]
    fn ask_for(&self, next: Option<&u32>, soon: Option<&u32>) {
        if let Some(&soon) = soon {
            memory::prefetch(&self.inboxes[(soon - self.first) as usize]);
        }
        if let Some(&next) = next {
            let next = (next - self.first) as usize;
            memory::prefetch(&self.nodes[next]);
            self.inboxes[next].prefetch();
        }
    }

    /// Releases the ranks from the barrier.
    pub fn release(&mut self, at: u64) {
        for (rank, (node, inbox)) in (self.first..).zip(self.nodes.iter_mut().zip(&mut self.inboxes)) {
            node.state = State::Released(at);
            self.wires.look_at(rank, inbox, at.max(node.now));
        }
    }
}

/// Returns the outcome of groups that have come to their ends, in rank order.
pub fn outcome<R: Rank>(groups: Vec<Group<R>>) -> Result<Outcome<R>, SimError> {
    let mut totals = Totals::default();
    for group in &groups {
        totals.add(&group.wires.totals);
    }
    let nodes = || groups.iter().flat_map(|group| &group.nodes);
    let waiting: Vec<(u32, String)> =
        (0..).zip(nodes()).filter_map(|(rank, node)| Some((rank, node.waits_for()?))).collect();
    let last = nodes().map(|node| node.end).max().unwrap_or_default();
    outcome::all_are_done(nodes().count(), &waiting, last)?;
    if !nodes().all(Node::is_settled) {
        return Err(SimError::Broken("a credit or an answer was lost"));
    }
    let times =
        nodes().map(|node| RankTimes { end_ns: node.end, busy_ns: node.busy, stalled_ns: node.stalled }).collect();
    let ranks = groups.into_iter().flat_map(|group| group.nodes).map(|node| node.rank).collect();
    Ok(Outcome { makespan_ns: last, totals, times, ranks })
}
