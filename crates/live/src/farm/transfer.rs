//! An outgoing transfer of one task or result over one link, chunk by chunk. The policy holds, resumes and paces it.
//!
//! A paced transfer hands bytes to the kernel when their time on the emulated link is over, not when it begins. The
//! receiver thus gets a chunk when a link of that rate would have delivered it, and the last byte leaves when the link is
//! free.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crosswind_agent::action::Kind;
use crosswind_agent::frame::{Form, Frame};

use crate::farm::function::Function;
use crate::farm::payload::{Payload, open_regular};

/// Length of a frame of a paced transfer whose chunks may be split, ns, but at least [`LEAST_QUANTUM`] bytes. The
/// receiver sees each frame as a burst.
const QUANTUM_NS: f64 = 2e6;
const LEAST_QUANTUM: f64 = 16_384.0;
/// Fraction of a chunk that is ignored when positions are compared, because a position is a sum with rounding errors.
const ROUNDING: f64 = 1e-9;

/// Rate of an emulated link, with a position in bytes that grows with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Rate of the platform, MB/s, as reported in frames. 0 if not emulated.
    pub reported: f64,
    bytes_per_ns: f64,
    position: f64,
    at_ns: u64,
}

impl Pace {
    pub fn new(bytes_per_ns: f64, reported: f64, at_ns: u64) -> Self {
        Self { reported, bytes_per_ns, position: 0.0, at_ns }
    }

    /// Returns the position at a time, bytes.
    fn position(&self, ns: u64) -> f64 {
        self.position + self.bytes_per_ns * ns.saturating_sub(self.at_ns) as f64
    }

    /// Returns when the link reaches a position. `None` if it never does at this rate.
    fn when(&self, bytes: u64) -> Option<u64> {
        let left = bytes as f64 - self.position;
        if left <= 0.0 {
            return Some(self.at_ns);
        }
        (self.bytes_per_ns > 0.0).then(|| self.at_ns + (left / self.bytes_per_ns).ceil() as u64)
    }

    fn turn(&mut self, bytes_per_ns: f64, reported: f64, now_ns: u64) {
        self.position = self.position(now_ns);
        (self.bytes_per_ns, self.reported, self.at_ns) = (bytes_per_ns, reported, now_ns);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// A frame with this number of bytes, and its due time in ns (0: any time).
    Frame(usize, u64),
    Wait(u64),
    /// Nothing until the pace is changed.
    Stand,
    /// A hold was requested, and the chunk before it is complete at this time, ns.
    Held(u64),
    /// All bytes are handed over; the time is the end according to the pace, ns.
    Over(u64),
}

#[derive(Debug)]
pub(crate) struct Transfer {
    pub task: u64,
    pub kind: Kind,
    pub payload: Payload,
    /// The function that is sent in front of the payload. Positions count its bytes as the first ones.
    function: Option<Arc<Function>>,
    /// Whether the number of the task's function has been sent to the receiver, if it has one.
    announced: bool,
    pub total: u64,
    /// Bytes whose frames have begun.
    pub framed: u64,
    /// Bytes handed to the kernel.
    pub written: u64,
    /// Whether the first frame has begun.
    pub begun: bool,
    /// Whether bytes that were due had to wait until the socket took them.
    pub waited: bool,
    /// Number of framed bytes at which the transfer is held.
    stop: Option<u64>,
    pub paused: bool,
    pub pace: Option<Pace>,
    chunk: u64,
    /// When the current stretch began, ns, and its first byte. A held transfer has several stretches.
    pub began_ns: u64,
    pub began_at: u64,
    file: Option<File>,
}

impl Transfer {
    /// Notes that the number of the task's function is sent, and returns whether it was before.
    pub fn announce(&mut self) -> bool {
        std::mem::replace(&mut self.announced, true)
    }

    pub fn new(task: u64, kind: Kind, payload: Payload, chunk: u64, pace: Option<Pace>, now_ns: u64) -> Self {
        let total = payload.len();
        Self {
            task,
            kind,
            payload,
            function: None,
            announced: false,
            total,
            framed: 0,
            written: 0,
            begun: false,
            waited: false,
            stop: None,
            paused: false,
            pace,
            chunk: chunk.max(1),
            began_ns: now_ns,
            began_at: 0,
            file: None,
        }
    }

    /// Sends the function that the task calls in front of its payload. Call it before the first frame.
    pub fn bring_function(&mut self) {
        self.function = self.payload.function().map(Arc::clone);
        self.total = self.payload.len() + self.function_bytes();
    }

    fn function_bytes(&self) -> u64 {
        self.function.as_ref().map_or(0, |function| function.len())
    }

