//! Barriers and store-syncs: synchronization of all ranks.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Barrier,
    /// All ranks have arrived, and all one-way messages have been handled.
    StoreSync,
}

/// The control network: which ranks have reached the barrier or store-sync.
#[derive(Clone, Copy, Default)]
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

    /// Adds what another group of ranks has recorded.
    pub fn add(&mut self, other: &Self) {
        self.at_barrier += other.at_barrier;
        self.at_store_sync += other.at_store_sync;
        self.last = self.last.max(other.last);
        self.last_handled = self.last_handled.max(other.last_handled);
    }

    pub const fn words(self) -> [u64; 3] {
        [(self.at_barrier as u64) << 32 | self.at_store_sync as u64, self.last, self.last_handled]
    }

    pub const fn of_words([present, last, last_handled]: [u64; 3]) -> Self {
        Self { at_barrier: (present >> 32) as u32, at_store_sync: present as u32, last, last_handled }
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
        self.start_next();
        Some(since)
    }

    /// Starts the next meeting: no rank has arrived.
    pub const fn start_next(&mut self) {
        (self.at_barrier, self.at_store_sync) = (0, 0);
    }
}
