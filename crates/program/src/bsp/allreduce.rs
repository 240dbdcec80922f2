//! Allreduce: the sum of all ranks' vectors, delivered to every rank, for any number of ranks.
//!
//! A state machine without I/O: it returns what to send to which rank and what to wait for.

use std::ops::Range;

use crate::op::Body;

/// How the ranks combine their vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Exchanges the whole vector with partners at distances 1, 2, 4, ...: `ceil(log2 P)` rounds, plus two if P is not
    /// a power of 2. Each rank beyond the largest power of 2 first gives its vector to a neighbour, and receives the
    /// sum from it at the end.
    #[default]
    RecursiveDoubling,
    /// Passes parts of the vector around a ring: `2 (P - 1)` rounds with a P-th of the vector each.
    Ring,
}

/// The next action of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a part of the vector to a rank. The receiver waits for this round.
    Send {
        to: u32,
        round: u32,
        part: Range<usize>,
    },
    /// Waits for the message of a round.
    Wait {
        round: u32,
    },
    Done,
}

/// A vector. Most have one word, which is stored inline.
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
    /// `rounds`: log2 of the largest power of 2 not above the number of ranks. `beyond`: ranks beyond that power.
    rounds: u32,
    beyond: u32,
    words: Words,
    /// Number of sends and waits completed. If a round has both, even values send next and odd values wait next.
    at: u32,
}

impl Allreduce {
    /// Creates a rank's state from its own vector.
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

    /// Returns the rank's vector so far: the sum, once [`Action::Done`].
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Returns the range of a part in a vector of `words` words, for ring.
    #[must_use]
    pub fn part(words: usize, ranks: u32, part: u32) -> Range<usize> {
        let bound = |part: u64| (words as u64 * part / u64::from(ranks)) as usize;
        bound(u64::from(part))..bound(u64::from(part) + 1)
    }

    /// Returns the next action, the same one until [`Allreduce::sent`] or [`Allreduce::received`] is called.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Action {
        match self.algorithm {
            _ if self.ranks == 1 => Action::Done,
            Algorithm::RecursiveDoubling => self.next_of_doubling(),
            Algorithm::Ring => self.next_of_ring(),
        }
    }

    /// Records that the pending send has been done.
    pub fn sent(&mut self) {
        self.at += 1;
    }

    /// Takes the words of the message that was waited for.
    pub fn received(&mut self, words: &[u64]) {
        match self.algorithm {
            Algorithm::RecursiveDoubling => {
                // The last message to a rank beyond the largest power of 2 is the sum itself.
                let replaces = self.is_folded() && self.at == 1;
                combine(self.words.as_mut(), words, replaces);
            }
            Algorithm::Ring => {
                // After one turn around the ring every part is summed. In the second half of the rounds, messages carry
                // sums.
                let (round, replaces) = (self.at / 2, self.at / 2 >= self.ranks - 1);
                let range = Self::part(self.words().len(), self.ranks, self.before(round + 1));
                combine(&mut self.words.as_mut()[range], words, replaces);
            }
        }
        self.at += 1;
    }

    /// Whether the rank gives its vector to a neighbour.
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
        // One more wait before the first round.
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

/// Packs a tag and words into a message body.
pub(super) fn pack(tag: u64, words: &[u64]) -> Body {
    match words {
        [word] => Body::Pair([tag, *word]),
        other => Body::Words(std::iter::once(tag).chain(other.iter().copied()).collect()),
    }
}

#[cfg(test)]
mod tests;
