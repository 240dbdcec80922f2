//! A driver without time: runs the ranks of a program in a seeded random order and counts what they do.
//!
//! For tests of programs and for tables of their demands on a network. It relies only on what [`crate::Rank`] promises:
//! messages arrive arbitrarily late (those between one pair of ranks in order), and some ranks fall far behind. A
//! program that is right here under every seed is right under every timing. Not for millions of ranks: it keeps a queue
//! per pair.

use std::collections::VecDeque;
use std::fmt;

use crate::op::{Body, Kind, Op};
use crate::random::Stream;
use crate::rank::{Program, Rank};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Time computed between messages, ns.
    pub compute_ns: u64,
    /// Time computed by message handlers, ns.
    pub handler_ns: u64,
    /// Messages sent, by kind as in [`Kind::ALL`].
    pub messages: [u64; 5],
    /// Bytes of those messages, without answers.
    pub bytes: [u64; 5],
    /// Bytes of the answers that the rank gave.
    pub answer_bytes: u64,
    /// Bytes of the largest message or answer.
    pub largest_bytes: u64,
    /// Number of sends with message passing.
    pub sends: u64,
    pub sent_bytes: u64,
    pub barriers: u64,
    /// Syncs, waits for stored bytes and other waits.
    pub waits: u64,
}

impl Tally {
    /// Returns the messages of all kinds, including sends but not answers.
    #[must_use]
    pub fn all_messages(&self) -> u64 {
        self.messages.iter().sum::<u64>() + self.sends
    }

    /// Returns the bytes of its messages, sends and answers.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.bytes.iter().sum::<u64>() + self.sent_bytes + self.answer_bytes
    }

    /// Adds another tally; `largest_bytes` becomes the larger of both.
    pub fn add(&mut self, other: &Self) {
        self.compute_ns += other.compute_ns;
        self.handler_ns += other.handler_ns;
        for kind in 0..self.messages.len() {
            self.messages[kind] += other.messages[kind];
            self.bytes[kind] += other.bytes[kind];
        }
        self.answer_bytes += other.answer_bytes;
        self.largest_bytes = self.largest_bytes.max(other.largest_bytes);
        self.sends += other.sends;
        self.sent_bytes += other.sent_bytes;
        self.barriers += other.barriers;
        self.waits += other.waits;
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub results: Vec<Vec<u64>>,
    pub tallies: Vec<Tally>,
}

/// Deadlock: no event is possible, and some ranks are not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// The waiting ranks, and the operation in which each waits.
    pub waiting: Vec<(u32, Op)>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock: ")?;
        for (rank, op) in self.waiting.iter().take(8) {
            write!(f, "rank {rank} waits in {op:?}; ")?;
        }
        write!(f, "{} ranks in all", self.waiting.len())
    }
}

impl std::error::Error for Stuck {}

/// Runs a program to its end. `order` seeds the order of events.
///
/// # Errors
/// [`Stuck`] if no event is possible and some ranks are not done.
pub fn run<P: Program>(program: &P, order: u64) -> Result<Outcome, Stuck> {
    let mut run = Run::new(program, order);
    while run.step() {}
    run.outcome()
}

enum Parcel {
    Message { kind: Kind, bytes: u64, body: Body },
    Answer { body: Body },
    Sent { tag: u32 },
}

struct Place<R> {
    rank: R,
    waits_in: Option<Op>,
    unanswered: u64,
    stored: u64,
    received: Vec<(u32, u32)>,
    tally: Tally,
}

struct Run<R> {
    places: Vec<Place<R>>,
    /// Messages in transit, by (answers or not, from, to).
    queues: Vec<VecDeque<Parcel>>,
    /// Indices of the queues that are not empty.
    busy: Vec<u32>,
    ready: Vec<u32>,
    one_way: u64,
    here: u32,
    random: Stream,
    drawn: u64,
    /// When there is a choice, the number of steps in 256 that deliver a message.
    eager: u64,
    /// A rank that advances only when no other can. May be beyond the last rank, that is, none.
    last: u32,
}

impl<R: Rank> Run<R> {
    fn new<P: Program<Rank = R>>(program: &P, order: u64) -> Self {
        let ranks = program.ranks();
        let random = Stream::new(order, 0, 0x70_6c_61_69_6e);
        let place = |rank| Place {
            rank: program.rank(rank),
            waits_in: None,
            unanswered: 0,
            stored: 0,
            received: Vec::new(),
            tally: Tally::default(),
        };
        Self {
            places: (0..ranks).map(place).collect(),
            queues: (0..2 * u64::from(ranks).pow(2)).map(|_| VecDeque::new()).collect(),
            busy: Vec::new(),
            ready: (0..ranks).collect(),
            one_way: 0,
            here: 0,
            random,
            drawn: 2,
            eager: [8, 128, 250][random.below(0, 3) as usize],
            last: random.below(1, 2 * u64::from(ranks)) as u32,
        }
    }

    fn draw(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        self.random.below(self.drawn, limit as u64) as usize
    }

    /// Performs one event. Returns `false` if none is possible.
    fn step(&mut self) -> bool {
        let only_the_last = self.ready.len() == 1 && self.ready[0] == self.last;
        let deliver = match (self.busy.is_empty(), self.ready.is_empty()) {
            (true, true) => return false,
            (true, false) => false,
            (false, true) => true,
            (false, false) => only_the_last || (self.draw(256) as u64) < self.eager,
        };
        if deliver {
            let at = self.draw(self.busy.len());
            self.deliver(at);
        } else {
            let mut at = self.draw(self.ready.len());
            if self.ready[at] == self.last && self.ready.len() > 1 {
                at = (at + 1) % self.ready.len();
            }
            let rank = self.ready.swap_remove(at);
            self.advance(rank);
        }
        true
    }

