//! Receiver of a stream's messages or answers. It reads the expected bytes and reports when a message is complete.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender};

use crosswind_linux::now_ns;

/// A message or an answer that is expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub operation: u64,
    pub bytes: u64,
    /// Size of the answer to send after the message is complete, bytes.
    pub answer: Option<u64>,
}

/// A complete message, or a complete answer for streams with answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub operation: u64,
    pub at_ns: u64,
}

/// Bytes of one read or write.
const PIECE: usize = 64 << 10;

/// Reads expected messages until no more are expected or the connection ends.
pub(super) fn receive(mut stream: TcpStream, expected: &Receiver<Expected>, arrived: &Sender<Arrived>) {
    let mut piece = vec![0; PIECE];
    for Expected { operation, bytes, answer } in expected {
        let mut left = bytes as usize;
        while left > 0 {
            let most = left.min(PIECE);
            match stream.read(&mut piece[..most]) {
                Ok(0) | Err(_) => return,
                Ok(read) => left -= read,
            }
        }
        let done = match answer {
            None => arrived.send(Arrived { operation, at_ns: now_ns() }).is_ok(),
            Some(bytes) => write(&mut stream, bytes, &piece),
        };
        if !done {
            return;
        }
    }
}

/// Writes a number of bytes. Returns false if the connection has failed.
pub(super) fn write(stream: &mut TcpStream, bytes: u64, piece: &[u8]) -> bool {
    let mut left = bytes as usize;
    while left > 0 {
        let now = left.min(piece.len());
        if stream.write_all(&piece[..now]).is_err() {
            return false;
        }
        left -= now;
    }
    true
}
