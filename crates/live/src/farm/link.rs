//! A connection to a parent or a child. It reads and writes frames and never blocks.
//!
//! Output: small frames are batched into one write. Large payloads are written frame by frame from memory or from a file,
//! with control frames in between. Input: heads are decoded from a small buffer, and bodies are read directly to their
//! place.
//!
//! `Sent` means that the link is free. The socket accepts few bytes beyond those in flight (`TCP_NOTSENT_LOWAT`). After a
//! transfer's last byte the kernel reports the unacknowledged bytes. The link counts as free when it carries them within
//! one round trip plus [`LEAD_S`]. docs/decisions/0010 explains why.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

use crosswind_access::Transport;
use crosswind_agent::action::{self, Done, Kind, Outcome};
use crosswind_agent::frame::{self, CHUNK_HEAD, Frame};

use crate::farm::function::{Coming, Kept, Lent};
use crate::farm::payload::{Payload, Place, Spool};
use crate::farm::transfer::{Next, Pace, Transfer};
use crosswind_linux as linux;

/// Payloads up to this size are copied into the output batch: a system call for each would cost more.
const SMALL: u64 = 32 << 10;
/// Size of the output batch above which a small payload's `Sent` waits until the batch is written.
const GATHERED: usize = 256 << 10;
/// Bytes that a socket may hold beyond those in flight.
const UNSENT: i32 = 256 << 10;
/// How long before its last acknowledgement a link counts as free, s, so that the next send can be decided meanwhile.
const LEAD_S: f64 = 1e-3;
/// Up to this number of unacknowledged bytes, a link counts as free.
const NOTHING: u64 = 16 << 10;
const INPUT: usize = 64 << 10;
/// Size of the buffer for copying to or from a file, or out of a TLS connection.
const SCRATCH: usize = 256 << 10;
/// Bytes to read from one link before the other links are served.
const TURN: usize = 4 << 20;

pub(crate) type Inbound = action::Inbound<Payload>;

/// Why a link can no longer be read.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The peer is gone or violates the protocol.
    Peer(io::Error),
    /// Received bytes cannot be stored here, for example on a full disk.
    Own(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Peer(error)
    }
}

struct PartialBody {
    task: u64,
    kind: Kind,
    total: u64,
    got: u64,
    /// The function that the task calls, if any.
    function: Option<Coming>,
    place: Place,
}

/// Number of unsent bytes above which pings from the peer are not answered.
const UNHEARD: usize = 1 << 20;

pub(crate) struct Link {
    transport: Transport,
    input: Vec<u8>,
    from: usize,
    to: usize,
    scratch: Vec<u8>,
    partial: Option<PartialBody>,
    /// Unread bytes of the current frame's body.
    body_left: usize,
    out: Vec<u8>,
    out_from: usize,
    /// Frames that must wait, because a frame's head is written and its body is not.
    later: Vec<u8>,
    /// Unsent body bytes of the frame whose head is in `out`.
    frame_left: usize,
    transfers: VecDeque<Transfer>,
    /// Small transfers whose `Sent` waits until the output batch is written.
    gathered: Vec<Done>,
    pub done: Vec<Done>,
    full: bool,
    pub received_ns: u64,
    chunk: u64,
    largest_task: u64,
    /// The functions that the child at the other end keeps.
    lent: Lent,
    /// The functions that the parent at the other end has sent. `None` if it is a child, which may send none.
    kept: Option<Kept>,
}

impl Link {
    /// Creates a link over an authenticated connection; `rest` was already read from it.
    pub fn new(transport: Transport, rest: &[u8], chunk: u64, largest_task: u64, now_ns: u64) -> io::Result<Self> {
        transport.socket().set_nonblocking(true)?;
        transport.socket().set_nodelay(true)?;
        linux::limit_unsent(transport.socket(), UNSENT)?;
        let mut input = vec![0; INPUT.max(rest.len())];
        input[..rest.len()].copy_from_slice(rest);
        Ok(Self {
            transport,
            input,
            from: 0,
            to: rest.len(),
            scratch: Vec::new(),
            partial: None,
            body_left: 0,
            out: Vec::new(),
            out_from: 0,
            later: Vec::new(),
            frame_left: 0,
            transfers: VecDeque::new(),
            gathered: Vec::new(),
            done: Vec::new(),
            full: false,
            received_ns: now_ns,
            chunk,
            largest_task,
            lent: Lent::default(),
            kept: None,
        })
    }

