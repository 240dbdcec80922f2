//! Messages between the command and its guard: a length of four bytes, then text.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;

use crate::processes::Pid;

const LONGEST: u32 = 1 << 26;

pub fn list(pids: BTreeSet<Pid>) -> String {
    pids.iter().map(Pid::to_string).collect::<Vec<_>>().join(" ")
}

pub fn send(socket: RawFd, text: &str) -> io::Result<()> {
    let mut bytes = (text.len() as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        // SAFETY: a live buffer of that length.
        let sent = unsafe { libc::send(socket, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => rest = &rest[sent..],
            Err(_) => interrupted()?,
        }
    }
    Ok(())
}

pub fn receive(socket: RawFd) -> io::Result<String> {
    let mut length = [0; 4];
    fill(socket, &mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    fill(socket, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn fill(socket: RawFd, mut rest: &mut [u8]) -> io::Result<()> {
    while !rest.is_empty() {
        // SAFETY: a live buffer of that length.
        let received = unsafe { libc::recv(socket, rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(received) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => rest = &mut rest[received..],
            Err(_) => interrupted()?,
        }
    }
    Ok(())
}

/// Returns the last error, unless a signal merely interrupted the call.
fn interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}
