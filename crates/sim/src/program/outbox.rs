//! What has been sent and is in no inbox yet.
//!
//! Nothing of it arrives before the window is over, so it can wait until the memory of some inboxes has come.

use super::inbox::{Inbox, Packet};
use super::memory::prefetch;

/// So many packets are put into inboxes together.
const BATCH: usize = 32;

/// Packets and their destinations. Their places are reused.
#[derive(Default)]
pub struct Outbox {
    places: Vec<(u32, Packet)>,
    used: usize,
}

impl Outbox {
    /// The place of one more packet, which holds what was there before.
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

    /// Asks for the memory of the inboxes.
    #[inline]
    pub fn prefetch(&self, inboxes: &[Inbox]) {
        let places = &self.places[..self.used];
        for (to, _) in places {
            prefetch(&inboxes[*to as usize]);
        }
        for (to, _) in places {
            inboxes[*to as usize].prefetch_end();
        }
    }

    /// All packets, to be taken from their places; it is empty then.
    #[inline]
    pub fn drain(&mut self) -> &mut [(u32, Packet)] {
        let used = std::mem::take(&mut self.used);
        &mut self.places[..used]
    }
}
