//! Children in order of a key, with removal: a heap of four branches that knows where everybody stands.
//!
//! Equal keys stand in the order of the children's numbers. `LAST` turns it round: the last comes out first.

use super::event::Child;

const ABSENT: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking<const LAST: bool> {
    heap: Vec<(f64, Child)>,
    /// Where each child stands in the heap.
    place: Vec<u32>,
}

impl<const LAST: bool> Ranking<LAST> {
    #[inline]
    fn before(a: (f64, Child), b: (f64, Child)) -> bool {
        if LAST { a.0 > b.0 || (a.0 == b.0 && a.1 > b.1) } else { a.0 < b.0 || (a.0 == b.0 && a.1 < b.1) }
    }

    #[inline]
    pub fn first(&self) -> Option<(f64, Child)> {
        self.heap.first().copied()
    }

    #[cfg(test)]
    fn contains(&self, child: Child) -> bool {
        self.place.get(child as usize).is_some_and(|&place| place != ABSENT)
    }

    /// Puts a child in, or moves it where it stands already.
    #[inline]
    pub fn put(&mut self, key: f64, child: Child) {
        let c = child as usize;
        if c >= self.place.len() {
            self.place.resize(c + 1, ABSENT);
        }
        let mut at = self.place[c] as usize;
        if self.place[c] == ABSENT {
            at = self.heap.len();
            self.heap.push((key, child));
        }
        self.settle(at, (key, child));
    }

    #[inline]
    pub fn remove(&mut self, child: Child) {
        let Some(&place) = self.place.get(child as usize) else { return };
        if place == ABSENT {
            return;
        }
        self.place[child as usize] = ABSENT;
        if let Some(moved) = self.heap.pop()
            && (place as usize) < self.heap.len()
        {
            self.settle(place as usize, moved);
        }
    }

    /// Finds the place of an entry, from the hole `at`.
    #[inline]
    fn settle(&mut self, mut at: usize, entry: (f64, Child)) {
        while at > 0 {
            let up = (at - 1) / 4;
            if !Self::before(entry, self.heap[up]) {
                break;
            }
            self.heap[at] = self.heap[up];
            self.place[self.heap[at].1 as usize] = at as u32;
            at = up;
        }
        loop {
            let first = 4 * at + 1;
            if first >= self.heap.len() {
                break;
            }
            let mut least = first;
            for other in first + 1..(first + 4).min(self.heap.len()) {
                if Self::before(self.heap[other], self.heap[least]) {
                    least = other;
                }
            }
            if !Self::before(self.heap[least], entry) {
                break;
            }
            self.heap[at] = self.heap[least];
            self.place[self.heap[at].1 as usize] = at as u32;
            at = least;
        }
        self.heap[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain<const LAST: bool>(keys: &[u8], removed: &[usize]) -> Vec<(u8, Child)> {
        let mut ranking = Ranking::<LAST>::default();
        for (child, &key) in keys.iter().enumerate() {
            ranking.put(f64::from(255 - key), child as Child);
        }
        for (child, &key) in keys.iter().enumerate() {
            ranking.put(f64::from(key), child as Child);
        }
        for &child in removed {
            ranking.remove(child as Child);
        }
        let mut order = Vec::new();
        while let Some((key, child)) = ranking.first() {
            assert!(ranking.contains(child));
            order.push((key as u8, child));
            ranking.remove(child);
            assert!(!ranking.contains(child));
        }
        order
    }

    proptest! {
        #[test]
        fn children_come_out_by_key_then_number_whatever_was_moved_and_removed(
            keys in prop::collection::vec(0u8..20, 0..60), removed in prop::collection::vec(0usize..80, 0..20)
        ) {
            let mut expected: Vec<(u8, Child)> = keys.iter().enumerate()
                .filter(|(child, _)| !removed.contains(child)).map(|(child, &key)| (key, child as Child)).collect();
            expected.sort_unstable();
            prop_assert_eq!(&drain::<false>(&keys, &removed), &expected);
            expected.reverse();
            prop_assert_eq!(&drain::<true>(&keys, &removed), &expected);
        }
    }
}
