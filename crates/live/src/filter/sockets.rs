//! System calls that only the filter needs: epoll, the number of unread bytes of a socket, and marks of packets.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use crosswind_linux::option;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// Maximum number of events per system call.
const AT_ONCE: usize = 256;

/// An event of one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// The token registered with the socket.
    pub token: u64,
    /// Bytes have arrived, or the other end has closed its side.
    pub readable: bool,
    pub writable: bool,
    /// The other end sends no more, or the connection is broken.
    pub ended: bool,
}

/// Waits for events of many sockets.
#[derive(Debug)]
pub(super) struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches a connection in both directions and reports each change once. Closing the connection ends the watch.
    pub fn watch_both(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.add(fd, token, EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)
    }

    /// Watches for input, and reports it as long as it is available.
    pub fn watch_input(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.add(fd, token, EventFlags::IN)
    }

    fn add(&self, fd: RawFd, token: u64, what: EventFlags) -> io::Result<()> {
        // SAFETY: the caller's socket is open during the call.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        Ok(epoll::add(&self.0, socket, EventData::new_u64(token), what)?)
    }

    /// Waits for events, at most for the timeout.
    pub fn wait(&self, timeout_ns: Option<u64>, announced: &mut Vec<Event>) -> io::Result<()> {
        let time =
            timeout_ns.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ });
        let mut room = [MaybeUninit::uninit(); AT_ONCE];
        let (events, _) = match epoll::wait(&self.0, &mut room, time.as_ref()) {
            Err(Errno::INTR) => return Ok(()),
            other => other?,
        };
        announced.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            let (readable, writable) = (flags.contains(EventFlags::IN) || ended, flags.contains(EventFlags::OUT));
            Event { token: data.u64(), readable, writable, ended }
        }));
        Ok(())
    }
}

/// Returns whether the error means that no descriptor is left.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Returns the number of bytes that have arrived and were not read yet.
pub(super) fn waiting_bytes(stream: &TcpStream) -> usize {
    ioctl_fionread(stream).map_or(0, |bytes| bytes as usize)
}

/// Connects with a mark from the first packet on: the type-of-service byte, whose upper six bits are the DSCP.
pub(crate) fn connect_marked(to: SocketAddr, tos: u8) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    match to {
        SocketAddr::V4(_) => sockopt::set_ip_tos(&socket, tos)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_tclass(&socket, u32::from(tos))?,
    }
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// Returns the mark of a connection's first packet on arrival. `None` if the kernel does not report it (IPv6).
pub(super) fn arrived_mark(stream: &TcpStream) -> Option<u8> {
    const IP_PKTOPTIONS: i32 = 9; // linux/in.h
    sockopt::set_ip_recvtos(stream, true).ok()?;
    let mut buffer = [0u8; 128];
    let buffer = option(stream, libc::IPPROTO_IP, IP_PKTOPTIONS, &mut buffer).ok()?;
    // Control messages: length (a machine word), level, type, data.
    const WORD: usize = size_of::<usize>();
    let mut at = 0;
    while at + WORD + 8 < buffer.len() {
        let length = usize::from_ne_bytes(buffer[at..at + WORD].try_into().ok()?);
        let field = |from: usize| buffer[from..from + 4].try_into().map(i32::from_ne_bytes);
        let (level, kind) = (field(at + WORD).ok()?, field(at + WORD + 4).ok()?);
        if level == libc::IPPROTO_IP && kind == libc::IP_TOS {
            return Some(buffer[at + WORD + 8]);
        }
        if length < WORD + 8 {
            return None;
        }
        at += length.next_multiple_of(WORD);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_mark_arrives_with_the_first_packet() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        for tos in [0, 46 << 2, 8 << 2] {
            let _marked = connect_marked(listener.local_addr().expect("bound"), tos).expect("connects");
            let (accepted, _) = listener.accept().expect("accepts");
            assert_eq!(arrived_mark(&accepted), Some(tos));
        }
    }

    #[test]
    fn a_change_is_told_once_and_what_waits_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut writer = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (reader, _) = listener.accept().expect("accepts");
        let epoll = Epoll::new().expect("a descriptor");
        epoll.watch_both(reader.as_raw_fd(), 7).expect("watched");
        writer.write_all(b"12345").expect("written");
        let mut announced = Vec::new();
        while !announced.iter().any(|event: &Event| event.readable) {
            epoll.wait(None, &mut announced).expect("waits");
        }
        assert!(announced.iter().all(|event| event.token == 7 && !event.ended));
        assert_eq!(waiting_bytes(&reader), 5);
        announced.clear();
        epoll.wait(Some(0), &mut announced).expect("waits");
        assert!(announced.is_empty(), "{announced:?}");
    }
}