    fn advance(&mut self, rank: u32) {
        let place = &mut self.places[rank as usize];
        let op = place.rank.next();
        let over = match &op {
            Op::Compute { ns } => {
                place.tally.compute_ns += ns;
                true
            }
            Op::Message { .. } | Op::Send { .. } => true,
            Op::Done => false,
            Op::Barrier | Op::StoreSync => {
                place.tally.barriers += 1;
                self.here += 1;
                false
            }
            Op::Sync | Op::Wait | Op::WaitStored { .. } | Op::Receive { .. } => {
                place.tally.waits += 1;
                false
            }
        };
        if over {
            self.ready.push(rank);
            self.send(rank, op);
        } else {
            let waits_for_news = op == Op::Wait;
            place.waits_in = Some(op);
            if !waits_for_news {
                self.look(rank);
            }
            self.meet();
        }
    }

    fn send(&mut self, from: u32, op: Op) {
        let tally = &mut self.places[from as usize].tally;
        match op {
            Op::Message { to, kind, bytes, body } => {
                let slot = Kind::ALL.iter().position(|k| *k == kind).unwrap_or(0);
                tally.messages[slot] += 1;
                tally.bytes[slot] += bytes;
                tally.largest_bytes = tally.largest_bytes.max(bytes);
                if kind.is_answered() {
                    self.places[from as usize].unanswered += 1;
                } else {
                    self.one_way += 1;
                }
                self.post(from, to, Parcel::Message { kind, bytes, body });
            }
            Op::Send { to, tag, bytes } => {
                tally.sends += 1;
                tally.sent_bytes += bytes;
                tally.largest_bytes = tally.largest_bytes.max(bytes);
                self.post(from, to, Parcel::Sent { tag });
            }
            _ => {}
        }
    }

    fn post(&mut self, from: u32, to: u32, parcel: Parcel) {
        let ranks = self.places.len() as u32;
        let answers = u32::from(matches!(parcel, Parcel::Answer { .. }));
        let queue = (answers * ranks + from) * ranks + to;
        let waiting = &mut self.queues[queue as usize];
        if waiting.is_empty() {
            self.busy.push(queue);
        }
        waiting.push_back(parcel);
    }

    fn deliver(&mut self, at: usize) {
        let queue = self.busy[at];
        let ranks = self.places.len() as u32;
        let (from, to) = (queue / ranks % ranks, queue % ranks);
        let waiting = &mut self.queues[queue as usize];
        let Some(parcel) = waiting.pop_front() else { return };
        if waiting.is_empty() {
            self.busy.swap_remove(at);
        }
        let place = &mut self.places[to as usize];
        match parcel {
            Parcel::Message { kind, bytes, body } => {
                let reply = place.rank.handle(from, kind, body);
                place.tally.handler_ns += reply.ns;
                if kind == Kind::Store {
                    place.stored += bytes;
                }
                if kind.is_answered() {
                    place.tally.answer_bytes += u64::from(reply.bytes);
                    place.tally.largest_bytes = place.tally.largest_bytes.max(u64::from(reply.bytes));
                    self.post(to, from, Parcel::Answer { body: reply.body });
                } else {
                    self.one_way -= 1;
                }
            }
            Parcel::Answer { body } => {
                place.rank.answered(from, body);
                place.unanswered -= 1;
            }
            Parcel::Sent { tag } => place.received.push((from, tag)),
        }
        self.look(to);
        if self.one_way == 0 {
            self.meet();
        }
    }

    /// Checks a rank's wait condition, after something arrived for it.
    fn look(&mut self, rank: u32) {
        let place = &mut self.places[rank as usize];
        let over = match place.waits_in {
            Some(Op::Sync) => place.unanswered == 0,
            Some(Op::Wait) => true,
            Some(Op::WaitStored { bytes }) if place.stored >= bytes => {
                place.stored -= bytes;
                true
            }
            Some(Op::Receive { from, tag }) => match place.received.iter().position(|sent| *sent == (from, tag)) {
                Some(at) => {
                    place.received.remove(at);
                    true
                }
                None => false,
            },
            _ => false,
        };
        if over {
            place.waits_in = None;
            self.ready.push(rank);
        }
    }

    /// Releases all ranks if all have reached the same barrier.
    fn meet(&mut self) {
        if self.here < self.places.len() as u32 {
            return;
        }
        let barriers = self.places.iter().filter(|place| place.waits_in == Some(Op::Barrier)).count();
        let over = match self.places.len() - barriers {
            0 => true,
            _ => barriers == 0 && self.one_way == 0,
        };
        if over {
            self.here = 0;
            for (rank, place) in self.places.iter_mut().enumerate() {
                place.waits_in = None;
                self.ready.push(rank as u32);
            }
        }
    }

    fn outcome(self) -> Result<Outcome, Stuck> {
        let waiting: Vec<(u32, Op)> = self
            .places
            .iter()
            .enumerate()
            .filter_map(|(rank, place)| match &place.waits_in {
                Some(Op::Done) | None => None,
                Some(op) => Some((rank as u32, op.clone())),
            })
            .collect();
        if !waiting.is_empty() {
            return Err(Stuck { waiting });
        }
        Ok(Outcome {
            results: self.places.iter().map(|place| place.rank.result()).collect(),
            tallies: self.places.into_iter().map(|place| place.tally).collect(),
        })
    }
}
