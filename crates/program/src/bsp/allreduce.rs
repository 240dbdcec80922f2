//! Allreduce: the sum of all ranks' vectors, at every rank, for every number of ranks.
//!
//! Says what to send to whom and what to wait for; it sends nothing itself.

use std::ops::Range;

use crate::op::Body;

/// How the ranks combine their vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The whole vector, to partners at distances 1, 2, 4, ...: `ceil(log2 P)` rounds, two more where P is no power of 2. Of the ranks beyond
    /// the largest power of 2, each gives its vector to a neighbour first, and gets the sum from it at the end.
    #[default]
    RecursiveDoubling,
    /// Parts of the vector around a ring: `2 (P - 1)` rounds with a P-th of the vector each.
    Ring,
}

/// What a rank does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends this to a rank, in a round that the receiver waits for.
    Send {
        /// Whom to.
        to: u32,
        /// The round.
        round: u32,
        /// A part of [`Allreduce::words`].
        part: Range<usize>,
    },
    /// Waits for what is sent to it in a round.
    Wait {
        /// The round.
        round: u32,
    },
    /// Has the sum.
    Done,
}

/// A vector; most are of one word, which needs no memory of its own.
#[derive(Clone, Debug)]
enum Words {
    One([u64; 1]),
    Many(Vec<u64>),
}

impl Words {
    fn as_slice(&self) -> &[u64] {
        match self {
            Self::One(word) => word,
            Self::Many(words) => words,
        }
    }

    fn as_mut(&mut self) -> &mut [u64] {
        match self {
            Self::One(word) => word,
            Self::Many(words) => words,
        }
    }
}

/// One rank's part in an allreduce.
#[derive(Clone, Debug)]
pub struct Allreduce {
    algorithm: Algorithm,
    ranks: u32,
    me: u32,
    /// The largest power of 2 that is not above the number of ranks, as its logarithm, and the ranks beyond it.
    rounds: u32,
    beyond: u32,
    words: Words,
    /// Sends and waits done; even: sends next, odd: waits next, where both belong to a round.
    at: u32,
}

impl Allreduce {
    /// A rank with its own vector.
    #[must_use]
    pub fn new(algorithm: Algorithm, ranks: u32, me: u32, words: impl ExactSizeIterator<Item = u64>) -> Self {
        let mut words = words;
        let words = match words.len() {
            1 => Words::One([words.next().unwrap_or_default()]),
            _ => Words::Many(words.collect()),
        };
        let rounds = ranks.max(1).ilog2();
        Self { algorithm, ranks, me, rounds, beyond: ranks - (1 << rounds), words, at: 0 }
    }

    /// Its vector so far; the sum, once [`Action::Done`].
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Where the words of a part of a vector of `words` words are, for ring.
    #[must_use]
    pub fn part(words: usize, ranks: u32, part: u32) -> Range<usize> {
        let bound = |part: u64| (words as u64 * part / u64::from(ranks)) as usize;
        bound(u64::from(part))..bound(u64::from(part) + 1)
    }

    /// What is to be done next; the same until [`Allreduce::sent`] or [`Allreduce::received`].
    #[must_use]
    #[inline]
    pub fn next(&self) -> Action {
        match self.algorithm {
            _ if self.ranks == 1 => Action::Done,
            Algorithm::RecursiveDoubling => self.next_of_doubling(),
            Algorithm::Ring => self.next_of_ring(),
        }
    }

    /// What was to be sent has been.
    pub fn sent(&mut self) {
        self.at += 1;
    }

    /// What was waited for is here.
    pub fn received(&mut self, words: &[u64]) {
        match self.algorithm {
            Algorithm::RecursiveDoubling => {
                // The last thing that one beyond the largest power of 2 hears is the sum itself.
                let replaces = self.is_folded() && self.at == 1;
                combine(self.words.as_mut(), words, replaces);
            }
            Algorithm::Ring => {
                let (round, last) = (self.at / 2, self.ranks - 1);
                let (part, replaces) =
                    if round < last { (self.before(round + 1), false) } else { (self.before(round - last), true) };
                let range = Self::part(self.words().len(), self.ranks, part);
                combine(&mut self.words.as_mut()[range], words, replaces);
            }
        }
        self.at += 1;
    }

    /// Whether it gives its vector to a neighbour.
    const fn is_folded(&self) -> bool {
        self.me < 2 * self.beyond && self.me % 2 == 0
    }

    #[inline]
    fn next_of_doubling(&self) -> Action {
        let (beyond, rounds) = (self.beyond, self.rounds);
        let last = rounds + 1;
        if self.is_folded() {
            return match self.at {
                0 => Action::Send { to: self.me + 1, round: 0, part: 0..self.words().len() },
                1 => Action::Wait { round: last },
                _ => Action::Done,
            };
        }
        let takes = self.me < 2 * beyond;
        // One wait more before the first round.
        let at = if takes {
            match self.at.checked_sub(1) {
                None => return Action::Wait { round: 0 },
                Some(at) => at,
            }
        } else {
            self.at
        };
        let round = at / 2;
        if round == rounds {
            return if takes && at % 2 == 0 {
                Action::Send { to: self.me - 1, round: last, part: 0..self.words().len() }
            } else {
                Action::Done
            };
        }
        if round > rounds {
            return Action::Done;
        }
        if at % 2 == 1 {
            return Action::Wait { round: 1 + round };
        }
        let own = if takes { self.me / 2 } else { self.me - beyond };
        let partner = own ^ (1 << round);
        let to = if partner < beyond { 2 * partner + 1 } else { partner + beyond };
        Action::Send { to, round: 1 + round, part: 0..self.words().len() }
    }

