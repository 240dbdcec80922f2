//! Barriers and store-syncs: synchronization of all ranks.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Barrier,
    /// All ranks have arrived, and all one-way messages have been handled.
    StoreSync,
}

/// The control network: which ranks have reached the barrier or store-sync.
#[derive(Default)]
pub struct Meeting {
    at_barrier: u32,
    at_store_sync: u32,
    /// Arrival of the last rank so far, ns.
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

    /// Records that a one-way message has been handled.
    pub fn handled(&mut self, now: u64) {
        self.last_handled = self.last_handled.max(now);
    }

    /// If the meeting is complete, returns when it completed and starts the next one. Otherwise returns `None`.
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
