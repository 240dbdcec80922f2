//! Packets sent but not yet in an inbox.
//!
//! None of them arrives before the window is over, so delivery can wait until the memory of several inboxes has been
//! prefetched.

use super::inbox::{Inbox, Packet};
use super::memory::prefetch;

const BATCH: usize = 32;

/// Packets and their destinations. The entries are reused.
#[derive(Default)]
pub struct Outbox {
    places: Vec<(u32, Packet)>,
    used: usize,
}

impl Outbox {
    /// Returns the entry for one more packet, which still holds old contents.
    #[inline(always)]
    pub fn add(&mut self, to: u32) -> &mut Packet {
        if self.used == self.places.len() {
            self.grow();
        }
        let (destination, packet) = &mut self.places[self.used];
        *destination = to;
        self.used += 1;
        packet
    }

    #[cold]
    fn grow(&mut self) {
        self.places.extend(std::iter::repeat_n((0, Packet::ACKNOWLEDGEMENT), BATCH));
    }

    /// Whether it is time to deliver.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.used >= BATCH
    }

    /// Prefetches the inboxes of its packets. `first`: the rank of the first of `inboxes`.
    #[inline]
    pub fn prefetch(&self, inboxes: &[Inbox], first: u32) {
        let reached =
            || self.places[..self.used].iter().filter_map(|(to, _)| inboxes.get(to.wrapping_sub(first) as usize));
        reached().for_each(prefetch);
        reached().for_each(Inbox::prefetch_end);
    }

    /// Empties the outbox and returns its packets, to be moved out of their entries.
    #[inline]
    pub fn drain(&mut self) -> &mut [(u32, Packet)] {
        let used = std::mem::take(&mut self.used);
        &mut self.places[..used]
    }
}
