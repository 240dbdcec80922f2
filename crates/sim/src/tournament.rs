//! The smallest of many keys that change: a tournament with four players to a match.
//!
//! A key has a seat. One that changes is written there, and the winners of the matches above are found again. Unlike in a
//! heap no other key moves, and which match is next does not depend on who won the last one: the processor neither waits
//! for memory nor predicts comparisons.
//!
//! Match 0 is the last one; the players of match `m` are the winners of the matches `4 m + 1` to `4 m + 4`, and at the
//! bottom the seats.

/// No key: all are below.
pub(crate) const NO_KEY: u128 = u128::MAX;
/// Players of a match.
const PLAYERS: usize = 4;
/// Matches above a seat that are written out in [`Tournament::settle`].
const WRITTEN_OUT: u32 = 5;

/// The keys of its players, in one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Match([u128; PLAYERS]);

pub(crate) struct Tournament {
    matches: Vec<Match>,
    /// The first match whose players are seats.
    bottom: usize,
    /// Matches from a seat to the top.
    levels: u32,
    first: u128,
}

impl Tournament {
    pub fn new() -> Self {
        Self { matches: vec![Match([NO_KEY; PLAYERS])], bottom: 0, levels: 1, first: NO_KEY }
    }

    /// How many seats there are.
    pub fn seats(&self) -> usize {
        PLAYERS * (self.matches.len() - self.bottom)
    }

    /// Four times as many seats; those that there were keep their keys.
    pub fn grow(&mut self) {
        let old = self.matches.split_off(self.bottom);
        let bottom = self.bottom + old.len();
        self.matches = vec![Match([NO_KEY; PLAYERS]); bottom + PLAYERS * old.len()];
        self.matches[bottom..bottom + old.len()].copy_from_slice(&old);
        (self.bottom, self.levels) = (bottom, self.levels + 1);
        for seat in (0..PLAYERS * old.len()).step_by(PLAYERS) {
            self.settle(seat as u32);
        }
    }

    /// The smallest key, but for those on seats that are not settled; [`NO_KEY`] if there is none.
    #[inline]
    pub fn first(&self) -> u128 {
        self.first
    }

    /// Another key on a seat, which is to be settled then.
    #[inline]
    pub fn write(&mut self, seat: u32, key: u128) {
        let seat = seat as usize;
        self.matches[self.bottom + seat / PLAYERS].0[seat % PLAYERS] = key;
    }

    /// Finds the winners above a seat whose key has changed.
    #[inline(never)]
    pub fn settle(&mut self, seat: u32) {
        let bottom = self.bottom + seat as usize / PLAYERS;
        let [a, b, c, d] = self.matches[bottom].0;
        let mut winner = (bottom, a.min(b).min(c.min(d)));
        // In a loop the compiler makes jumps of comparisons, and half of them are mispredicted. So only the upper levels of
        // a large tournament, where the winner seldom changes, are one.
        if self.levels > 1 {
            winner = self.play(winner);
        }
        if self.levels > 2 {
            winner = self.play(winner);
        }
        if self.levels > 3 {
            winner = self.play(winner);
        }
        if self.levels > 4 {
            winner = self.play(winner);
        }
        for _ in WRITTEN_OUT..self.levels {
            winner = self.play(winner);
        }
        self.first = winner.1;
    }

    /// The winner of a match goes on to the next: that one, and its winner.
    #[inline(always)]
    fn play(&mut self, (from, key): (usize, u128)) -> (usize, u128) {
        let (to, at) = ((from - 1) / PLAYERS, (from - 1) % PLAYERS);
        let players = &mut self.matches[to].0;
        players[at] = key;
        let others = players[at ^ 1].min(players[at ^ 2].min(players[at ^ 3]));
        (to, key.min(others))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_key_is_first_whatever_is_written(
            moves in prop::collection::vec((0u32..700, prop::option::weighted(0.8, any::<u64>())), 0..300)
        ) {
            let (mut tournament, mut keys) = (Tournament::new(), vec![NO_KEY; 700]);
            for (seat, key) in moves {
                while seat as usize >= tournament.seats() {
                    tournament.grow();
                }
                keys[seat as usize] = key.map_or(NO_KEY, u128::from);
                tournament.write(seat, keys[seat as usize]);
                tournament.settle(seat);
                prop_assert_eq!(tournament.first(), *keys.iter().min().expect("some"));
            }
        }
    }
}