    /// Returns the number of payload bytes handed to the kernel.
    pub fn payload_written(&self) -> u64 {
        self.written - self.function_bytes()
    }

    /// Sets the start, after the transfer has waited for another one.
    pub fn restart(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
        if let Some(pace) = &mut self.pace {
            pace.at_ns = at_ns;
        }
    }

    /// Encodes the head of the next frame.
    pub fn head(&mut self, out: &mut Vec<u8>, bytes: usize) {
        let (task, total, form) = (self.task, self.total, self.payload.form());
        let rate = self.pace.map_or(0.0, |pace| pace.reported);
        let frame = match (self.begun, self.kind) {
            (false, Kind::Task { work }) => Frame::Task { task, total, work, form, rate },
            (false, Kind::Result { node, ok }) => Frame::Result { task, total, node, ok, form, rate },
            (true, Kind::Task { .. }) => Frame::Chunk { task },
            (true, Kind::Result { .. }) => Frame::ResultChunk { task },
        };
        self.begun = true;
        frame.encode(bytes, out);
        self.framed += bytes as u64;
    }

    /// Returns what follows the bytes that are framed already.
    pub fn next(&self, now_ns: u64) -> Next {
        if self.stop.is_some_and(|stop| self.framed >= stop) && self.framed < self.total {
            let over = self.pace.filter(|_| self.begun).and_then(|pace| pace.when(self.framed));
            return Next::Held(over.unwrap_or(self.began_ns.max(now_ns)));
        }
        // On an emulated link, an empty first frame immediately announces the transfer to the receiver.
        if !self.begun && self.pace.is_some() {
            return Next::Frame(0, self.began_ns);
        }
        if self.framed == self.total && self.begun {
            let due = self.pace.and_then(|pace| pace.when(self.total)).unwrap_or(now_ns);
            return if due <= now_ns { Next::Over(due) } else { Next::Wait(due) };
        }
        let boundary = (self.framed / self.chunk + 1) * self.chunk;
        let mut end = boundary.min(self.total).min(self.framed + crosswind_agent::frame::LARGEST_BODY as u64);
        let Some(pace) = self.pace else { return Next::Frame((end - self.framed) as usize, 0) };
        if self.payload.form() == Form::Bytes {
            let quantum = (pace.bytes_per_ns * QUANTUM_NS).max(LEAST_QUANTUM) as u64;
            end = end.min(self.framed + quantum);
        }
        match pace.when(end) {
            Some(due) if due <= now_ns => Next::Frame((end - self.framed) as usize, due),
            Some(due) => Next::Wait(due),
            None => Next::Stand,
        }
    }

    /// Holds the transfer at the end of the chunk that is on the link at that time, or immediately if there is none.
    pub fn hold(&mut self, at_ns: u64) {
        let on_the_link = self.pace.map_or(0.0, |pace| pace.position(at_ns)).max(self.framed as f64);
        let chunks = (on_the_link / self.chunk as f64 - ROUNDING).ceil().max(0.0);
        self.stop = Some(chunks as u64 * self.chunk);
    }

    /// Stops the transfer from then on.
    pub fn pause(&mut self, at_ns: u64) {
        self.paused = true;
        if let Some(pace) = &mut self.pace {
            pace.turn(0.0, 0.0, at_ns);
            pace.position = self.framed as f64;
        }
    }

    /// Resumes the transfer where it stopped.
    pub fn go_on(&mut self, bytes_per_ns: Option<(f64, f64)>, now_ns: u64) {
        (self.stop, self.paused) = (None, false);
        (self.began_ns, self.began_at) = (now_ns, self.framed);
        self.turn(bytes_per_ns, now_ns);
    }

    /// Changes the pace. `None` means as fast as the link allows.
    pub fn turn(&mut self, bytes_per_ns: Option<(f64, f64)>, now_ns: u64) {
        match (&mut self.pace, bytes_per_ns) {
            (Some(pace), Some((rate, reported))) => pace.turn(rate, reported, now_ns),
            (pace, Some((rate, reported))) => {
                let mut fresh = Pace::new(rate, reported, now_ns);
                fresh.position = self.framed as f64;
                *pace = Some(fresh);
            }
            (pace, None) => *pace = None,
        }
    }

