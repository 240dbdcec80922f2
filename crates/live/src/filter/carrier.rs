//! The connection to another filter: frames of all streams, two queues before it, credits each way.
//!
//! Of what waits only tickets are here ([`super::connection`]); of what comes at most one frame and what was read with it.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::TcpStream;

use crosswind_access::Transport;
use crosswind_policy::queue::{DoubleQueue, Grant, ReceiverCredits, SenderCredits};
use crosswind_schema::Class;

use super::settings::{About, FilterSettings};
use super::slab::Key;
use super::sockets::Pipe;
use super::wire::{self, HEAD, Head, Kind, LARGEST};
use crate::fields::FrameError;
use crate::linux;

/// Room for reading.
const INPUT: usize = 256 << 10;
/// Words that a peer does not take, bytes: whoever asks so much and listens to nothing is dropped.
const UNHEARD: usize = 256 << 10;

/// A place in a queue: so many bytes of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub carrier: Key,
    pub connection: Key,
    /// When it was made.
    pub made_ns: u64,
    /// Its stream's number, should the connection be gone when it is its turn.
    pub number: u32,
}

/// The connection.
pub(super) struct Carrier {
    pub socket: Transport,
    /// Its address without the port: what a log calls it.
    pub peer: String,
    /// Its place among the peers that are dialled; none: it knocked.
    pub dialled: Option<usize>,
    pub waiting: DoubleQueue<Ticket>,
    /// Credits from the peer; none: it does not limit us.
    pub credits: Option<SenderCredits>,
    /// Credits for the peer; none: we do not limit it.
    pub limits: Option<ReceiverCredits>,
    pub streams: HashMap<u32, Key>,
    pub next_number: u32,
    /// Bytes that the peer takes of each new stream.
    pub window: usize,
    /// Parallel tickets that were not sent, wherever they wait.
    pub parallel_left: usize,
    out: Vec<u8>,
    out_from: usize,
    /// Bytes of words among `out`, since it was last empty.
    words: usize,
    /// The end of a frame that goes before `out`.
    outgoing: Option<Pipe>,
    /// Frames that go straight to an application.
    pub incoming: Option<Pipe>,
    /// The frame that does.
    pub passing: Option<Passing>,
    input: Vec<u8>,
    from: usize,
    to: usize,
    /// Bytes that are read at once.
    at_once: usize,
    /// When something was last read or written here, ns.
    pub moved_ns: u64,
}

/// A frame that goes straight from a peer to an application, whose head has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    /// None where its connection is gone.
    pub connection: Option<Key>,
    pub class: Class,
    /// Bytes that have not come.
    pub left: usize,
}

impl Carrier {
    pub fn new(
        socket: Transport,
        peer: String,
        dialled: Option<usize>,
        about: &About,
        rest: &[u8],
        settings: &FilterSettings,
        now_ns: u64,
    ) -> io::Result<Self> {
        socket.socket().set_nonblocking(true)?;
        socket.socket().set_nodelay(true)?;
        linux::limit_unsent(socket.socket(), settings.unsent())?;
        let mut input = vec![0; INPUT.max(rest.len())];
        input[..rest.len()].copy_from_slice(rest);
        Ok(Self {
            socket,
            peer,
            dialled,
            waiting: DoubleQueue::new(settings.queue),
            credits: about.limits.map(|limits| SenderCredits::new(limits.obeyed())),
            limits: settings.credits.map(ReceiverCredits::new),
            streams: HashMap::new(),
            next_number: 1,
            window: about.window as usize,
            parallel_left: 0,
            out: Vec::new(),
            out_from: 0,
            words: 0,
            outgoing: None,
            incoming: None,
            passing: None,
            input,
            from: 0,
            to: rest.len(),
            at_once: usize::MAX,
            moved_ns: now_ns,
        })
    }

    /// Whether the kernel takes more: nothing waits to be written.
    pub fn has_room(&self) -> bool {
        let sent = self.out.is_empty() && !self.socket.wants_room();
        sent && self.outgoing.as_ref().is_none_or(|pipe| pipe.held() == 0)
    }

    /// Whether bytes go to and fro as they are: only then may they go straight from socket to socket.
    pub fn is_plain(&self) -> bool {
        self.socket.plain().is_some()
    }

    fn put(&mut self, bytes: &[u8], more: bool) -> io::Result<usize> {
        written(put(&mut self.socket, bytes, more))
    }

    /// Which class has credit now.
    pub fn may_send(&self) -> [bool; 2] {
        self.credits.as_ref().map_or([true, true], |credits| Class::BOTH.map(|class| credits.may_send(class)))
    }

    /// Says something beside the queues.
    pub fn say(&mut self, kind: Kind, class: Class, stream: u32, payload: &[u8]) {
        wire::append(kind, class, stream, payload, &mut self.out);
        self.words += HEAD + payload.len();
    }

    /// Tells the peer of credits.
    pub fn say_grant(&mut self, grant: Grant) {
        self.say(Kind::Credit, grant.class, 0, &wire::grant_payload(grant.frames, grant.taken));
    }

    /// Sends a frame that is whole in memory, head included; what the kernel does not take waits.
    pub fn send(&mut self, frame: &[u8], now_ns: u64) -> io::Result<()> {
        let mut sent = 0;
        if self.has_room() {
            sent = self.put(frame, false)?;
            self.moved_ns = now_ns;
        }
        self.out.extend_from_slice(&frame[sent..]);
        Ok(())
    }

