//! System calls that only the filter needs: epoll, the number of unread bytes of a socket, and marks of packets.

use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

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
pub(super) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes an integer only; a descriptor that was just opened has no other owner.
        let fd = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { fd, events: Vec::with_capacity(AT_ONCE) })
    }

    /// Watches a connection in both directions and reports each change once. Closing the connection ends the watch.
    pub fn watch_both(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.add(fd, token, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET)
    }

    /// Watches for input, and reports it as long as it is available.
    pub fn watch_input(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.add(fd, token, libc::EPOLLIN)
    }

    fn add(&self, fd: RawFd, token: u64, what: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: what as u32, u64: token };
        // SAFETY: both descriptors are open, and the pointer is to a live local.
        let result = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for events, at most for the timeout.
    pub fn wait(&mut self, timeout_ns: Option<u64>, announced: &mut Vec<Event>) -> io::Result<()> {
        let time = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let time: *const libc::timespec = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the buffer has room for as many events as are asked for; the time is null or a live local.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                AT_ONCE as libc::c_int,
                time,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        // SAFETY: the kernel has written `count` events.
        unsafe { self.events.set_len(count as usize) };
        announced.extend(self.events.iter().map(|event| {
            let (bits, token) = (event.events as i32, event.u64);
            let ended = bits & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0;
            Event { token, readable: bits & libc::EPOLLIN != 0 || ended, writable: bits & libc::EPOLLOUT != 0, ended }
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
    let mut bytes = 0i32;
    // SAFETY: FIONREAD writes one int, to a live local.
    let result = unsafe { libc::ioctl(stream.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    if result == 0 { bytes.max(0) as usize } else { 0 }
}

fn set(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live local of the size that is passed along.
    let result = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Connects with a mark from the first packet on: the type-of-service byte, whose upper six bits are the DSCP.
pub(crate) fn connect_marked(to: SocketAddr, tos: u8) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes integers only; a descriptor that was just opened has no other owner.
    let stream = unsafe {
        let fd = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        TcpStream::from_raw_fd(fd)
    };
    let (level, name) =
        if to.is_ipv4() { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
    set(stream.as_raw_fd(), level, name, i32::from(tos))?;
    let (address, size) = kernels_address(to);
    // SAFETY: the address is live, and `size` is its length.
    if unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), size) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stream)
}

fn kernels_address(to: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero addresses are valid, and the storage is large and aligned enough for either kind.
    unsafe {
        let mut storage: libc::sockaddr_storage = zeroed();
        let size = match to {
            SocketAddr::V4(to) => {
                let place = (&raw mut storage).cast::<libc::sockaddr_in>();
                (*place).sin_family = libc::AF_INET as libc::sa_family_t;
                (*place).sin_port = to.port().to_be();
                (*place).sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(to) => {
                let place = (&raw mut storage).cast::<libc::sockaddr_in6>();
                (*place).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*place).sin6_port = to.port().to_be();
                (*place).sin6_addr.s6_addr = to.ip().octets();
                (*place).sin6_scope_id = to.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, size as libc::socklen_t)
    }
}

/// Returns the mark of a connection's first packet on arrival. `None` if the kernel does not report it (IPv6).
pub(super) fn arrived_mark(stream: &TcpStream) -> Option<u8> {
    set(stream.as_raw_fd(), libc::IPPROTO_IP, libc::IP_RECVTOS, 1).ok()?;
    let mut buffer = [0u8; 128];
    let mut size = buffer.len() as libc::socklen_t;
    const IP_PKTOPTIONS: i32 = 9; // linux/in.h
    // SAFETY: the buffer is live and its size is passed along.
    let result = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_IP, IP_PKTOPTIONS, buffer.as_mut_ptr().cast(), &raw mut size)
    };
    if result != 0 {
        return None;
    }
    // Control messages: length (a machine word), level, type, data.
    const WORD: usize = size_of::<usize>();
    let (mut at, end) = (0, (size as usize).min(buffer.len()));
    while at + WORD + 8 < end {
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
        let mut epoll = Epoll::new().expect("a descriptor");
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
