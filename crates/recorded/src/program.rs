//! The recorded program for a simulated network: computing as recorded, and messages of the recorded sizes.
//!
//! What passes between two calls is computing. What passes in a call is left to the network: a message is sent and
//! received, and a collective operation is messages (`collectives`). A send that waited for its receiver when recorded waits for
//! it here. Operations that the program starts and waits for later run meanwhile.

use std::collections::BTreeMap;

use crosswind_program::Goal;
use crosswind_program::goal::LARGEST_BYTES;
use crosswind_program::goal::build::{Builder, Operation};

use crate::collectives::{Move, moves};
use crate::matching::Matched;
use crate::trace::{Key, Kind, Part, Trace};

/// Returns the program of all ranks, which must be numbered from 0.
///
/// # Errors
/// A message is larger than 1 TiB.
pub fn program(traces: &[Trace], matched: &Matched) -> Result<Goal, String> {
    let mut members = vec![Vec::new(); matched.graph.meetings as usize];
    for (rank, meetings) in (0u32..).zip(&matched.meeting) {
        for (event, meeting) in (0u32..).zip(meetings) {
            if let Some(meeting) = meeting {
                members[matched.operation[*meeting as usize] as usize].push((rank, event));
            }
        }
    }
    for members in &mut members {
        // Ranks of a scan by their places.
        members.sort_by_key(|&(rank, event)| match traces[rank as usize].events[event as usize].part {
            Part::Prefix(place) => place,
            _ => rank,
        });
    }
    let ranks = traces.len();
    let builder = Builder::new(ranks as u32);
    let mut messages = Messages { traces, matched, members, builder, last: vec![None; ranks], ends: BTreeMap::new() };
    for (rank, &start) in (0u32..).zip(&matched.graph.starts) {
        messages.compute(rank, start);
    }
    for node in &matched.graph.nodes {
        let (rank, cell) = (node.rank as usize, node.cell as usize);
        let act = &traces[rank].acts[cell - matched.cells[rank].start];
        messages.compute(node.rank, matched.own.computing[cell]);
        match act.kind {
            Kind::Step => {}
            Kind::Post | Kind::Enter if !traces[rank].arrives(act) => {}
            Kind::Post | Kind::Enter => messages.post(node.rank, act.event)?,
            Kind::Wait | Kind::WaitSent => {
                if !messages.wait(node.rank, act.event, act.kind) {
                    messages.compute(node.rank, matched.own.tail[cell]);
                }
            }
        }
    }
    messages.builder.build()
}

struct Messages<'a> {
    traces: &'a [Trace],
    matched: &'a Matched,
    /// Ranks and events of each operation, in the order of the ranks. An operation has the number of its first meeting.
    members: Vec<Vec<(u32, u32)>>,
    builder: Builder,
    /// The operation after which each rank continues.
    last: Vec<Option<u32>>,
    /// The operation after which a rank's send or collective operation is over, by rank and event.
    ends: BTreeMap<(u32, u32), u32>,
}

/// Returns the tag of the messages of a meeting in a round of it.
fn tag(meeting: u32, round: u32) -> u64 {
    u64::from(meeting) << 32 | u64::from(round)
}

fn bytes_of(bytes: u64) -> Result<u64, String> {
    let fits = bytes <= LARGEST_BYTES;
    fits.then_some(bytes.max(1)).ok_or_else(|| {
        format!("a message has {bytes} bytes; on a simulated network it must have at most {LARGEST_BYTES}")
    })
}

