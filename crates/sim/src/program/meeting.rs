//! Barriers and store-syncs: where all ranks meet.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Barrier,
    /// All are here, and all one-way messages have been handled.
    StoreSync,
}

/// The control network: which ranks have reached the barrier or store-sync.
#[derive(Default)]
pub struct Meeting {
    at_barrier: u32,
    at_store_sync: u32,
    /// When the last thing happened that ranks wait for.
    last: u64,
    /// When the last one-way message was handled.
    last_handled: u64,
}

impl Meeting {
    pub fn come(&mut self, purpose: Purpose, now: u64) {
        match purpose {
            Purpose::Barrier => self.at_barrier += 1,
            Purpose::StoreSync => self.at_store_sync += 1,
        }
        self.last = self.last.max(now);
    }

    /// A one-way message has been handled.
    pub fn handled(&mut self, now: u64) {
        self.last_handled = self.last_handled.max(now);
    }

    /// Whether all may go on, and since when; the next meeting begins then.
    #[inline]
    pub fn over(&mut self, ranks: u32, one_way: u64) -> Option<u64> {
        let since = if self.at_barrier == ranks {
            self.last
        } else if self.at_store_sync == ranks && one_way == 0 {
            self.last.max(self.last_handled)
        } else {
            return None;
        };
        (self.at_barrier, self.at_store_sync) = (0, 0);
        Some(since)
    }
}
