//! Unexpected messages: sends without a matching receive yet, by source and tag.

use std::collections::BTreeMap;

/// Up to this many different keys are searched linearly.
const FEW: usize = 32;

/// Number of sends of each source and tag that wait for a receive. Sends carry no data, so a count suffices.
#[derive(Default)]
pub struct Matching {
    few: Vec<(u64, u32)>,
    many: BTreeMap<u64, u32>,
}

const fn key(from: u32, tag: u32) -> u64 {
    (from as u64) << 32 | tag as u64
}

impl Matching {
    /// Records a send that has been handled.
    pub fn add(&mut self, from: u32, tag: u32) {
        let key = key(from, tag);
        if let Some((_, count)) = self.few.iter_mut().find(|(known, _)| *known == key) {
            *count += 1;
        } else if self.few.len() < FEW && !self.many.contains_key(&key) {
            self.few.push((key, 1));
        } else {
            *self.many.entry(key).or_default() += 1;
        }
    }

    /// Whether a send waits for this receive.
    pub fn has(&self, from: u32, tag: u32) -> bool {
        let key = key(from, tag);
        self.few.iter().any(|&(known, _)| known == key) || self.many.contains_key(&key)
    }

    /// Matches a receive with a send. Returns `false` if none waits.
    pub fn take(&mut self, from: u32, tag: u32) -> bool {
        let key = key(from, tag);
        if let Some(at) = self.few.iter().position(|&(known, _)| known == key) {
            self.few[at].1 -= 1;
            if self.few[at].1 == 0 {
                self.few.swap_remove(at);
            }
            return true;
        }
        let Some(count) = self.many.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.many.remove(&key);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_send_is_received_once_however_many_wait() {
        let mut matching = Matching::default();
        for round in 0..3 {
            for from in 0..100 {
                matching.add(from, from % 7);
                if round == 2 {
                    assert!(matching.take(from, from % 7));
                }
            }
        }
        for from in (0..100).rev() {
            assert!(!matching.take(from, 9));
            assert!(matching.take(from, from % 7) && matching.take(from, from % 7));
            assert!(!matching.take(from, from % 7));
        }
    }
}
