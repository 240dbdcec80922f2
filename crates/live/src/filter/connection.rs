//! An application's connection through two filters, as one of them sees it.
//!
//! Bytes that the application sends stay in the kernel until their turn: the queues hold only their counts ("tickets").
//! Bytes that arrive for it are passed to the kernel immediately, and wait here only if it accepts no more.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};

use crosswind_schema::Class;

use super::slab::Key;
use super::sockets::waiting_bytes;
use crosswind_linux as linux;

/// Violation of a peer that exceeds its window.
pub(super) const BEYOND_WINDOW: &str = "sent more than its window";

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` while the target is being connected.
    pub socket: Option<TcpStream>,
    /// The peer it goes through.
    pub carrier: Key,
    pub number: u32,
    pub class: Class,
    /// Bytes that wait in the kernel and have tickets.
    pub ticketed: usize,
    /// Bytes that the peer accepts beyond those.
    pub may_send: usize,
    /// Whether the application sends no more than what waits.
    pub application_ended: bool,
    pub end_announced: bool,
    /// Whether the peer's application sends no more.
    pub peer_ended: bool,
    shut: bool,
    /// Bytes that the application has not accepted.
    pending: VecDeque<u8>,
    /// Remaining bytes of each frame that is not wholly accepted.
    pending_frames: VecDeque<usize>,
    /// Frames of it on the incoming link.
    pub on_link: usize,
    /// Bytes that the peer may still send.
    pub may_come: usize,
    /// Bytes accepted by the application and not yet returned to the peer's window.
    pub owed: usize,
}

impl Connection {
    pub fn new(
        socket: Option<TcpStream>,
        carrier: Key,
        number: u32,
        class: Class,
        may_send: usize,
        may_come: usize,
    ) -> Self {
        Self {
            socket,
            carrier,
            number,
            class,
            ticketed: 0,
            may_send,
            application_ended: false,
            end_announced: false,
            peer_ended: false,
            shut: false,
            pending: VecDeque::new(),
            pending_frames: VecDeque::new(),
            on_link: 0,
            may_come,
            owed: 0,
        }
    }

    /// Returns the size of the next ticket, at most one frame. `None` if no bytes wait without a ticket, or the window is
    /// used up.
    pub fn ticket(&mut self, frame_bytes: usize) -> Option<usize> {
        let waiting = waiting_bytes(self.socket.as_ref()?);
        let bytes = waiting.saturating_sub(self.ticketed).min(frame_bytes).min(self.may_send);
        if bytes == 0 {
            return None;
        }
        self.ticketed += bytes;
        self.may_send -= bytes;
        Some(bytes)
    }

    /// Reads the bytes of a ticket.
    ///
    /// # Errors
    /// When the application has broken off, which discards its unread bytes.
    pub fn redeem(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.ticketed = self.ticketed.saturating_sub(into.len());
        match self.socket.as_mut() {
            Some(socket) => socket.read_exact(into),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns whether everything was sent and only the end of the stream is still to be sent.
    pub fn is_to_end(&self) -> bool {
        let waits = || self.socket.as_ref().is_some_and(|socket| waiting_bytes(socket) > 0);
        self.application_ended && !self.end_announced && self.ticketed == 0 && !waits()
    }

    /// Counts a frame against the window.
    ///
    /// # Errors
    /// The violation, if the peer may not send this frame.
    pub fn admit(&mut self, class: Class, bytes: usize) -> Result<(), &'static str> {
        if self.class != class {
            return Err("sent a frame of another class than its stream's");
        }
        if self.peer_ended {
            return Err("sent data after it had ended the connection");
        }
        self.may_come = self.may_come.checked_sub(bytes).ok_or(BEYOND_WINDOW)?;
        Ok(())
    }

    /// Passes a frame to the application. Returns how many of its bytes must wait.
    pub fn deliver(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = if self.pending.is_empty() { self.give(bytes)? } else { 0 };
        let wait = bytes.len() - taken;
        if wait > 0 {
            self.pending.extend(&bytes[taken..]);
            self.pending_frames.push_back(wait);
        }
        Ok(wait)
    }

    /// Passes waiting bytes to the application. Returns the number of frames that this completes.
    pub fn flush(&mut self) -> io::Result<usize> {
        let mut frames = 0;
        while !self.pending.is_empty() {
            let (front, _) = self.pending.as_slices();
            let front: &[u8] = front;
            let taken = match self.socket.as_ref() {
                Some(socket) => write(socket, front)?,
                None => 0,
            };
            if taken == 0 {
                break;
            }
            self.owed += taken;
            self.pending.drain(..taken);
            let mut left = taken;
            while let Some(frame) = self.pending_frames.front_mut() {
                let of_it = left.min(*frame);
                (*frame, left) = (*frame - of_it, left - of_it);
                if *frame > 0 {
                    break;
                }
                self.pending_frames.pop_front();
                frames += 1;
            }
        }
        if self.pending.is_empty() && self.pending.capacity() > 64 << 10 {
            self.pending = VecDeque::new();
        }
        if self.peer_ended && !self.shut && self.on_link == 0 && self.pending.is_empty() {
            if let Some(socket) = &self.socket {
                self.shut = true;
                // If the application is gone already, there is nothing to shut down.
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
        Ok(frames)
    }

    fn give(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(socket) = &self.socket else { return Ok(0) };
        let mut taken = 0;
        while taken < bytes.len() {
            match write(socket, &bytes[taken..])? {
                0 => break,
                more => taken += more,
            }
        }
        self.owed += taken;
        Ok(taken)
    }

    /// Returns the bytes that wait for the application.
    pub fn held(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether both sides have ended and everything was accepted.
    pub fn is_over(&self) -> bool {
        self.end_announced && self.shut
    }

    /// Returns the frames that are not wholly accepted. Their credits must be returned when the connection is closed.
    pub fn frames_left(&self) -> usize {
        self.pending_frames.len()
    }
}

/// Writes once. Returns 0 if the socket is full.
fn write(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match linux::send_both(socket, bytes, &[], false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
