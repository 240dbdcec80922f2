//! Traffic threads: one per connection, one loop per direction, the same at both ends.
//!
//! Exactly one end of a channel paces it with a [`Gate`](crate::pacer::Gate); TCP's flow control alone limits the
//! other. If the receiver paces, the sender's socket buffer is full at every level. A change of level then shows in
//! the sender's own counter at once, except for what the buffers hold: a few MB, moved during the settling time of a
//! block.
//!
//! A message is handed to the kernel in one call. A blocking call counts when it returns, so the sampler reads from
//! TCP how much has arrived (`tcpi_bytes_acked`). The measured receiver takes what has arrived, at most one message,
//! into one buffer. The peer receives whole messages.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::config::Wait;
use crate::pacer::Pacer;

/// Counters of a flow's thread, read by the sampler. Aligned so that they share no cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct FlowTally {
    bytes: AtomicU64,
    calls: AtomicU64,
    thread: AtomicI32,
    ended: AtomicBool,
}

impl FlowTally {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Calls to the kernel so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns the thread's id; 0 before the thread started.
    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Records the calling thread as the one that moves the bytes.
    pub fn belongs_to_this_thread(&self) {
        self.thread.store(crosswind_linux::thread_id(), Ordering::Release);
    }

    /// Whether the connection ended, for any reason.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: u64) {
        // One writer, so a load and a store are enough; a locked add would cost more.
        self.bytes.store(self.bytes() + bytes, Ordering::Relaxed);
        self.count_call();
    }

    fn count_call(&self) {
        self.calls.store(self.calls() + 1, Ordering::Relaxed);
    }
}

/// A connection and how it is used.
pub struct Flow<'a> {
    pub stream: &'a TcpStream,
    pub message_bytes: usize,
    pub wait: Wait,
    /// Present if this end paces the flow.
    pub pacer: Option<Pacer<'a>>,
    pub tally: &'a FlowTally,
}

impl Flow<'_> {
    /// Sends random bytes until the gate or the connection ends.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn send(mut self) -> io::Result<()> {
        let message = random_bytes(self.message_bytes);
        let mut at = 0usize;
        let stream = self.stream;
        self.run(|most| {
            let sent = send(stream, &message[at..message.len().min(at.saturating_add(most))], SendFlags::NOSIGNAL)?;
            at = (at + sent) % message.len();
            Ok(sent)
        })
    }

    /// Sends random bytes from pages of a memory file, until the gate or the connection ends. The peer sends this
    /// way.
    ///
    /// `send` copies into pages that the kernel allocates anew for each chunk. On one machine the receiver copies out
    /// of those same pages, and which ones the allocator returns decides how warm they are. The cost stays at 0.25
    /// s/GB for seconds, then at 0.33 s/GB, with nothing else changed. The pages of the file stay the same.
    ///
    /// # Errors
    /// When the connection fails, or the memory file cannot be created.
    pub fn send_from_file(mut self) -> io::Result<()> {
        let mut places = Places::new(self.message_bytes);
        let file = crosswind_linux::memory_file(&random_bytes(places.bytes()))?;
        let stream = self.stream;
        self.run(|most| {
            let sent = sendfile(stream, &file, Some(&mut (places.at() as u64)), places.left().min(most))?;
            places.moved(sent);
            Ok(sent)
        })
    }

    /// Receives and discards bytes until the gate or the connection ends.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn receive(self) -> io::Result<()> {
        self.receive_with(RecvFlags::empty())
    }

    /// Receives and discards whole messages. The peer receives this way.
    ///
    /// On one machine the sender pays for waking the receiver. A receiver that takes whatever has arrived sleeps
    /// again after each segment, 40,000 times a second. A receiver that waits for a whole message is served within
    /// the kernel, and the sender gets 25 % more through. The tally lags by up to a message, so the peer reports what
    /// TCP has received ([`bytes_received`](crate::socket::bytes_received)).
    ///
    /// # Errors
    /// When the connection fails.
    pub fn receive_messages(self) -> io::Result<()> {
        self.receive_with(RecvFlags::WAITALL)
    }

    fn receive_with(mut self, flags: RecvFlags) -> io::Result<()> {
        let mut places = Places::new(self.message_bytes);
        let mut messages = vec![1u8; places.bytes()]; // written so that its pages are mapped before anything is counted
        let stream = self.stream;
        self.run(|most| {
            let (received, _) = recv(stream, &mut messages[places.at()..][..places.left().min(most)], flags)?;
            places.moved(received);
            Ok(received)
        })
    }

    fn run(&mut self, mut call: impl FnMut(usize) -> Result<usize, Errno>) -> io::Result<()> {
        self.stream.set_nonblocking(self.wait == Wait::Poll)?;
        loop {
            let Some(most) = self.pacer.as_mut().map_or(Some(usize::MAX), Pacer::permit) else { break Ok(()) };
            match call(most) {
                Ok(0) => break Ok(()),
                Ok(moved) => {
                    self.tally.count(moved as u64);
                    if let Some(pacer) = &mut self.pacer {
                        pacer.moved(moved);
                    }
                }
                Err(Errno::AGAIN) => self.tally.count_call(), // poll: ask again
                Err(Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        }
    }
}

impl Drop for Flow<'_> {
    // Also after an error before the first byte, and after a panic: bytes that stay away must not look like a rate.
    fn drop(&mut self) {
        self.tally.ended.store(true, Ordering::Relaxed);
    }
}

/// Position of the next message in a buffer that holds several.
///
/// Which physical pages a buffer gets decides how well it fits the caches beside other data, for the life of the
/// connection. With several places, a cycle of a measurement averages over some of them. The next place is used after
/// [`MESSAGES_EACH`] messages.
struct Places {
    message_bytes: usize,
    places: usize,
    moved: usize,
}

/// Messages until the next place.
const MESSAGES_EACH: usize = 32;
const MOST_PLACES: usize = 8;
/// Bytes of all places, unless one message has more.
const MOST_BYTES: usize = 16_000_000;

impl Places {
    fn new(message_bytes: usize) -> Self {
        Self { message_bytes, places: (MOST_BYTES / message_bytes).clamp(1, MOST_PLACES), moved: 0 }
    }

    fn bytes(&self) -> usize {
        self.places * self.message_bytes
    }

    fn at(&self) -> usize {
        let place = self.moved / self.message_bytes / MESSAGES_EACH % self.places;
        place * self.message_bytes + self.moved % self.message_bytes
    }

    fn left(&self) -> usize {
        self.message_bytes - self.moved % self.message_bytes
    }

    fn moved(&mut self, bytes: usize) {
        self.moved += bytes;
    }
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_ne_bytes());
    }
    bytes.truncate(count);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_in_its_place_and_the_next_place_comes_after_some_messages() {
        let mut places = Places::new(1_000_000);
        assert_eq!((places.bytes(), places.at(), places.left()), (8_000_000, 0, 1_000_000));
        places.moved(300_000);
        assert_eq!((places.at(), places.left()), (300_000, 700_000));
        places.moved(700_000);
        assert_eq!((places.at(), places.left()), (0, 1_000_000));
        places.moved(31_000_000);
        assert_eq!((places.at(), places.left()), (1_000_000, 1_000_000));
        places.moved(7 * 32_000_000);
        assert_eq!(places.at(), 0);
    }

    #[test]
    fn messages_too_large_for_many_places_have_fewer() {
        assert_eq!(Places::new(1_000).bytes(), 8_000);
        assert_eq!(Places::new(6_000_000).bytes(), 12_000_000);
        assert_eq!(Places::new(64_000_000).bytes(), 64_000_000);
    }
}
