//! One direction of a connection: the codec of real agents turns transfers into frames and bytes, and bytes back into
//! frames.

use std::collections::VecDeque;

use crosswind_agent::action::{Done, Inbound, Kind, Outcome};
use crosswind_agent::frame::{self, Form, Frame};

use crate::bytes::Bytes;

/// A task or a result being sent.
#[derive(Debug)]
struct Transfer {
    task: u64,
    kind: Kind,
    payload: Bytes,
    framed: u64,
    begun: bool,
    /// Offset at which it is held, bytes.
    stop: Option<u64>,
    paused: bool,
    began_ns: u64,
    began_at: u64,
}

impl Transfer {
    /// Encodes the next frame with `bytes` bytes of body.
    fn frame(&mut self, bytes: u64) -> Vec<u8> {
        let (task, total, form, rate) = (self.task, self.payload.0.len() as u64, Form::Bytes, 0.0);
        let head = match (self.begun, self.kind) {
            (false, Kind::Task { work }) => Frame::Task { task, total, work, form, rate },
            (false, Kind::Result { node, ok }) => Frame::Result { task, total, node, ok, form, rate },
            (true, Kind::Task { .. }) => Frame::Chunk { task },
            (true, Kind::Result { .. }) => Frame::ResultChunk { task },
        };
        let mut out = Vec::new();
        head.encode(bytes as usize, &mut out);
        out.extend(&self.payload.0[self.framed as usize..(self.framed + bytes) as usize]);
        (self.begun, self.framed) = (true, self.framed + bytes);
        out
    }

    fn done(&self, outcome: Outcome, at_ns: u64) -> Done {
        let bytes = self.framed - self.began_at;
        Done { task: self.task, kind: self.kind, outcome, at_ns, began_ns: self.began_ns, bytes, waited: false }
    }
}

#[derive(Debug, Default)]
pub struct Sender {
    chunk: u64,
    transfers: VecDeque<Transfer>,
    /// Outcomes of transfers that have not been collected.
    pub done: Vec<Done>,
}

impl Sender {
    /// Creates a sender with chunks of `chunk` bytes, at least 1.
    #[must_use]
    pub fn new(chunk: u64) -> Self {
        Self { chunk: chunk.max(1), ..Self::default() }
    }

    /// Starts a transfer. Returns its bytes if it fits one chunk and no other transfer waits.
    pub fn send(&mut self, task: u64, kind: Kind, payload: Bytes, now_ns: u64) -> Option<Vec<u8>> {
        let total = payload.0.len() as u64;
        let (stop, began_ns) = (None, now_ns);
        let mut transfer =
            Transfer { task, kind, payload, framed: 0, begun: false, stop, paused: false, began_ns, began_at: 0 };
        if self.transfers.is_empty() && total <= self.chunk {
            let out = transfer.frame(total);
            self.done.push(transfer.done(Outcome::Sent, now_ns));
            return Some(out);
        }
        self.transfers.push_back(transfer);
        None
    }

    /// Holds the current transfer at the end of its chunk.
    pub fn hold(&mut self) {
        if let Some(transfer) = self.transfers.front_mut() {
            transfer.stop = Some(transfer.framed.div_ceil(self.chunk) * self.chunk);
        }
    }

    pub fn go_on(&mut self, now_ns: u64) {
        if let Some(transfer) = self.transfers.front_mut() {
            (transfer.stop, transfer.paused) = (None, false);
            (transfer.began_ns, transfer.began_at) = (now_ns, transfer.framed);
        }
    }

    /// Returns the bytes to send now that the line is free. `None` if nothing waits, or the transfer is held.
    pub fn next(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        loop {
            let transfer = self.transfers.front_mut()?;
            let total = transfer.payload.0.len() as u64;
            if transfer.paused {
                return None;
            }
            if transfer.stop.is_some_and(|stop| transfer.framed >= stop) && transfer.framed < total {
                transfer.paused = true;
                let done = transfer.done(Outcome::Held, now_ns);
                self.done.push(done);
                return None;
            }
            if transfer.begun && transfer.framed == total {
                let done = transfer.done(Outcome::Sent, now_ns);
                self.done.push(done);
                self.transfers.pop_front();
                continue;
            }
            let end = ((transfer.framed / self.chunk + 1) * self.chunk).min(total);
            let bytes = end - transfer.framed;
            return Some(transfer.frame(bytes));
        }
    }

    /// Whether no transfer is pending.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.transfers.is_empty()
    }
}

#[derive(Debug)]
struct PartialBody {
    task: u64,
    kind: Kind,
    total: usize,
    got: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Receiver {
    buffer: Vec<u8>,
    partial: Option<PartialBody>,
    body_left: usize,
}

impl Receiver {
    /// Decodes bytes as they arrive, fragmented at any point.
    ///
    /// # Errors
    /// If they do not form valid frames.
    pub fn take(&mut self, bytes: &[u8], inbound: &mut Vec<Inbound<Bytes>>) -> Result<(), String> {
        self.buffer.extend_from_slice(bytes);
        loop {
            if self.body_left > 0 {
                let Some(partial) = &mut self.partial else { return Err("bytes of no task".into()) };
                let taken = self.body_left.min(self.buffer.len());
                partial.got.extend(self.buffer.drain(..taken));
                self.body_left -= taken;
                if self.body_left > 0 {
                    return Ok(());
                }
                self.body_over(inbound);
                continue;
            }
            let decoded = frame::decode(&self.buffer, frame::LARGEST_FRAME).map_err(|error| error.to_string())?;
            let Some(decoded) = decoded else { return Ok(()) };
            self.buffer.drain(..decoded.used);
            self.body_left = decoded.body;
            let (task, kind, total) = match decoded.frame {
                Frame::Task { task, total, work, .. } => (task, Kind::Task { work }, total),
                Frame::Result { task, total, node, ok, .. } => (task, Kind::Result { node, ok }, total),
                Frame::Chunk { task } | Frame::ResultChunk { task } => {
                    if self.partial.as_ref().is_none_or(|partial| partial.task != task) {
                        return Err(format!("a chunk of task {task}, which has not begun"));
                    }
                    continue;
                }
                other => {
                    inbound.push(Inbound::Frame(other));
                    continue;
                }
            };
            if self.partial.is_some() {
                return Err(format!("task {task} begins while another one comes"));
            }
            self.partial = Some(PartialBody { task, kind, total: total as usize, got: Vec::new() });
            if total as usize > decoded.body {
                inbound.push(Inbound::Begun { rate: 0.0 });
            }
            if decoded.body == 0 {
                self.body_over(inbound);
            }
        }
    }

    fn body_over(&mut self, inbound: &mut Vec<Inbound<Bytes>>) {
        if let Some(PartialBody { task, kind, got, .. }) =
            self.partial.take_if(|partial| partial.got.len() == partial.total)
        {
            let payload = Bytes::of(got);
            inbound.push(match kind {
                Kind::Task { work } => Inbound::Task { task, work, payload },
                Kind::Result { node, ok } => Inbound::Result { task, node, ok, payload },
            });
        }
    }
}
