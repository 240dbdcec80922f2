//! Messages between the command and its guard: a length of four bytes, then text.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;

use rustix::io::retry_on_intr;
use rustix::net::SendFlags;

use crate::processes::Pid;

const LONGEST: u32 = 1 << 26;

pub fn list(pids: BTreeSet<Pid>) -> String {
    pids.iter().map(Pid::to_string).collect::<Vec<_>>().join(" ")
}

pub fn send(socket: &UnixStream, text: &str) -> io::Result<()> {
    let mut bytes = (text.len() as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let sent = retry_on_intr(|| rustix::net::send(socket, rest, SendFlags::NOSIGNAL))?;
        rest = &rest[sent..];
    }
    Ok(())
}

pub fn receive(mut socket: &UnixStream) -> io::Result<String> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    socket.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}
