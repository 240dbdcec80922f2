//! What is held right now, in memory shared with the watchdog: a process that outlives the injector knows what to let go.
//!
//! A slot is taken before something is held and cleared after it was let go, so that it may name what is not held (which
//! to let go does no harm), but never misses what is.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Most processes and groups that are held at a time.
const SLOTS: usize = 8192;

#[repr(C)]
struct Slot {
    /// A process that is stopped, or minus one minus the rank whose group is frozen; 0: free.
    held: AtomicI32,
    /// When it was to be let go, on the monotonic clock, ns.
    due_ns: AtomicU64,
}

/// What is held: a process, or a rank's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A process, by SIGSTOP.
    Process(i32),
    /// A rank's control group.
    Group(u32),
}

impl Held {
    fn encode(self) -> i32 {
        match self {
            Self::Process(pid) => pid,
            Self::Group(rank) => -1 - i32::try_from(rank).unwrap_or(i32::MAX - 1),
        }
    }

    fn decode(word: i32) -> Option<Self> {
        match word {
            0 => None,
            pid if pid > 0 => Some(Self::Process(pid)),
            group => Some(Self::Group(group.wrapping_neg().wrapping_sub(1) as u32)),
        }
    }
}

/// The shared table. It stays mapped in a child that is forked later.
#[derive(Debug)]
pub struct Ledger(*const Slot);

// SAFETY: the mapping lives as long as the ledger, and everything in it is atomic.
unsafe impl Send for Ledger {}
// SAFETY: as above.
unsafe impl Sync for Ledger {}

impl Ledger {
    /// An empty one.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> io::Result<Self> {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping without another owner; zeroes are free slots.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), SLOTS * size_of::<Slot>(), protection, kind, -1, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(at.cast())) }
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: so many slots were mapped, and stay so until the ledger is dropped.
        unsafe { std::slice::from_raw_parts(self.0, SLOTS) }
    }

    /// Takes a slot and says which; none where none is free, and nothing more may be held.
    #[must_use]
    pub fn note(&self, held: Held, due_ns: u64) -> Option<usize> {
        let word = held.encode();
        // Neighbours in number seldom meet in the table.
        let start = word.unsigned_abs() as usize * 61 % SLOTS;
        (start..SLOTS).chain(0..start).find(|place| {
            let slot = &self.slots()[*place];
            if slot.held.load(Ordering::Relaxed) != 0 {
                return false;
            }
            slot.due_ns.store(due_ns, Ordering::Relaxed);
            slot.held.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    /// What is held there will be let go later than was said.
    pub fn put_off(&self, place: usize, due_ns: u64) {
        self.slots()[place].due_ns.store(due_ns, Ordering::Relaxed);
    }

    /// Clears a slot.
    pub fn forget(&self, place: usize) {
        self.slots()[place].held.store(0, Ordering::Release);
    }

    /// What is held and was to be let go before that time.
    pub fn due_before(&self, time_ns: u64) -> impl Iterator<Item = Held> {
        let due = move |slot: &&Slot| slot.due_ns.load(Ordering::Relaxed) < time_ns;
        self.slots().iter().filter(due).filter_map(|slot| Held::decode(slot.held.load(Ordering::Acquire)))
    }

    /// All that is held.
    pub fn held(&self) -> impl Iterator<Item = Held> {
        self.due_before(u64::MAX)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; no borrow of it is left.
        unsafe { libc::munmap(self.0.cast_mut().cast(), SLOTS * size_of::<Slot>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_held_until_it_is_forgotten() {
        let ledger = Ledger::new().expect("memory");
        for held in [Held::Process(7), Held::Process(i32::MAX), Held::Group(0), Held::Group(100_000)] {
            let place = ledger.note(held, 10).expect("it is empty");
            assert_eq!(ledger.held().collect::<Vec<_>>(), [held]);
            assert_eq!(ledger.due_before(10).count(), 0);
            assert_eq!(ledger.due_before(11).collect::<Vec<_>>(), [held]);
            ledger.put_off(place, 20);
            assert_eq!(ledger.due_before(20).count(), 0);
            ledger.forget(place);
            assert_eq!(ledger.held().count(), 0);
        }
    }

    #[test]
    fn a_full_ledger_refuses_and_so_nothing_is_held_that_it_does_not_know() {
        let ledger = Ledger::new().expect("memory");
        let places: Vec<_> = (1..=SLOTS).filter_map(|pid| ledger.note(Held::Process(pid as i32), 0)).collect();
        assert_eq!(places.len(), SLOTS);
        assert_eq!(ledger.note(Held::Group(1), 0), None);
        ledger.forget(places[5]);
        assert_eq!(ledger.note(Held::Group(1), 0), Some(places[5]));
    }
}
