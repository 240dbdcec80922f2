//! Pacing: chunks are due at absolute times, so errors do not add up.
//!
//! A [`Gate`] stores a channel's rate, which any thread can change at any time. Each connection has its own
//! [`Pacer`]. The granularity is one chunk (64 KiB by default), or less if a chunk would take longer than 2 ms. A
//! late pacer catches up by at most 20 ms; more would turn a stall into a burst.
//!
//! Two chunks that leave together wake the receiver once, and the wake-ups are most of the cost of traffic. A peer
//! with a CPU of its own therefore stays awake shortly before a chunk is due ([`Pacer::awake`]): an idle virtual CPU
//! takes 50 us or more to wake.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::kernel::Padded;
use crosswind_linux::{now_ns, sleep_until};

/// Longest time that one chunk may take, s: it bounds how late a change of the rate is noticed.
const LONGEST_CHUNK_S: f64 = 0.002;
const LEAST_CHUNK: f64 = 1_000.0;
/// Longest delay that a late pacer catches up with, ns.
const BACKLOG_NS: u64 = 20_000_000;
const NAP_NS: u64 = 2_000_000;
/// Time before a chunk is due from which an [`Pacer::awake`] pacer no longer sleeps, ns.
const AWAKE_NS: u64 = 200_000;

/// The rate of one channel.
#[derive(Debug)]
pub struct Gate {
    rate_bits: Padded<AtomicU64>,
    turn: AtomicU64,
    ended: AtomicBool,
    sleepers: Mutex<()>,
    turned: Condvar,
}

impl Gate {
    /// A gate that lets nothing through yet.
    #[must_use]
    pub fn shut() -> Self {
        Self {
            rate_bits: Padded(AtomicU64::new(0f64.to_bits())),
            turn: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            sleepers: Mutex::new(()),
            turned: Condvar::new(),
        }
    }

    /// Sets the rate, MB/s. 0 means silence, `None` no limit.
    pub fn set(&self, rate_mb_per_s: Option<f64>) {
        let bits = rate_mb_per_s.unwrap_or(f64::NAN).to_bits();
        self.rate_bits.0.store(bits, Ordering::Release);
        self.turn.fetch_add(1, Ordering::Release);
        self.wake();
    }

    /// Releases all waiting threads for good.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        let _guard = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        self.turned.notify_all();
    }

    fn sleep_until_turned(&self, seen: u64) {
        let guard = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |_: &mut ()| self.turn.load(Ordering::Acquire) == seen && !self.ended();
        drop(self.turned.wait_while(guard, waiting).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Paces one connection by a gate.
#[derive(Debug)]
pub struct Pacer<'gate> {
    gate: &'gate Gate,
    streams: u32,
    most_bytes: f64,
    seen: u64,
    bytes_per_ns: f64,
    origin_ns: u64,
    moved: f64,
    awake_ns: u64,
}

impl<'gate> Pacer<'gate> {
    /// A pacer that keeps one of `streams` equal parts of the gate's rate, in chunks of at most `chunk_bytes`.
    #[must_use]
    pub fn new(gate: &'gate Gate, streams: u32, chunk_bytes: u64) -> Self {
        let most_bytes = chunk_bytes as f64;
        Self { gate, streams, most_bytes, seen: u64::MAX, bytes_per_ns: 0.0, origin_ns: 0, moved: 0.0, awake_ns: 0 }
    }

    /// Makes it spin for the last moment of each wait, yielding to any other thread. For a CPU that is not measured.
    #[must_use]
    pub fn awake(self) -> Self {
        Self { awake_ns: AWAKE_NS, ..self }
    }

    /// Waits until bytes may move, and returns the most that may; `None` once the gate has ended.
    pub fn permit(&mut self) -> Option<usize> {
        loop {
            if self.gate.ended() {
                return None;
            }
            let turn = self.gate.turn.load(Ordering::Acquire);
            if turn != self.seen {
                self.turn_to(turn);
            }
            if self.bytes_per_ns.is_nan() {
                return Some(usize::MAX);
            }
            if self.bytes_per_ns <= 0.0 {
                self.gate.sleep_until_turned(turn);
                continue;
            }
            let (now, due) = (now_ns(), self.origin_ns + (self.moved / self.bytes_per_ns) as u64);
            if now >= due {
                self.origin_ns += (now - due).saturating_sub(BACKLOG_NS);
                return Some(self.chunk());
            }
            let wake = due.saturating_sub(self.awake_ns);
            if now < wake {
                sleep_until(wake.min(now + NAP_NS));
            } else {
                std::thread::yield_now();
            }
        }
    }

    pub fn moved(&mut self, bytes: usize) {
        self.moved += bytes as f64;
    }

    fn turn_to(&mut self, turn: u64) {
        let rate_mb_per_s = f64::from_bits(self.gate.rate_bits.0.load(Ordering::Acquire));
        self.bytes_per_ns = rate_mb_per_s * 1e-3 / f64::from(self.streams);
        self.seen = turn;
        self.origin_ns = now_ns();
        self.moved = 0.0;
    }

    fn chunk(&self) -> usize {
        let short = self.bytes_per_ns * 1e9 * LONGEST_CHUNK_S;
        self.most_bytes.min(short.max(LEAST_CHUNK)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_permitted_never_run_ahead_of_the_rate_by_more_than_a_chunk() {
        let gate = Gate::shut();
        gate.set(Some(50.0));
        let mut pacer = Pacer::new(&gate, 1, 65_536);
        let start = now_ns();
        let mut total = 0usize;
        for _ in 0..200 {
            let chunk = pacer.permit().expect("open");
            pacer.moved(chunk);
            total += chunk;
            let due = (now_ns() - start) as f64 * 50.0 * 1e-3;
            assert!(total as f64 <= due + 65_536.0 + 1.0, "{total} bytes where {due} are due");
        }
    }

    #[test]
    fn chunks_shrink_where_a_whole_one_would_take_longer_than_two_milliseconds() {
        let gate = Gate::shut();
        gate.set(Some(1.0));
        let mut pacer = Pacer::new(&gate, 1, 65_536);
        assert_eq!(pacer.permit(), Some(2_000));
        gate.set(Some(1_000.0));
        assert_eq!(pacer.permit(), Some(65_536));
        gate.set(None);
        assert_eq!(pacer.permit(), Some(usize::MAX));
        gate.end();
        assert_eq!(pacer.permit(), None);
    }

    #[test]
    fn a_silent_gate_opens_when_it_is_turned() {
        let gate = Gate::shut();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| Pacer::new(&gate, 1, 65_536).permit());
            gate.set(None);
            assert_eq!(waiter.join().expect("the thread"), Some(usize::MAX));
        });
    }
}
