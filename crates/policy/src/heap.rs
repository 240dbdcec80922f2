//! Indexed four-ary heap: one entry per number, which is moved rather than pushed again when its key changes.
//!
//! An [`Order`] defines what comes first: the smallest key, with ties in any order, or by number if decisions depend on
//! them.

use std::marker::PhantomData;

const ABSENT: u32 = u32::MAX;

/// Defines which of two entries is removed first.
pub trait Order<K> {
    /// Whether `a` must come before `b`.
    fn before(a: (K, u32), b: (K, u32)) -> bool;
}

/// Smallest key first. The order of ties depends only on the operations on the heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smallest;

impl<K: PartialOrd> Order<K> for Smallest {
    #[inline]
    fn before(a: (K, u32), b: (K, u32)) -> bool {
        a.0 < b.0
    }
}

/// Smallest key first; ties by smallest number.
#[derive(Clone, Copy, Debug, Default)]
pub struct First;

impl<K: PartialOrd> Order<K> for First {
    #[inline]
    fn before(a: (K, u32), b: (K, u32)) -> bool {
        a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
    }
}

/// The reverse of the order [`First`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Last;

impl<K: PartialOrd> Order<K> for Last {
    #[inline]
    fn before(a: (K, u32), b: (K, u32)) -> bool {
        First::before(b, a)
    }
}

/// Entries with a key and a number each.
#[derive(Clone, Debug)]
pub struct Heap<K, O = Smallest> {
    items: Vec<(K, u32)>,
    place: Vec<u32>,
    order: PhantomData<O>,
}

impl<K, O> Default for Heap<K, O> {
    fn default() -> Self {
        Self { items: Vec::new(), place: Vec::new(), order: PhantomData }
    }
}

impl<K: Copy, O: Order<K>> Heap<K, O> {
    /// Creates a heap with room for the numbers below `count`. It grows for larger ones.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { place: vec![ABSENT; count], ..Self::default() }
    }

    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// All entries, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = (K, u32)> + '_ {
        self.items.iter().copied()
    }

    /// All numbers in the heap, in no particular order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.items.iter().map(|item| item.1)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(K, u32)> {
        let first = self.first()?;
        self.place[first.1 as usize] = ABSENT;
        if let Some(moved) = self.items.pop()
            && !self.items.is_empty()
        {
            self.sink(0, moved);
        }
        Some(first)
    }

    /// Inserts an entry, or changes its key.
    #[inline]
    pub fn put(&mut self, key: K, number: u32) {
        let (entry, n) = ((key, number), number as usize);
        if n >= self.place.len() {
            self.place.resize(n + 1, ABSENT);
        }
        let at = self.place[n];
        if at == ABSENT {
            self.items.push(entry);
            self.rise(self.items.len() - 1, entry);
        } else if O::before(entry, self.items[at as usize]) {
            self.rise(at as usize, entry);
        } else {
            self.sink(at as usize, entry);
        }
    }

    /// Removes an entry if it is present.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        let Some(&at) = self.place.get(number as usize) else { return };
        if at == ABSENT {
            return;
        }
        self.place[number as usize] = ABSENT;
        if let Some(moved) = self.items.pop()
            && (at as usize) < self.items.len()
        {
            if O::before(moved, self.items[at as usize]) {
                self.rise(at as usize, moved);
            } else {
                self.sink(at as usize, moved);
            }
        }
    }

    #[inline]
    fn rise(&mut self, mut at: usize, entry: (K, u32)) {
        while at > 0 {
            let up = (at - 1) / 4;
            if !O::before(entry, self.items[up]) {
                break;
            }
            self.items[at] = self.items[up];
            self.place[self.items[at].1 as usize] = at as u32;
            at = up;
        }
        self.items[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }

    #[inline]
    fn sink(&mut self, mut at: usize, entry: (K, u32)) {
        let count = self.items.len();
        loop {
            let first = 4 * at + 1;
            if first >= count {
                break;
            }
            let mut least = first;
            for other in first + 1..(first + 4).min(count) {
                if O::before(self.items[other], self.items[least]) {
                    least = other;
                }
            }
            if !O::before(self.items[least], entry) {
                break;
            }
            self.items[at] = self.items[least];
            self.place[self.items[at].1 as usize] = at as u32;
            at = least;
        }
        self.items[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Moves = Vec<(u32, Option<u8>)>;
    type Entries = Vec<(u8, u32)>;

    /// Returns all entries in the order of removal, and the expected ones sorted by key and number.
    fn drained<O: Order<u8>>(moves: &Moves) -> (Entries, Entries) {
        let (mut heap, mut keys) = (Heap::<u8, O>::new(10), [None; 30]);
        for &(number, key) in moves {
            keys[number as usize] = key;
            match key {
                Some(key) => heap.put(key, number),
                None => heap.remove(number),
            }
        }
        let mut expected: Entries =
            keys.iter().enumerate().filter_map(|(n, key)| key.map(|key| (key, n as u32))).collect();
        expected.sort_unstable();
        (std::iter::from_fn(|| heap.pop()).collect(), expected)
    }

    proptest! {
        #[test]
        fn entries_come_out_in_order_whatever_was_moved_and_removed(
            moves in prop::collection::vec((0u32..30, prop::option::of(0u8..9)), 0..200)
        ) {
            let (mut order, mut expected) = drained::<Smallest>(&moves);
            prop_assert!(order.is_sorted_by_key(|entry| entry.0));
            order.sort_unstable();
            prop_assert_eq!(&order, &expected);
            prop_assert_eq!(&drained::<First>(&moves).0, &expected);
            expected.reverse();
            prop_assert_eq!(&drained::<Last>(&moves).0, &expected);
        }
    }
}
