//! Barriers and store-syncs: where all ranks meet.

/// What ranks meet for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// All are here.
    Barrier,
    /// All are here, and all stores have been handled.
    StoreSync,
}

/// The control network: who is at the barrier or store-sync.
#[derive(Default)]
pub struct Meeting {
    at_barrier: u32,
    at_store_sync: u32,
    /// When the last thing happened that ranks wait for.
    last: u64,
    /// When the last store was handled.
    last_store: u64,
}

impl Meeting {
    /// A rank has come.
    pub fn come(&mut self, purpose: Purpose, now: u64) {
        match purpose {
            Purpose::Barrier => self.at_barrier += 1,
            Purpose::StoreSync => self.at_store_sync += 1,
        }
        self.last = self.last.max(now);
    }

    /// A store has been handled.
    pub fn stored(&mut self, now: u64) {
        self.last_store = self.last_store.max(now);
    }

    /// Whether all may go on, and since when; the next meeting begins then.
    #[inline]
    pub fn over(&mut self, ranks: u32, stores_out: u64) -> Option<u64> {
        let since = if self.at_barrier == ranks {
            self.last
        } else if self.at_store_sync == ranks && stores_out == 0 {
            self.last.max(self.last_store)
        } else {
            return None;
        };
        (self.at_barrier, self.at_store_sync) = (0, 0);
        Some(since)
    }
}
