//! The connection to another filter: frames of all streams, the two queues for it, and credits in both directions.
//!
//! Waiting output consists only of tickets ([`super::connection`]). Waiting input is at most one frame and what was read
//! with it.

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

/// Size of the read buffer, bytes. Reading many large frames in one call costs as much as a few small ones.
const INPUT: usize = 1 << 20;
/// Bytes of unread replies above which a peer is dropped: it sends requests without reading the answers.
const UNHEARD: usize = 256 << 10;

/// A queue entry for bytes of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub carrier: Key,
    pub connection: Key,
    pub made_ns: u64,
    /// Number of its stream, in case the connection is gone when its turn comes.
    pub number: u32,
}

pub(super) struct Carrier {
    pub socket: Transport,
    /// Its address as used in the log; without the port if it dialled this filter.
    pub peer: String,
    /// Its index among the dialled peers. `None` if it dialled this filter.
    pub dialled: Option<usize>,
    pub waiting: DoubleQueue<Ticket>,
    /// Credits from the peer. `None` if it does not limit this end.
    pub credits: Option<SenderCredits>,
    /// Credits for the peer. `None` if this end does not limit it.
    pub limits: Option<ReceiverCredits>,
    pub streams: HashMap<u32, Key>,
    /// Streams that were reset here, and how many bytes of each may still arrive: the peer sent them before it received
    /// the reset, which it answers with [`Kind::End`].
    pub closing: HashMap<u32, usize>,
    pub next_number: u32,
    /// Initial window of each new stream to the peer, bytes.
    pub window: usize,
    /// Parallel tickets that are not sent yet, whether in the queue or on the outgoing link.
    pub parallel_left: usize,
    out: Vec<u8>,
    out_from: usize,
    /// Bytes of control frames in `out` since it was last empty.
    words: usize,
    input: Vec<u8>,
    from: usize,
    to: usize,
    /// When bytes were last read or written here, ns.
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

    /// Returns whether the peer's socket accepts more: no output is pending.
    pub fn has_room(&self) -> bool {
        self.out.is_empty() && !self.socket.wants_room()
    }

    /// Returns for each class whether it has credit now.
    pub fn may_send(&self) -> [bool; 2] {
        self.credits.as_ref().map_or([true, true], |credits| Class::BOTH.map(|class| credits.may_send(class)))
    }

    /// Queues a control frame, which does not wait in the two queues.
    pub fn send_control(&mut self, kind: Kind, class: Class, stream: u32, payload: &[u8]) {
        wire::append(kind, class, stream, payload, &mut self.out);
        self.words += HEAD + payload.len();
    }

    /// Queues a grant of credits for the peer.
    pub fn send_grant(&mut self, grant: Grant) {
        self.send_control(Kind::Credit, grant.class, 0, &wire::grant_payload(grant.frames, grant.taken));
    }

    /// Sends a complete frame, including its head. Bytes that the kernel does not accept are buffered.
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
                return self.has_received();
            }
            self.moved_ns = now_ns;
        }
        while self.out_from < self.out.len() {
            let sent = written(self.socket.send(&self.out[self.out_from..], &[]))?;
            if sent == 0 {
                return self.has_received();
            }
            self.out_from += sent;
            self.moved_ns = now_ns;
        }
        self.out.clear();
        (self.out_from, self.words) = (0, 0);
        Ok(())
    }

    /// Fails if the peer reads too few of its answers.
    fn has_received(&self) -> io::Result<()> {
        if self.words > UNHEARD { Err(io::Error::other("asks, and takes no answer")) } else { Ok(()) }
    }

    /// Reads once. Returns 0 if nothing is available.
    pub fn fill(&mut self, now_ns: u64) -> io::Result<usize> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.input.len() - self.to < INPUT / 4 && self.from > 0 {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.to == self.input.len() {
            // The frame does not fit into the buffer; the decoder has limited its length.
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

    /// Returns the head of the next whole frame, and the range of its payload for [`Carrier::payload`].
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

    /// Returns whether the peer has sent an incomplete frame.
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