    /// Sends a head, and as much of its payload as goes straight from an application to the peer; how much that was. What
    /// is left follows by [`Carrier::send`]. To be called only where there is room.
    pub fn send_straight(&mut self, head: &[u8], from: &TcpStream, bytes: usize, now_ns: u64) -> io::Result<usize> {
        let sent = self.put(head, true)?;
        self.moved_ns = now_ns;
        if sent < head.len() {
            self.out.extend_from_slice(&head[sent..]);
            return Ok(0);
        }
        if self.outgoing.is_none() {
            self.outgoing = Some(Pipe::new()?);
        }
        let Some(pipe) = &mut self.outgoing else { return Ok(0) };
        let mut moved = 0;
        while moved < bytes {
            // An application that has broken off shows when the rest is read.
            let filled = pipe.fill(from, bytes - moved).unwrap_or(0);
            moved += filled;
            let drained = pipe.drain(self.socket.socket(), moved < bytes)?;
            if filled == 0 && drained == 0 {
                break;
            }
        }
        Ok(moved)
    }

    /// Writes what waits.
    pub fn flush(&mut self, now_ns: u64) -> io::Result<()> {
        if self.socket.wants_room() {
            if !self.socket.try_flush()? {
                return self.heard_at_all();
            }
            self.moved_ns = now_ns;
        }
        if let Some(pipe) = self.outgoing.as_mut().filter(|pipe| pipe.held() > 0) {
            if pipe.drain(self.socket.socket(), !self.out.is_empty())? > 0 {
                self.moved_ns = now_ns;
            }
            if pipe.held() > 0 {
                return self.heard_at_all();
            }
        }
        while self.out_from < self.out.len() {
            let sent = written(put(&mut self.socket, &self.out[self.out_from..], false))?;
            if sent == 0 {
                return self.heard_at_all();
            }
            self.out_from += sent;
            self.moved_ns = now_ns;
        }
        self.out.clear();
        (self.out_from, self.words) = (0, 0);
        Ok(())
    }

    /// Whether the peer takes answers, if late.
    fn heard_at_all(&self) -> io::Result<()> {
        if self.words > UNHEARD { Err(io::Error::other("asks, and takes no answer")) } else { Ok(()) }
    }

    /// Where large frames come one after the other, only heads are read: the payloads then go straight on.
    pub fn expect_large(&mut self, large: bool) {
        self.at_once = if large { HEAD } else { usize::MAX };
    }

    /// Reads once; 0: nothing more is there.
    pub fn fill(&mut self, now_ns: u64) -> io::Result<usize> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.input.len() - self.to < INPUT / 4 && self.from > 0 {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.to == self.input.len() {
            // A frame that is longer than the room; the decoder has limited it.
            self.input.resize(HEAD + LARGEST + INPUT, 0);
        }
        // A head that has begun is read to its end, and no further.
        let most = match self.at_once {
            usize::MAX => self.input.len() - self.to,
            _ if self.to - self.from < HEAD => HEAD - (self.to - self.from),
            _ => self.input.len() - self.to,
        };
        match self.socket.read(&mut self.input[self.to..self.to + most]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.to += read;
                self.moved_ns = now_ns;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.fill(now_ns),
            Err(error) => Err(error),
        }
    }

    /// The head of a frame that is not there as a whole, and what of its payload is: these bytes are then done with.
    pub fn begun(&mut self) -> Result<Option<(Head, std::ops::Range<usize>)>, FrameError> {
        let Some(head) = Head::decode(&self.input[self.from..self.to])? else { return Ok(None) };
        Ok(Some((head, self.from + HEAD..self.to)))
    }

    /// The bytes that were read are done with.
    pub fn done_with(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Reads up to so many bytes into the empty buffer; where they lie.
    pub fn fill_up_to(&mut self, most: usize, now_ns: u64) -> io::Result<std::ops::Range<usize>> {
        let most = most.min(self.input.len());
        match self.socket.read(&mut self.input[..most]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.moved_ns = now_ns;
                Ok(0..read)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0..0),
            Err(error) => Err(error),
        }
    }

    /// The next whole frame: its head, and where its payload lies in [`Carrier::payload`].
    pub fn next(&mut self) -> Result<Option<(Head, std::ops::Range<usize>)>, FrameError> {
        let Some(head) = Head::decode(&self.input[self.from..self.to])? else { return Ok(None) };
        let (start, end) = (self.from + HEAD, self.from + HEAD + head.bytes as usize);
        if end > self.to {
            return Ok(None);
        }
        self.from = end;
        Ok(Some((head, start..end)))
    }

    pub fn payload(&self, place: std::ops::Range<usize>) -> &[u8] {
        &self.input[place]
    }

    /// Whether the peer has begun something and not ended it.
    pub fn has_begun(&self) -> bool {
        self.from < self.to || self.passing.is_some()
    }
}

/// Writes once, or hands over to what seals.
fn put(socket: &mut Transport, bytes: &[u8], more: bool) -> io::Result<usize> {
    match socket.plain() {
        Some(plain) => linux::send_both(plain, bytes, &[], more),
        None => socket.send(bytes, &[]),
    }
}

fn written(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        result => result,
    }
}
