//! Where a stream's messages arrive, and its answers: reads what it was told to expect, and says when all of it is there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender};

use crosswind_linux::now_ns;

/// A message, or an answer, that will come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub operation: u64,
    pub bytes: u64,
    /// What is sent back when it is there.
    pub answer: Option<u64>,
}

/// A message, or an answer where there are answers, has arrived whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub operation: u64,
    pub at_ns: u64,
}

/// What is read and written at a time.
const PIECE: usize = 64 << 10;

/// Reads what is expected until nothing more is, or the connection ends.
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

/// Writes so many bytes; false if the other end takes no more.
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