impl Messages<'_> {
    /// Adds an operation that begins when others are over; its index.
    fn add(&mut self, rank: u32, operation: Operation, required: &[Option<u32>]) -> u32 {
        let required: Vec<u32> = required.iter().flatten().copied().collect();
        self.builder.add(rank, operation, &required)
    }

    fn compute(&mut self, rank: u32, ns: i64) {
        if ns > 0 {
            let last = self.last[rank as usize];
            self.last[rank as usize] = Some(self.add(rank, Operation::Calc { ns: ns as u64 }, &[last]));
        }
    }

    /// Begins a send, a receive or a collective operation. The rank continues meanwhile.
    fn post(&mut self, rank: u32, at: u32) -> Result<(), String> {
        let event = &self.traces[rank as usize].events[at as usize];
        let Some(meeting) = self.matched.meeting[rank as usize][at as usize] else { return Ok(()) };
        let last = self.last[rank as usize];
        match event.key {
            Key::Collective { .. } => self.collective(rank, at, meeting)?,
            Key::Message { from, to, .. } => {
                let received = self.matched.received[rank as usize][at as usize].map(|received| tag(received, 0));
                if event.part == Part::Takes {
                    if let Some(tag) = received {
                        self.add(rank, Operation::Send { to: from, tag, bytes: 1 }, &[last]);
                    }
                } else if self.is_received(meeting) {
                    let there = received.map(|tag| self.add(rank, Operation::Receive { from: Some(to), tag }, &[last]));
                    let send = Operation::Send { to, tag: tag(meeting, 0), bytes: bytes_of(event.size)? };
                    let send = self.add(rank, send, &[last, there]);
                    self.ends.insert((rank, at), send);
                }
            }
        }
        Ok(())
    }

    fn is_received(&self, meeting: u32) -> bool {
        let part = |&(rank, event): &(u32, u32)| self.traces[rank as usize].events[event as usize].part;
        self.members[meeting as usize].iter().any(|member| part(member) == Part::Takes)
    }

    fn collective(&mut self, rank: u32, at: u32, meeting: u32) -> Result<(), String> {
        let traces = self.traces;
        let operation = self.matched.operation[meeting as usize];
        let members = &self.members[operation as usize];
        let events = || members.iter().map(|&(rank, event)| &traces[rank as usize].events[event as usize]);
        let sizes: Vec<u64> = events().map(|event| event.size).collect();
        let alone = |part: Part| {
            let mut of = events().enumerate().filter(|(_, event)| event.part == part).map(|(place, _)| place);
            of.next().filter(|_| of.next().is_none())
        };
        let root = alone(Part::Gives).or_else(|| alone(Part::Takes)).unwrap_or(0);
        let me = members.iter().position(|member| *member == (rank, at)).unwrap_or_default();
        let ranks: Vec<u32> = members.iter().map(|member| member.0).collect();
        let name = &traces[rank as usize].events[at as usize].name;
        let mut before = vec![self.last[rank as usize]];
        let mut together = Vec::new();
        for one in moves(name, me, root, &sizes) {
            match one {
                Move::Send { to, round, bytes } => {
                    let send = Operation::Send { to: ranks[to], tag: tag(operation, round), bytes: bytes_of(bytes)? };
                    together.push(Some(self.add(rank, send, &before)));
                }
                Move::Receive { round } => {
                    let receive = Operation::Receive { from: None, tag: tag(operation, round) };
                    together.push(Some(self.add(rank, receive, &before)));
                    before = std::mem::take(&mut together);
                }
            }
        }
        before.append(&mut together);
        let end = self.add(rank, Operation::Calc { ns: 0 }, &before);
        self.ends.insert((rank, at), end);
        Ok(())
    }

    /// Waits until an operation is over. Returns whether the network knows when that is.
    fn wait(&mut self, rank: u32, at: u32, kind: Kind) -> bool {
        let last = self.last[rank as usize];
        let event = &self.traces[rank as usize].events[at as usize];
        let over = match (&event.key, self.matched.meeting[rank as usize][at as usize]) {
            (Key::Message { from, .. }, Some(meeting)) if kind == Kind::Wait && event.part == Part::Takes => {
                let receive = Operation::Receive { from: Some(*from), tag: tag(meeting, 0) };
                self.add(rank, receive, &[last])
            }
            _ => match self.ends.get(&(rank, at)) {
                Some(&end) => self.add(rank, Operation::Calc { ns: 0 }, &[last, Some(end)]),
                None => return false,
            },
        };
        self.last[rank as usize] = Some(over);
        true
    }
}
