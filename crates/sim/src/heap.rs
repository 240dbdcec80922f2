//! A heap of four branches that knows where everybody stands: one entry per number, moved rather than pushed again.
//!
//! Equal keys come out in an order that depends on what was put in, and on nothing else.

const ABSENT: u32 = u32::MAX;

/// Smallest key first.
#[derive(Clone, Debug)]
pub(crate) struct Heap<K> {
    items: Vec<(K, u32)>,
    place: Vec<u32>,
}

impl<K: Copy + PartialOrd> Heap<K> {
    /// For the numbers below `count`.
    pub fn new(count: usize) -> Self {
        Self { items: Vec::new(), place: vec![ABSENT; count] }
    }

    pub fn grow(&mut self, count: usize) {
        self.place.resize(count.max(self.place.len()), ABSENT);
    }

    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// All numbers in the heap, in no order that means something.
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

    /// Puts an entry in, or moves it.
    #[inline]
    pub fn put(&mut self, key: K, number: u32) {
        let entry = (key, number);
        let at = self.place[number as usize];
        if at == ABSENT {
            self.items.push(entry);
            self.rise(self.items.len() - 1, entry);
        } else if key < self.items[at as usize].0 {
            self.rise(at as usize, entry);
        } else {
            self.sink(at as usize, entry);
        }
    }

    #[inline]
    pub fn remove(&mut self, number: u32) {
        let at = self.place[number as usize];
        if at == ABSENT {
            return;
        }
        self.place[number as usize] = ABSENT;
        if let Some(moved) = self.items.pop()
            && (at as usize) < self.items.len()
        {
            if moved.0 < self.items[at as usize].0 {
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
            if entry.0 >= self.items[up].0 {
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
                if self.items[other].0 < self.items[least].0 {
                    least = other;
                }
            }
            if self.items[least].0 >= entry.0 {
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

    proptest! {
        #[test]
        fn entries_come_out_by_key_whatever_was_moved_and_removed(
            moves in prop::collection::vec((0u32..30, prop::option::of(0u8..9)), 0..200)
        ) {
            let (mut heap, mut keys) = (Heap::new(30), [None; 30]);
            for (number, key) in moves {
                keys[number as usize] = key;
                match key {
                    Some(key) => heap.put(key, number),
                    None => heap.remove(number),
                }
            }
            let mut expected: Vec<(u8, u32)> =
                keys.iter().enumerate().filter_map(|(n, key)| key.map(|key| (key, n as u32))).collect();
            expected.sort_unstable();
            let order: Vec<(u8, u32)> = std::iter::from_fn(|| heap.pop()).collect();
            prop_assert!(order.is_sorted_by_key(|entry| entry.0));
            let mut sorted = order;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}