    /// Accepts functions from the other end, which is a parent that may send code.
    pub fn accept_functions(mut self) -> Self {
        self.kept = Some(Kept::default());
        self
    }

    pub fn fd(&self) -> RawFd {
        self.transport.fd()
    }

    /// Returns whether to watch the socket for writability.
    pub fn wants_room(&self) -> bool {
        self.full || self.transport.wants_room()
    }

    /// Returns whether bytes can be read even if the socket reports none.
    pub fn holds(&self) -> bool {
        self.transport.holds()
    }

    /// Returns whether more than [`UNHEARD`] bytes wait to be sent.
    pub fn is_behind(&self) -> bool {
        self.out.len() - self.out_from + self.later.len() > UNHEARD
    }

    /// Queues a frame for the next [`Link::flush`].
    pub fn send_frame(&mut self, frame: &Frame) {
        let out = if self.frame_left > 0 { &mut self.later } else { &mut self.out };
        frame.encode(0, out);
    }

    pub fn send(&mut self, task: u64, kind: Kind, payload: Payload, pace: Option<Pace>, now_ns: u64) {
        let is_there = payload.function().is_none_or(|function| self.lent.has(function.number));
        let is_next = self.transfers.is_empty() && self.frame_left == 0;
        let small = payload.len() <= SMALL && pace.is_none() && is_next && is_there;
        let mut transfer = Transfer::new(task, kind, payload, self.chunk, pace, now_ns);
        if small && transfer.total <= self.chunk && !matches!(transfer.payload.input(), Payload::File(_)) {
            self.lent.announce(&mut transfer, &mut self.out);
            transfer.head(&mut self.out, transfer.total as usize);
            self.out.extend_from_slice(transfer.payload.read_small().unwrap_or_default());
            let (bytes, outcome) = (transfer.total, Outcome::Sent);
            let done = Done { task, kind, outcome, at_ns: now_ns, began_ns: now_ns, bytes, waited: false };
            let waits = self.out.len() - self.out_from > GATHERED;
            if waits {
                self.gathered.push(done)
            } else {
                self.done.push(done)
            }
            return;
        }
        self.transfers.push_back(transfer);
    }

    /// Changes the pace of the current transfer. If the transfer's first frame has begun and `tell` is true, sends a new
    /// rate to the peer.
    pub fn pace(&mut self, rate: Option<(f64, f64)>, at_ns: u64, tell: bool) {
        let Some(transfer) = self.transfers.front_mut() else { return };
        transfer.turn(rate, at_ns);
        if let (true, true, Some((_, rate))) = (tell, transfer.begun, rate) {
            self.send_frame(&Frame::Pace { rate });
        }
    }

    pub fn current(&mut self) -> Option<&mut Transfer> {
        self.transfers.front_mut()
    }

    /// Writes what may be written now. Returns when more will be due, if that depends on time.
    ///
    /// # Errors
    /// When the connection has failed, or a file cannot be read.
    pub fn flush(&mut self, now_ns: u64) -> io::Result<Option<u64>> {
        self.full = !self.transport.try_flush()?;
        if self.full {
            self.waits();
            return Ok(None);
        }
        loop {
            if self.out_from < self.out.len() || self.frame_left > 0 {
                if !self.write()? {
                    self.full = true;
                    if self.out_from > GATHERED {
                        self.out.drain(..self.out_from);
                        self.out_from = 0;
                    }
                    return Ok(None);
                }
                continue;
            }
            self.out.clear();
            self.out_from = 0;
            self.done.append(&mut self.gathered);
            if !self.later.is_empty() {
                std::mem::swap(&mut self.out, &mut self.later);
                continue;
            }
            let Some(transfer) = self.transfers.front_mut() else { return Ok(None) };
            if transfer.paused {
                return Ok(None);
            }
            self.lent.announce(transfer, &mut self.out);
            match transfer.next(now_ns) {
                Next::Frame(bytes, _) => {
                    transfer.head(&mut self.out, bytes);
                    self.frame_left = bytes;
                }
                Next::Wait(due) => return Ok(Some(due)),
                Next::Stand => return Ok(None),
                Next::Held(at_ns) => {
                    let done = self.finished(Outcome::Held, at_ns.min(now_ns));
                    if let Some(transfer) = self.transfers.front_mut() {
                        transfer.pause(at_ns.min(now_ns));
                    }
                    self.done.extend(done);
                    return Ok(None);
                }
                Next::Over(at_ns) => {
                    if transfer.pace.is_none() {
                        if !self.transport.try_flush()? {
                            self.full = true;
                            return Ok(None);
                        }
                        if let Some(due) = drained_at(self.transport.socket(), now_ns)? {
                            return Ok(Some(due));
                        }
                    }
                    let done = self.finished(Outcome::Sent, at_ns.min(now_ns));
                    self.done.extend(done);
                    self.transfers.pop_front();
                    // The next transfer in the queue begins now.
                    if let Some(next) = self.transfers.front_mut() {
                        next.restart(at_ns.min(now_ns));
                    }
                }
            }
        }
    }

