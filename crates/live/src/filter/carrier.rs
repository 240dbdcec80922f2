//! The connection to another filter: frames of all streams, two queues before it, credits each way.
//!
//! Of what waits only tickets are here ([`super::connection`]); of what comes at most one frame and what was read with it.

use std::collections::HashMap;
use std::io::{self, Read};

use crosswind_access::Transport;
use crosswind_agent::fields::FrameError;
use crosswind_policy::queue::{DoubleQueue, Grant, ReceiverCredits, SenderCredits};
use crosswind_schema::Class;

use super::settings::{About, FilterSettings};
use super::slab::Key;
use super::wire::{self, HEAD, Head, Kind, LARGEST};
use crosswind_linux as linux;

/// Room for reading: many large frames in one call, which costs as much as a few small ones.
const INPUT: usize = 1 << 20;
/// Bytes of replies that a peer does not read; a peer that requests more without reading is dropped.
const UNHEARD: usize = 256 << 10;

/// A place in a queue: so many bytes of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub carrier: Key,
    pub connection: Key,
    pub made_ns: u64,
    /// Its stream's number, should the connection be gone when it is its turn.
    pub number: u32,
}

pub(super) struct Carrier {
    pub socket: Transport,
    /// Its address without the port: what a log calls it.
    pub peer: String,
    /// Its place among the peers that are dialled; none: it dialled this one.
    pub dialled: Option<usize>,
    pub waiting: DoubleQueue<Ticket>,
    /// Credits from the peer; none: it does not limit us.
    pub credits: Option<SenderCredits>,
    /// Credits for the peer; none: we do not limit it.
    pub limits: Option<ReceiverCredits>,
    pub streams: HashMap<u32, Key>,
    /// Streams that were reset here, and how many bytes may still come of each: what the peer sent before it heard of that.
    /// It answers with [`Kind::End`].
    pub closing: HashMap<u32, usize>,
    pub next_number: u32,
    /// Bytes that the peer takes of each new stream.
    pub window: usize,
    /// Parallel tickets that were not sent, wherever they wait.
    pub parallel_left: usize,
    out: Vec<u8>,
    out_from: usize,
    /// Bytes of words among `out`, since it was last empty.
    words: usize,
    input: Vec<u8>,
    from: usize,
    to: usize,
    /// When something was last read or written here, ns.
    pub moved_ns: u64,
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
            closing: HashMap::new(),
            next_number: 1,
            window: about.window as usize,
            parallel_left: 0,
            out: Vec::new(),
            out_from: 0,
            words: 0,
            input,
            from: 0,
            to: rest.len(),
            moved_ns: now_ns,
        })
    }

    /// Whether the kernel takes more: nothing waits to be written.
    pub fn has_room(&self) -> bool {
        self.out.is_empty() && !self.socket.wants_room()
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
            sent = written(self.socket.send(frame, &[]))?;
            self.moved_ns = now_ns;
        }
        self.out.extend_from_slice(&frame[sent..]);
        Ok(())
    }

    pub fn flush(&mut self, now_ns: u64) -> io::Result<()> {
        if self.socket.wants_room() {
            if !self.socket.try_flush()? {
                return self.heard_at_all();
            }
            self.moved_ns = now_ns;
        }
        while self.out_from < self.out.len() {
            let sent = written(self.socket.send(&self.out[self.out_from..], &[]))?;
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
        match self.socket.read(&mut self.input[self.to..]) {
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
        self.from < self.to
    }
}

fn written(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        result => result,
    }
}