    fn next_of_ring(&self) -> Action {
        let (round, last) = (self.at / 2, self.ranks - 1);
        if round == 2 * last {
            return Action::Done;
        }
        if self.at % 2 == 1 {
            return Action::Wait { round };
        }
        let part = if round < last { self.before(round) } else { (self.before(round - last) + 1) % self.ranks };
        let part = Self::part(self.words().len(), self.ranks, part);
        Action::Send { to: (self.me + 1) % self.ranks, round, part }
    }

    /// The part `steps` before the rank's own.
    const fn before(&self, steps: u32) -> u32 {
        (self.me + self.ranks - steps % self.ranks) % self.ranks
    }
}

fn combine(into: &mut [u64], words: &[u64], replaces: bool) {
    for (into, word) in into.iter_mut().zip(words) {
        *into = if replaces { *word } else { into.wrapping_add(*word) };
    }
}

/// A tag and words as the body of a message.
pub(super) fn pack(tag: u64, words: &[u64]) -> Body {
    match words {
        [word] => Body::Pair([tag, *word]),
        other => Body::Words(std::iter::once(tag).chain(other.iter().copied()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs all ranks round by round; what each ends with.
    fn sums(algorithm: Algorithm, ranks: u32, words: usize) -> Vec<Vec<u64>> {
        let own = |rank: u32| -> Vec<u64> { (0..words as u64).map(|at| (u64::from(rank) + 1) * (at + 3)).collect() };
        let mut nodes: Vec<Allreduce> =
            (0..ranks).map(|rank| Allreduce::new(algorithm, ranks, rank, own(rank).into_iter())).collect();
        let mut mail: Vec<Vec<(u32, Vec<u64>)>> = vec![Vec::new(); ranks as usize];
        let mut going: Vec<u32> = (0..ranks).collect();
        while !going.is_empty() {
            let before = going.len();
            let mut moved = false;
            going.retain(|&rank| {
                let node = &mut nodes[rank as usize];
                loop {
                    match node.next() {
                        Action::Send { to, round, part } => {
                            assert!(to < ranks && to != rank);
                            mail[to as usize].push((round, node.words()[part].to_vec()));
                            node.sent();
                        }
                        Action::Wait { round } => {
                            let mine = &mut mail[rank as usize];
                            let Some(at) = mine.iter().position(|(of, _)| *of == round) else { return true };
                            node.received(&mine.swap_remove(at).1);
                        }
                        Action::Done => return false,
                    }
                    moved = true;
                }
            });
            assert!(moved || going.len() < before, "{algorithm:?} on {ranks} ranks is stuck");
        }
        assert!(mail.iter().all(Vec::is_empty), "{algorithm:?} on {ranks} ranks: messages are left");
        nodes.into_iter().map(|node| node.words().to_vec()).collect()
    }

    fn is_right(algorithm: Algorithm, ranks: u32, words: usize) {
        let all = u64::from(ranks) * (u64::from(ranks) + 1) / 2;
        let expected: Vec<u64> = (0..words as u64).map(|at| all * (at + 3)).collect();
        for (rank, sum) in sums(algorithm, ranks, words).iter().enumerate() {
            assert_eq!(*sum, expected, "{algorithm:?}, rank {rank} of {ranks}");
        }
    }

    #[test]
    fn recursive_doubling_is_right_at_every_size() {
        (1..=1100).for_each(|ranks| is_right(Algorithm::RecursiveDoubling, ranks, 1));
        let powers = (11..=16).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
        let others = (1..40).map(|at| 1100 + at * 1657);
        powers.chain(others).filter(|&ranks| ranks <= 65_536).for_each(|ranks| {
            is_right(Algorithm::RecursiveDoubling, ranks, 1);
        });
    }

    #[test]
    fn a_ring_is_right_at_every_size_also_when_parts_are_empty_or_uneven() {
        (1..=80).for_each(|ranks| is_right(Algorithm::Ring, ranks, 50));
        [127, 128, 129, 500].into_iter().for_each(|ranks| is_right(Algorithm::Ring, ranks, ranks as usize + 3));
    }

    /// Simulating a ring of 65,536 takes 8.6e9 messages. But a part goes from each rank to the next, so it is enough to see
    /// that in every round the one that has it is the one that sends it: first once around, adding, then once around again.
    #[test]
    fn in_large_rings_every_part_goes_around_twice() {
        let sizes = (2..600).chain((1..60).map(|at| at * 1092 + at % 17)).chain([65_535, 65_536]);
        for ranks in sizes {
            let words = Words::Many(vec![0; ranks as usize]);
            let mut node = Allreduce { words, ..Allreduce::new(Algorithm::Ring, ranks, 0, std::iter::empty()) };
            for part in [0, 1, ranks / 2, ranks - 1] {
                let mut sends = |holder: u32, round: u32| {
                    (node.me, node.at) = (holder, 2 * round);
                    let (start, next) = (part as usize, (holder + 1) % ranks);
                    node.next() == Action::Send { to: next, round, part: start..start + 1 }
                };
                // All rounds of small rings, some of large ones.
                let stride = 1 + ranks as usize / 300;
                for round in (0..ranks - 1).step_by(stride).chain([ranks - 2]) {
                    assert!(sends((part + round) % ranks, round), "adding, {ranks} ranks, round {round}");
                    let again = ranks - 1 + round;
                    assert!(sends((part + ranks - 1 + round) % ranks, again), "copying, {ranks} ranks, round {again}");
                }
            }
        }
    }
}
