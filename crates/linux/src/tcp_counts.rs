//! Kernel counters of other processes' TCP connections (`sock_diag(7)`), and borrowing of such sockets.
//!
//! Queries need no privilege within one network namespace. Source: linux/inet_diag.h, linux/sock_diag.h; the libc
//! crate has none of their structures.

use std::fs;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use crate::processes::Pid;
use crate::watchdog::process_descriptor;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const ESTABLISHED: u32 = 1 << 1;
const ALL_STATES: u32 = u32::MAX;
const HEADER: usize = 16; // nlmsghdr
const ID: usize = 48; // inet_diag_sockid
const MESSAGE: usize = 72; // inet_diag_msg
const INODE_AT: usize = 68;
const ACKNOWLEDGED_AT: usize = 120; // tcpi_bytes_acked
const RECEIVED_AT: usize = 128; // tcpi_bytes_received

/// A connection as the kernel identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    family: u8,
    id: [u8; ID],
    /// Inode of the socket, as shown in `/proc/PID/fd`.
    pub inode: u32,
}

/// Bytes moved by a connection since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that the other end's TCP has acknowledged.
    pub acknowledged: u64,
    /// Bytes that TCP has received, including those not yet read.
    pub received: u64,
}

/// A netlink socket for queries.
#[derive(Debug)]
pub struct TcpCounts {
    socket: OwnedFd,
}

