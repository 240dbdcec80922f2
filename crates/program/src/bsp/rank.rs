//! A rank of the BSP program.
//!
//! Everything is sent as stores. A store of a later round may arrive first; it is kept, and the rank waits for the one
//! that it needs.

use super::allreduce::{Action, Allreduce, pack};
use super::{Bsp, Grid};
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

/// Single words that a rank keeps without heap memory. A rank is seldom further ahead of another.
const FEW: usize = 4;
const DIRECTIONS: usize = 6;

enum Phase {
    Work,
    /// Sends to the neighbour in this direction next.
    Halo(u32),
    /// Waits for its neighbours' values.
    Neighbours,
    /// Takes part in the allreduce.
    Sum(Allreduce),
    Barrier,
    Over,
}

pub struct BspRank {
    bsp: Bsp,
    /// Ranks of the neighbours, by direction.
    neighbours: [u32; DIRECTIONS],
    directions: u32,
    me: u32,
    iteration: u32,
    phase: Phase,
    value: u64,
    /// The neighbours' values of this iteration and the next, by parity: no neighbour is further ahead.
    halo: [[u64; DIRECTIONS]; 2],
    /// Bit set of the neighbours' values that have arrived, by parity.
    here: [u8; 2],
    /// Stores that arrived for the sum, tagged with iteration and round: up to a few single words (tag 0: free) in
    /// `words`, all others in `early`.
    words: [(u64, u64); FEW],
    early: Vec<(u64, Body)>,
}

/// Tag of a store: iteration, round or direction, and whether it belongs to the sum.
const fn tag(iteration: u32, round: u32, sum: bool) -> u64 {
    (iteration as u64) << 32 | (round as u64) << 1 | sum as u64
}

impl BspRank {
    pub(super) fn new(bsp: &Bsp, me: u32) -> Self {
        let grid = Grid::new(bsp.ranks, bsp.dimensions);
        let directions = grid.neighbours();
        let mut neighbours = [0; DIRECTIONS];
        for (neighbour, direction) in neighbours.iter_mut().zip(0..directions) {
            *neighbour = grid.neighbour(me, direction);
        }
        Self {
            bsp: bsp.clone(),
            neighbours,
            directions,
            me,
            iteration: 0,
            phase: Phase::Work,
            value: Bsp::first(me),
            halo: [[0; DIRECTIONS]; 2],
            here: [0; 2],
            words: [(0, 0); FEW],
            early: Vec::new(),
        }
    }

    /// Returns the bytes of a store of `words` words of the vector.
    fn bytes(&self, words: usize) -> u32 {
        if words == self.bsp.words() { self.bsp.allreduce_bytes } else { (words as u32 * 8).max(1) }
    }

    fn begin_sum(&self) -> Phase {
        if self.bsp.allreduce_bytes == 0 {
            return Phase::Barrier;
        }
        let given = self.bsp.given(self.value);
        Phase::Sum(Allreduce::new(self.bsp.algorithm, self.bsp.ranks, self.me, given))
    }

    fn send_halo(&self, direction: u32) -> Op {
        // The receiver sees it arrive from the opposite direction.
        let body = Body::Pair([tag(self.iteration, direction ^ 1, false), self.value]);
        let to = self.neighbours[direction as usize];
        Op::Message { to, kind: Kind::Store, bytes: self.bsp.halo_bytes.into(), body }
    }

    /// Adds the store of a round to the sum if it has arrived. Returns whether it has.
    fn take_early(&mut self, round: u32) -> bool {
        let wanted = tag(self.iteration, round, true);
        let Phase::Sum(sum) = &mut self.phase else { return false };
        if let Some(word) = self.words.iter_mut().find(|(tag, _)| *tag == wanted) {
            word.0 = 0;
            sum.received(&[word.1]);
            return true;
        }
        let Some(at) = self.early.iter().position(|(tag, _)| *tag == wanted) else { return false };
        match &self.early.swap_remove(at).1 {
            Body::Empty => {}
            Body::Pair([_, word]) => sum.received(&[*word]),
            Body::Words(words) => sum.received(&words[1..]),
        }
        true
    }

    /// Keeps a store for the sum.
    fn keep(&mut self, tag: u64, body: Body) {
        if let Body::Pair([_, word]) = body {
            if let Some(free) = self.words.iter_mut().find(|(tag, _)| *tag == 0) {
                *free = (tag, word);
                return;
            }
        }
        self.early.push((tag, body));
    }
}

impl Rank for BspRank {
    #[inline(always)] // returning an operation through memory would double the cost of sending it
    fn next(&mut self) -> Op {
        loop {
            // The most frequent phase first: a jump table over the phase would be mispredicted.
            if let Phase::Sum(sum) = &mut self.phase {
                match sum.next() {
                    Action::Send { to, round, part } => {
                        let words = part.len();
                        let body = pack(tag(self.iteration, round, true), &sum.words()[part]);
                        sum.sent();
                        let bytes = self.bytes(words);
                        return Op::Message { to, kind: Kind::Store, bytes: bytes.into(), body };
                    }
                    Action::Wait { round } => {
                        if !self.take_early(round) {
                            return Op::Wait;
                        }
                    }
                    Action::Done => {
                        self.value = Bsp::with_sum(self.value, sum.words());
                        self.phase = Phase::Barrier;
                    }
                }
                continue;
            }
            if let Phase::Halo(direction) = self.phase {
                let more = direction + 1 < self.directions;
                self.phase = if more { Phase::Halo(direction + 1) } else { Phase::Neighbours };
                return self.send_halo(direction);
            }
            match self.phase {
                Phase::Neighbours => {
                    let (parity, count) = ((self.iteration % 2) as usize, self.directions);
                    if self.here[parity].count_ones() < count {
                        return Op::Wait;
                    }
                    self.here[parity] = 0;
                    self.value = Bsp::with_halo(self.value, &self.halo[parity][..count as usize]);
                    self.phase = self.begin_sum();
                }
                Phase::Work => {
                    if self.iteration == self.bsp.iterations {
                        return Op::Done;
                    }
                    self.phase = if self.bsp.halo_bytes > 0 { Phase::Halo(0) } else { self.begin_sum() };
                    if self.bsp.work_ns > 0 {
                        return Op::Compute { ns: self.bsp.work_ns };
                    }
                }
                Phase::Barrier => {
                    self.phase = Phase::Over;
                    if self.bsp.barrier {
                        return Op::Barrier;
                    }
                }
                Phase::Over => {
                    self.iteration += 1;
                    self.phase = Phase::Work;
                }
                Phase::Sum(_) | Phase::Halo(_) => {}
            }
        }
    }

    #[inline]
    fn handle(&mut self, _from: u32, _kind: Kind, body: Body) -> Reply {
        let tag = match &body {
            Body::Pair([tag, _]) => *tag,
            Body::Words(words) => words.first().copied().unwrap_or_default(),
            Body::Empty => 0,
        };
        if tag & 1 == 1 {
            self.keep(tag, body);
        } else if let Body::Pair([_, value]) = body {
            let (parity, direction) = ((tag >> 32 & 1) as usize, (tag >> 1 & 7) as usize);
            self.halo[parity][direction] = value;
            self.here[parity] |= 1 << direction;
        }
        Reply::default()
    }

    fn result(&self) -> Vec<u64> {
        vec![self.value]
    }
}
