//! Near the end of a run: the preferred waiting child among those that would finish in time, and the earliest finish of
//! all.
//!
//! A segment tree over child numbers whose inner entries hold the minimum of what is below. It is built when the end
//! begins, so that nothing earlier pays for it. Afterwards each change of a child updates one path.

use super::event::Child;

/// Minima of what is below an entry; infinite if there is nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    /// When a waiting child would finish one more task, s. `key` is its key in the order of service.
    pub waiting_s: f64,
    pub key: f64,
    /// When a child that takes tasks would finish one more, s.
    pub taking_s: f64,
}

const NONE: Entry = Entry { waiting_s: f64::INFINITY, key: f64::INFINITY, taking_s: f64::INFINITY };

/// The tree; empty until the end has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct InTime {
    /// The root is entry 1, the children of entry `n` are `2 n` and `2 n + 1`, and child 0 is at `leaves`.
    entries: Vec<Entry>,
    leaves: usize,
}

impl InTime {
    #[inline]
    pub fn is_built(&self) -> bool {
        self.leaves > 0
    }

    /// Builds the tree from all children, in the order of their numbers.
    pub fn build(&mut self, children: impl ExactSizeIterator<Item = Entry>) {
        self.leaves = children.len().next_power_of_two();
        self.entries.clear();
        self.entries.resize(self.leaves, NONE);
        self.entries.extend(children);
        self.entries.resize(2 * self.leaves, NONE);
        for at in (1..self.leaves).rev() {
            self.entries[at] = self.least(at);
        }
    }

    /// Empties the tree. The next query rebuilds it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Updates the entry of a child.
    pub fn put(&mut self, child: Child, entry: Entry) {
        let mut at = self.leaves + child as usize;
        self.entries[at] = entry;
        while at > 1 {
            at /= 2;
            let least = self.least(at);
            if self.entries[at] == least {
                return;
            }
            self.entries[at] = least;
        }
    }

    /// When the first child that takes tasks would finish one more, s; infinite if there is none.
    pub fn earliest_s(&self) -> f64 {
        self.entries.get(1).map_or(f64::INFINITY, |root| root.taking_s)
    }

    /// The waiting child with the lowest key among those that finish within `within_s` seconds, with its key. Ties go
    /// to the lowest number.
    pub fn first(&self, within_s: f64) -> Option<(f64, Child)> {
        let mut best = None;
        if self.is_built() {
            self.search(1, (0, self.leaves), within_s, &mut best);
        }
        best
    }

    /// Searches below an entry, which covers the child numbers `first..first + count`, for a better child. The
    /// recursion is as deep as the tree.
    fn search(&self, at: usize, (first, count): (usize, usize), within_s: f64, best: &mut Option<(f64, Child)>) {
        let entry = self.entries[at];
        let is_no_better = |(key, child): (f64, Child)| entry.key > key || (entry.key == key && first > child as usize);
        if entry.waiting_s == f64::INFINITY || entry.waiting_s > within_s || best.is_some_and(is_no_better) {
            return;
        }
        if count == 1 {
            *best = Some((entry.key, first as Child));
            return;
        }
        let half = count / 2;
        let mut halves = [(2 * at, (first, half)), (2 * at + 1, (first + half, half))];
        if self.entries[2 * at + 1].key < self.entries[2 * at].key {
            halves.reverse();
        }
        for (below, numbers) in halves {
            self.search(below, numbers, within_s, best);
        }
    }

    fn least(&self, at: usize) -> Entry {
        let (a, b) = (self.entries[2 * at], self.entries[2 * at + 1]);
        Entry { waiting_s: a.waiting_s.min(b.waiting_s), key: a.key.min(b.key), taking_s: a.taking_s.min(b.taking_s) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        // Few distinct values, so that ties are common.
        let time = || prop_oneof![1 => Just(f64::INFINITY), 3 => (0..6u8).prop_map(f64::from)];
        (time(), 0..4u8, time()).prop_map(|(waiting_s, key, taking_s)| Entry {
            waiting_s,
            key: if waiting_s.is_finite() { f64::from(key) } else { f64::INFINITY },
            taking_s,
        })
    }

    proptest! {
        #[test]
        fn it_answers_as_looking_at_each_child_does(
            mut children in prop::collection::vec(entry(), 1..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), entry()), 0..40),
            within_s in 0..7u8,
        ) {
            let within_s = f64::from(within_s);
            let mut tree = InTime::default();
            tree.build(children.iter().copied());
            for (child, entry) in changes {
                let child = child.index(children.len());
                children[child] = entry;
                tree.put(child as Child, entry);
                let in_time = (0..).zip(&children).filter(|(_, e)| e.waiting_s.is_finite() && e.waiting_s <= within_s);
                let first = in_time.map(|(n, e)| (e.key, n)).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                prop_assert_eq!(tree.first(within_s), first);
                let earliest = children.iter().map(|e| e.taking_s).fold(f64::INFINITY, f64::min);
                prop_assert_eq!(tree.earliest_s(), earliest);
            }
        }
    }
}