impl TcpCounts {
    /// Opens the socket.
    ///
    /// # Errors
    /// When the kernel lacks `CONFIG_INET_DIAG`, or in a sandbox.
    pub fn open() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        Ok(Self { socket: socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))? })
    }

    /// Finds the established connection from this local port to this address and port, if there is one.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn find(&self, local_port: u16, to: (IpAddr, u16)) -> io::Result<Option<Connection>> {
        // A dual-stack socket is listed as IPv6, whatever it is connected to.
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            let mut id = [0; ID];
            id[0..2].copy_from_slice(&local_port.to_be_bytes());
            id[2..4].copy_from_slice(&to.1.to_be_bytes());
            let mut found = None;
            self.ask(family, &id, ESTABLISHED, libc::NLM_F_DUMP as u16, &mut |message| {
                let is_it = matches(message, local_port, to);
                if is_it {
                    let mut id = [0; ID];
                    id.copy_from_slice(&message[4..4 + ID]);
                    found = Some(Connection { family, id, inode: u32_at(message, INODE_AT) });
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the bytes moved by a connection.
    ///
    /// # Errors
    /// `NotFound` when it has ended.
    pub fn moved(&self, connection: &Connection) -> io::Result<Moved> {
        let mut found = None;
        self.ask(connection.family, &connection.id, ALL_STATES, 0, &mut |message| {
            found = (message[1] == 1).then(|| moved_in(&message[MESSAGE..])).flatten();
        })?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn ask(&self, family: u8, id: &[u8; ID], states: u32, flags: u16, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut request = Vec::with_capacity(HEADER + 8 + ID);
        request.extend(((HEADER + 8 + ID) as u32).to_ne_bytes());
        request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request.extend((libc::NLM_F_REQUEST as u16 | flags).to_ne_bytes());
        request.extend([0; 8]); // sequence and sender: only one request is pending
        request.extend([family, libc::IPPROTO_TCP as u8, 1 << (INET_DIAG_INFO - 1), 0]);
        request.extend(states.to_ne_bytes());
        request.extend(id);
        send(&self.socket, &request, SendFlags::empty())?;
        let mut buffer = vec![0u8; if flags == 0 { 1024 } else { 32 << 10 }];
        loop {
            let (got, _) = retry_on_intr(|| recv(&self.socket, &mut buffer[..], RecvFlags::empty()))?;
            if read_answer(&buffer[..got], each)? || flags == 0 {
                return Ok(());
            }
        }
    }
}

/// Passes each connection of an answer to `each`. Returns whether this was the last part of the answer.
fn read_answer(mut bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    while bytes.len() >= HEADER {
        let length = (u32_at(bytes, 0) as usize).clamp(HEADER, bytes.len());
        match i32::from(u16::from_ne_bytes([bytes[4], bytes[5]])) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code = if length >= HEADER + 4 { u32_at(bytes, HEADER) as i32 } else { -libc::EIO };
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ if length >= HEADER + MESSAGE => each(&bytes[HEADER..length]),
            _ => {}
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

fn matches(message: &[u8], local_port: u16, (address, port): (IpAddr, u16)) -> bool {
    let (own, other) = (u16::from_be_bytes([message[4], message[5]]), u16::from_be_bytes([message[6], message[7]]));
    let to = &message[24..40]; // idiag_dst
    let reached = match address {
        IpAddr::V4(v4) => to[..4] == v4.octets() || to == v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => to == v6.octets(),
    };
    own == local_port && other == port && reached
}

fn moved_in(mut attributes: &[u8]) -> Option<Moved> {
    while attributes.len() >= 4 {
        let length = u16::from_ne_bytes([attributes[0], attributes[1]]) as usize;
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let info = attributes.get(4..length)?;
        if kind == INET_DIAG_INFO {
            let at = |at: usize| info.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
            return Some(Moved { acknowledged: at(ACKNOWLEDGED_AT)?, received: at(RECEIVED_AT)? });
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

/// Returns a second descriptor of another process's socket. Options set on it apply to that process too.
///
/// # Errors
/// When that process may not be traced or has no such socket; sandboxes refuse it too.
pub fn borrow_socket(process: Pid, inode: u32) -> io::Result<TcpStream> {
    let wanted = format!("socket:[{inode}]");
    let descriptor = fs::read_dir(format!("/proc/{process}/fd"))?
        .flatten()
        .find(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == wanted.as_str()))
        .and_then(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .ok_or(io::ErrorKind::NotFound)?;
    let process = process_descriptor(process)?;
    Ok(TcpStream::from(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_was_sent_is_acknowledged_at_one_end_and_received_at_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let mut here = TcpStream::connect(at).expect("reachable");
        let (mut there, from) = listener.accept().expect("the caller");
        here.write_all(&[7; 1000]).expect("room");
        there.read_exact(&mut [0; 1000]).expect("all of it");
        let counts = TcpCounts::open().expect("sock_diag");
        let ours = counts.find(from.port(), (at.ip(), at.port())).expect("an answer").expect("established");
        let theirs = counts.find(at.port(), (from.ip(), from.port())).expect("an answer").expect("established");
        assert_eq!(counts.moved(&theirs).expect("alive").received, 1000);
        assert!(counts.moved(&ours).expect("alive").acknowledged >= 1000);
        let inode = fs::metadata(format!("/proc/self/fd/{}", here.as_raw_fd())).expect("open").ino();
        assert_eq!(u64::from(ours.inode), inode);
        drop((here, there));
        // The kernel may still have the last packets of the closed connection to deliver.
        let gone = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            counts.moved(&ours).err()
        });
        assert_eq!(gone.expect("closed").kind(), io::ErrorKind::NotFound);
        assert_eq!(counts.find(1, (at.ip(), at.port())).expect("an answer"), None);
    }

    #[test]
    fn a_borrowed_socket_is_the_same_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("reachable");
        let inode = fs::metadata(format!("/proc/self/fd/{}", here.as_raw_fd())).expect("open").ino() as u32;
        let Ok(borrowed) = borrow_socket(std::process::id() as Pid, inode) else { return }; // a sandbox
        borrowed.set_nodelay(true).expect("an open socket");
        assert!(here.nodelay().expect("an open socket"));
        assert!(borrow_socket(std::process::id() as Pid, u32::MAX).is_err());
    }

    #[test]
    fn answers_that_are_cut_short_are_no_answers() {
        let mut seen = 0;
        for length in 0..200 {
            let mut bytes = vec![0u8; length];
            if length >= 4 {
                bytes[0..4].copy_from_slice(&(length as u32 + 7).to_ne_bytes());
            }
            let _ = read_answer(&bytes, &mut |_| seen += 1);
            let _ = moved_in(&bytes);
        }
        assert!(seen > 0, "whole ones are handed over");
    }
}
