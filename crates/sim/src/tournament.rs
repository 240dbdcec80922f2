//! Tournament tree: the smallest of many keys that change.
//!
//! Each key has a leaf. Writing a key replays the matches above its leaf. Unlike in a heap, no other key moves, and the
//! next match does not depend on the winner of the last. The processor therefore neither waits for memory nor predicts
//! comparisons.
//!
//! Entry `e` is the winner of the entries `2 e` and `2 e + 1`. The leaves come last; entry 1 is the smallest of all.

/// No key: larger than every key.
pub(crate) const NO_KEY: u128 = u128::MAX;

pub(crate) struct Tournament {
    entries: Vec<u128>,
    /// Number of matches from a leaf to the top.
    levels: u32,
}

impl Tournament {
    pub fn new() -> Self {
        Self { entries: vec![NO_KEY; 4], levels: 1 }
    }

    /// Returns the number of leaves.
    #[inline]
    pub fn leaves(&self) -> usize {
        self.entries.len() / 2
    }

    /// Doubles the number of leaves. Existing leaves keep their keys.
    pub fn grow(&mut self) {
        let leaves = self.leaves();
        let mut entries = vec![NO_KEY; 4 * leaves];
        entries[2 * leaves..3 * leaves].copy_from_slice(&self.entries[leaves..]);
        for e in (1..2 * leaves).rev() {
            entries[e] = entries[2 * e].min(entries[2 * e + 1]);
        }
        (self.entries, self.levels) = (entries, self.levels + 1);
    }

    /// Returns the smallest key, or [`NO_KEY`] if there is none.
    #[inline]
    pub fn first(&self) -> u128 {
        self.entries[1]
    }

    /// Writes a key to a leaf.
    // The levels are unrolled by the binary digits of their number. In a loop, the compiler turns comparisons into
    // branches, and half of those are mispredicted.
    #[inline(never)]
    pub fn write(&mut self, leaf: u32, key: u128) {
        let leaf = self.leaves() + leaf as usize;
        self.entries[leaf] = key;
        let mut winner = (leaf, key);
        if self.levels & 1 != 0 {
            winner = self.play(winner);
        }
        if self.levels & 2 != 0 {
            winner = self.play(winner);
            winner = self.play(winner);
        }
        if self.levels & 4 != 0 {
            winner = self.play_four(winner);
        }
        if self.levels & 8 != 0 {
            winner = self.play_four(winner);
            winner = self.play_four(winner);
        }
        for _ in 0..self.levels / 16 {
            for _ in 0..4 {
                winner = self.play_four(winner);
            }
        }
    }

    #[inline(always)]
    fn play_four(&mut self, mut winner: (usize, u128)) -> (usize, u128) {
        winner = self.play(winner);
        winner = self.play(winner);
        winner = self.play(winner);
        self.play(winner)
    }

    /// Plays one match and returns the winner.
    #[inline(always)]
    fn play(&mut self, (player, key): (usize, u128)) -> (usize, u128) {
        debug_assert!(player < self.entries.len());
        // SAFETY: `write` checks that the leaf is an entry; their number is even, so the other player is one too. Checked at
        // every level, this would be a third of the work.
        let winner = key.min(unsafe { *self.entries.get_unchecked(player ^ 1) });
        // SAFETY: below `player`.
        unsafe { *self.entries.get_unchecked_mut(player / 2) = winner };
        (player / 2, winner)
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
            for (leaf, key) in moves {
                while leaf as usize >= tournament.leaves() {
                    tournament.grow();
                }
                keys[leaf as usize] = key.map_or(NO_KEY, u128::from);
                tournament.write(leaf, keys[leaf as usize]);
                prop_assert_eq!(tournament.first(), *keys.iter().min().expect("some"));
            }
        }
    }
}