    fn finished(&self, outcome: Outcome, at_ns: u64) -> Option<Done> {
        let transfer = self.transfers.front()?;
        let bytes = transfer.framed - transfer.began_at;
        let (task, kind, began_ns) = (transfer.task, transfer.kind, transfer.began_ns);
        Some(Done { task, kind, outcome, at_ns: at_ns.max(began_ns), began_ns, bytes, waited: transfer.waited })
    }

    /// Notes that the current transfer has to wait for the socket.
    fn waits(&mut self) {
        if let Some(transfer) = self.transfers.front_mut() {
            transfer.waited = true;
        }
    }

    /// Writes once. Returns false if the socket is full.
    fn write(&mut self) -> io::Result<bool> {
        let head = &self.out[self.out_from..];
        let transfer = self.transfers.front_mut().filter(|_| self.frame_left > 0);
        let result = match (self.transport.plain(), transfer) {
            (Some(stream), Some(transfer)) => {
                if let Some(bytes) = transfer.memory(self.frame_left) {
                    linux::send_both(stream, head, bytes, false)
                } else if head.is_empty() {
                    let (offset, most) = (transfer.payload_written(), self.frame_left);
                    let file = transfer.open_file()?;
                    linux::send_file(stream, file, offset, most)
                } else {
                    linux::send_both(stream, head, &[], true)
                }
            }
            (Some(stream), None) => linux::send_both(stream, head, &[], false),
            (None, Some(transfer)) => match transfer.memory(self.frame_left) {
                Some(bytes) => self.transport.send(head, bytes),
                None => {
                    self.scratch.resize(SCRATCH, 0);
                    let (offset, most) = (transfer.payload_written(), self.frame_left.min(SCRATCH));
                    let read = linux::read_file(transfer.open_file()?, offset, &mut self.scratch[..most])?;
                    self.transport.send(head, &self.scratch[..read])
                }
            },
            (None, None) => self.transport.send(head, &[]),
        };
        match result {
            Ok(sent) => {
                let of_head = sent.min(head.len());
                self.out_from += of_head;
                let of_body = sent - of_head;
                self.frame_left -= of_body;
                if let Some(transfer) = self.transfers.front_mut() {
                    transfer.written += of_body as u64;
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.waits();
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads available bytes, up to a budget of [`TURN`]. Returns false if the budget is used up and more may be available.
    ///
    /// # Errors
    /// When the connection has ended, a frame is invalid, or its bytes cannot be stored.
    pub fn read(&mut self, spool: &mut Spool, now_ns: u64, inbound: &mut Vec<Inbound>) -> Result<bool, Broken> {
        let mut budget = TURN;
        loop {
            if self.body_left > 0 {
                match self.read_body()? {
                    0 => return Ok(true),
                    read => budget = budget.saturating_sub(read),
                }
                if self.body_left == 0 {
                    self.body_over(inbound);
                }
            } else if let Some(decoded) =
                frame::decode(&self.input[self.from..self.to], frame::LARGEST_FRAME).map_err(bad)?
            {
                self.from += decoded.used;
                self.take(decoded.frame, decoded.body, spool, inbound)?;
            } else {
                match self.read_head()? {
                    0 => return Ok(true),
                    read => budget = budget.saturating_sub(read),
                }
            }
            self.received_ns = now_ns;
            if budget == 0 {
                return Ok(false);
            }
        }
    }

    fn take(&mut self, frame: Frame, body: usize, spool: &mut Spool, inbound: &mut Vec<Inbound>) -> Result<(), Broken> {
        let (task, total, kind, form, rate) = match frame {
            Frame::Task { task, total, work, form, rate } => (task, total, Kind::Task { work }, form, rate),
            Frame::Result { task, total, node, ok, form, rate } => (task, total, Kind::Result { node, ok }, form, rate),
            Frame::Chunk { task } | Frame::ResultChunk { task } => {
                let Some(partial) = &self.partial else {
                    return Err(Broken::Peer(bad(format!("a chunk of task {task}, which has not begun"))));
                };
                if partial.task != task || body as u64 > partial.total - partial.got || body == 0 {
                    return Err(Broken::Peer(bad(format!("a chunk of task {task} that does not fit"))));
                }
                self.body_left = body;
                return Ok(());
            }
            other => {
                match (other, &mut self.kept) {
                    (Frame::Function { task, number, bytes }, Some(kept)) => {
                        kept.announce(task, number, bytes).map_err(|why| Broken::Peer(bad(why)))?;
                    }
                    (Frame::Forget { number }, Some(kept)) => kept.forget(number),
                    (other, _) => inbound.push(Inbound::Frame(other)),
                }
                return Ok(());
            }
        };
        if self.partial.is_some() || body as u64 > total || total > self.largest_task {
            return Err(Broken::Peer(bad(format!(
                "task {task} of {total} bytes, {body} of them at once, which can't be"
            ))));
        }
        let function = match (&mut self.kept, kind) {
            (Some(kept), Kind::Task { .. }) => kept.coming(task, total).map_err(|why| Broken::Peer(bad(why)))?,
            _ => None,
        };
        let of_function = function.as_ref().map_or(0, Coming::left) as u64;
        let place = spool.place(total - of_function, form).map_err(Broken::Own)?;
        self.partial = Some(PartialBody { task, kind, total, got: 0, function, place });
        self.body_left = body;
        if rate > 0.0 || total > body as u64 {
            inbound.push(Inbound::Begun { rate });
        }
        if body == 0 {
            self.body_over(inbound);
        }
        Ok(())
    }

    fn body_over(&mut self, inbound: &mut Vec<Inbound>) {
        if let Some(partial) = self.partial.take_if(|partial| partial.got == partial.total) {
            let PartialBody { task, kind, function, place, .. } = partial;
            let payload = match (function, &mut self.kept) {
                (Some(coming), Some(kept)) => kept.arrived(coming, place.payload()),
                _ => place.payload(),
            };
            inbound.push(match kind {
                Kind::Task { work } => Inbound::Task { task, work, payload },
                Kind::Result { node, ok } => Inbound::Result { task, node, ok, payload },
            });
        }
    }

    /// Reads into the small buffer. Within a transfer, it reads no further than the next frame head.
    fn read_head(&mut self) -> io::Result<usize> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.input.len() {
            if self.from > 0 {
                self.input.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            } else {
                self.input.resize(self.input.len() * 2, 0); // a long frame; the decoder limits it
            }
        }
        let have = self.to - self.from;
        let most = if self.partial.is_some() && have < CHUNK_HEAD { CHUNK_HEAD - have } else { usize::MAX };
        let end = self.input.len().min(self.to.saturating_add(most));
        let read = received(self.transport.read(&mut self.input[self.to..end]))?;
        self.to += read;
        Ok(read)
    }

    fn read_body(&mut self) -> Result<usize, Broken> {
        let Some(partial) = &mut self.partial else { return Err(Broken::Peer(bad("bytes of no task"))) };
        let of_function = partial.function.as_ref().map_or(0, Coming::left);
        let most = if of_function > 0 { self.body_left.min(of_function) } else { self.body_left };
        let left = if of_function > 0 { of_function } else { (partial.total - partial.got) as usize };
        let buffered = (self.to - self.from).min(most);
        let mut to_function = match &mut partial.function {
            Some(Coming::Arriving { got, .. }) if of_function > 0 => Some(got),
            _ => None,
        };
        let read = if buffered > 0 {
            let bytes = &self.input[self.from..self.from + buffered];
            match &mut to_function {
                Some(memory) => memory.extend_from_slice(bytes),
                None => partial.place.take(bytes).map_err(Broken::Own)?,
            }
            self.from += buffered;
            buffered
        } else {
            match (&mut partial.place, to_function, self.transport.plain()) {
                (_, Some(memory), Some(stream)) | (Place::Memory(memory), None, Some(stream)) => {
                    if memory.capacity() - memory.len() < most {
                        // Grow by no more than what has arrived or is in this frame: a declared size alone allocates
                        // nothing.
                        memory.reserve_exact(left.min(most.max(memory.len())));
                    }
                    received(receive_into(stream, memory, most))?
                }
                (Place::Nowhere(count), None, Some(stream)) => {
                    let read = received(discard(stream, most))?;
                    *count += read as u64;
                    read
                }
                (place, to_function, _) => {
                    self.scratch.resize(SCRATCH, 0);
                    let room = most.min(self.scratch.len());
                    let read = received(self.transport.read(&mut self.scratch[..room]))?;
                    match to_function {
                        Some(memory) => memory.extend_from_slice(&self.scratch[..read]),
                        None => place.take(&self.scratch[..read]).map_err(Broken::Own)?,
                    }
                    read
                }
            }
        };
        partial.got += read as u64;
        self.body_left -= read;
        Ok(read)
    }

    /// Sends the final `Bye`, if the socket accepts it without blocking.
    pub fn send_bye(&mut self, now_ns: u64) {
        self.send_frame(&Frame::Bye);
        // The other end may be gone already.
        let _ = self.flush(now_ns);
    }
}

/// Maps "nothing available" to 0 bytes and the end of the connection to an error.
fn received(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
        Ok(read) => Ok(read),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(error),
    }
}

fn receive_into(stream: &TcpStream, memory: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let spare = memory.spare_capacity_mut();
    let room = spare.len().min(most);
    // SAFETY: the pointer refers to at least `room` bytes of spare capacity; `recv` has initialised the bytes that it
    // returns.
    unsafe {
        let read = libc::recv(stream.as_raw_fd(), spare.as_mut_ptr().cast(), room, libc::MSG_DONTWAIT);
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        memory.set_len(memory.len() + read as usize);
        Ok(read as usize)
    }
}

/// Discards bytes from the socket without copying them.
fn discard(stream: &TcpStream, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket drops the bytes and touches no buffer (tcp(7)).
    let read =
        unsafe { libc::recv(stream.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC | libc::MSG_DONTWAIT) };
    if read < 0 { Err(io::Error::last_os_error()) } else { Ok(read as usize) }
}

/// Returns `None` if the link is free, otherwise when to check again, ns.
fn drained_at(stream: &TcpStream, now_ns: u64) -> io::Result<Option<u64>> {
    let sending = linux::sending(stream)?;
    let on_the_way = sending.rate * (sending.round_trip_s + LEAD_S);
    if sending.outstanding <= NOTHING.max(on_the_way as u64) {
        return Ok(None);
    }
    let left = sending.outstanding as f64 - on_the_way;
    let wait_ns = if sending.rate > 0.0 { left / sending.rate * 1e9 } else { 1e6 };
    Ok(Some(now_ns + wait_ns.clamp(5e4, 2e7) as u64))
}

/// Creates the error for a protocol violation.
pub(crate) fn bad(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

impl Payload {
    /// Returns the bytes of a payload of at most [`SMALL`] bytes. `None` for a file.
    fn read_small(&self) -> Option<&[u8]> {
        static BLANK: [u8; SMALL as usize] = [0; SMALL as usize];
        match self.input() {
            Self::Bytes(bytes) => Some(bytes),
            Self::Shared(bytes) => Some(bytes.as_slice()),
            Self::Blank(bytes) => Some(&BLANK[..*bytes as usize]),
            Self::File(_) | Self::Call(_) => None,
        }
    }
}

const _: () = assert!(frame::LARGEST_BODY < frame::LARGEST_FRAME && SMALL < frame::LARGEST_BODY as u64);
