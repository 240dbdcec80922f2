//! Allreduce: the sum of all ranks' vectors, at every rank, for every number of ranks.
//!
//! Returns what to send to which rank and what to wait for; it sends nothing itself.

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
        to: u32,
        round: u32,
        /// A part of [`Allreduce::words`].
        part: Range<usize>,
    },
    /// Waits for what is sent to it in a round.
    Wait {
        round: u32,
    },
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
                // Once around the ring every part is added up; in the second half of the rounds what comes is a sum.
                let (round, replaces) = (self.at / 2, self.at / 2 >= self.ranks - 1);
                let range = Self::part(self.words().len(), self.ranks, self.before(round + 1));
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
        let round = self.at / 2;
        if round == 2 * (self.ranks - 1) {
            return Action::Done;
        }
        if self.at % 2 == 1 {
            return Action::Wait { round };
        }
        let part = Self::part(self.words().len(), self.ranks, self.before(round));
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
mod tests;