    /// Returns unwritten bytes, at most `most`, if the payload is in memory.
    pub fn memory(&self, most: usize) -> Option<&[u8]> {
        static BLANK: [u8; 1 << 20] = [0; 1 << 20];
        let part = |bytes: &'_ [u8], from: u64| {
            let from = from as usize;
            from..bytes.len().min(from + most)
        };
        if let Some(function) = self.function.as_ref().filter(|function| self.written < function.len()) {
            let bytes = function.bytes.as_slice();
            return bytes.get(part(bytes, self.written));
        }
        let from = self.payload_written();
        match self.payload.input() {
            Payload::Bytes(bytes) => bytes.get(part(bytes, from)),
            Payload::Shared(bytes) => bytes.as_slice().get(part(bytes.as_slice(), from)),
            Payload::Blank(_) => Some(&BLANK[..most.min(BLANK.len())]),
            Payload::File(_) | Payload::Call(_) => None,
        }
    }

    /// Opens and returns the payload's file.
    pub fn open_file(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            if let Payload::File(stored) = self.payload.input() {
                self.file = Some(open_regular(&stored.path)?.0);
            }
        }
        self.file.as_ref().ok_or_else(|| io::Error::other("not a file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(transfer: &mut Transfer, mut now: u64) -> Vec<(usize, u64)> {
        let mut seen = Vec::new();
        let mut wire = Vec::new();
        loop {
            match transfer.next(now) {
                Next::Frame(bytes, _) => {
                    transfer.head(&mut wire, bytes);
                    seen.push((bytes, now));
                }
                Next::Wait(due) => now = due,
                Next::Over(at) => {
                    seen.push((0, at));
                    return seen;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_paced_transfer_ends_when_a_link_of_that_rate_would_have_brought_the_last_byte() {
        // 2 MB at 10 MB/s, chunks of half a MB: 0.2 s, however the chunks fall.
        let pace = Pace::new(0.01, 10.0, 1_000);
        let mut transfer =
            Transfer::new(0, Kind::Task { work: 1.0 }, Payload::Blank(2_000_000), 512 << 10, Some(pace), 1_000);
        let seen = frames(&mut transfer, 1_000);
        assert_eq!(seen[0], (0, 1_000), "it is told at once");
        assert_eq!(seen[1], (524_288, 1_000 + 52_428_800));
        assert_eq!(*seen.last().expect("an end"), (0, 1_000 + 200_000_000));
    }

    #[test]
    fn a_change_of_pace_counts_from_when_it_comes() {
        let pace = Pace::new(0.01, 10.0, 0);
        let mut transfer =
            Transfer::new(0, Kind::Task { work: 1.0 }, Payload::Blank(1_000_000), 1 << 30, Some(pace), 0);
        transfer.head(&mut Vec::new(), 0);
        transfer.turn(Some((0.02, 20.0)), 50_000_000); // half is over
        assert_eq!(transfer.next(0), Next::Wait(75_000_000));
    }

    #[test]
    fn a_hold_stops_at_the_end_of_the_chunk_and_goes_on_there() {
        let mut transfer = Transfer::new(0, Kind::Task { work: 1.0 }, Payload::bytes(vec![1; 1000]), 300, None, 0);
        assert_eq!(transfer.next(0), Next::Frame(300, 0));
        transfer.head(&mut Vec::new(), 300);
        transfer.hold(5);
        assert_eq!(transfer.next(5), Next::Held(5));
        transfer.pause(5);
        transfer.go_on(None, 9);
        assert_eq!(transfer.next(9), Next::Frame(300, 0));
    }

    #[test]
    fn a_hold_before_the_first_byte_of_a_chunk_stops_there() {
        let pace = |at| Some(Pace::new(0.01, 10.0, at));
        let mut transfer = Transfer::new(0, Kind::Task { work: 1.0 }, Payload::Blank(1000), 300, pace(7), 7);
        transfer.hold(7); // the transfer is not announced yet
        assert!(matches!(transfer.next(7), Next::Held(7)));
        transfer.pause(7);
        transfer.go_on(Some((0.01, 10.0)), 100);
        assert_eq!(transfer.next(100), Next::Frame(0, 100));
        transfer.head(&mut Vec::new(), 0);
        transfer.hold(100 + 30_000); // at the very end of its first chunk
        transfer.head(&mut Vec::new(), 300);
        assert_eq!(transfer.next(30_100), Next::Held(30_100));
        transfer.pause(30_100);
        transfer.go_on(Some((0.01, 10.0)), 40_000);
        transfer.hold(40_001); // a byte is on the link
        transfer.head(&mut Vec::new(), 300);
        assert_eq!(transfer.next(70_000), Next::Held(70_000));
    }

    #[test]
    fn a_task_of_no_bytes_is_one_frame() {
        let mut transfer = Transfer::new(0, Kind::Task { work: 1.0 }, Payload::bytes(vec![]), 300, None, 0);
        assert_eq!(frames(&mut transfer, 0), [(0, 0), (0, 0)]);
    }
}
