//! The accepting side of the handshake. A connection is unauthenticated until it has proved that it knows the token.
//!
//! An unauthenticated peer costs one descriptor and at most [`LARGEST_UNAUTHENTICATED`] bytes, for at most [`PATIENCE`]. At
//! most [`UNAUTHENTICATED`] are connected at once. An error of one of them ends that connection and no other.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};

use crosswind_access::greeting::{GREETING_BYTES, Greeting, GreetingError};
use crosswind_access::limits::{LARGEST_UNAUTHENTICATED, PATIENCE, UNAUTHENTICATED};
use crosswind_access::token::{self, End, Transcript};
use crosswind_access::transport::is_tls;
use crosswind_access::{Access, Transport};
use crosswind_agent::frame::{self, Frame, Refusal};
use crosswind_linux as linux;

use crate::error::LiveError;
use crate::protocol::PROTOCOL;

const PATIENCE_NS: u64 = PATIENCE.as_nanos() as u64;
/// How long no connection is accepted after one could not be, for want of descriptors or memory, ns.
const PAUSE_NS: u64 = 200_000_000;

/// Connections that the kernel keeps until they are accepted. Beyond it a peer has to try again, after 1 s: the nodes of
/// a wide tree come all at once.
const QUEUE: i32 = 4096;

/// A connection that is not authenticated yet.
struct Unauthenticated {
    stream: Transport,
    peer: String,
    since_ns: u64,
    bytes: Vec<u8>,
    transcript: Option<Transcript>,
}

/// A connection that has proved that it knows the token.
pub(crate) struct AuthenticatedPeer {
    pub stream: Transport,
    pub peer: String,
    pub name: String,
    pub about: String,
    pub rest: Vec<u8>,
    pub proof: [u8; 32],
}

pub(crate) struct Listener {
    listener: TcpListener,
    access: Access,
    unauthenticated: Vec<Unauthenticated>,
    /// Time until which no connection is accepted, ns, because this process has no descriptor left. 0: none.
    paused_until_ns: u64,
}

enum Step {
    Wait,
    Enter { name: String, about: String, used: usize, proof: [u8; 32] },
    Refuse(String),
    Gone,
}

impl Listener {
    pub fn open(address: &str, access: Access) -> Result<Self, LiveError> {
        access.permits(address)?;
        let listening = || LiveError::system(format!("listening on {address}"));
        let listener = TcpListener::bind(address).map_err(listening())?;
        listener.set_nonblocking(true).map_err(listening())?;
        linux::queue_up_to(&listener, QUEUE).map_err(listening())?;
        Ok(Self { listener, access, unauthenticated: Vec::new(), paused_until_ns: 0 })
    }

    /// Returns the HOST:PORT in use.
    pub fn address(&self) -> io::Result<String> {
        self.listener.local_addr().map(|address| address.to_string())
    }

    /// Returns the descriptors to watch: the listening socket, unless [`UNAUTHENTICATED`] peers are pending or no descriptor is
    /// left, then those of the pending peers.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        let accepts = self.unauthenticated.len() < UNAUTHENTICATED && self.paused_until_ns == 0;
        let listener = accepts.then(|| self.listener.as_raw_fd());
        listener.into_iter().chain(self.unauthenticated.iter().map(|peer_stream| peer_stream.stream.fd()))
    }

    /// Returns when the next unauthenticated peer times out, or the next connection may be accepted, ns.
    pub fn due(&self) -> Option<u64> {
        let paused = (self.paused_until_ns > 0).then_some(self.paused_until_ns);
        self.unauthenticated.iter().map(|peer_stream| peer_stream.since_ns + PATIENCE_NS).chain(paused).min()
    }

    /// Accepts connections and advances every handshake. Authenticated peers are returned. Lines for the log go to
    /// `complain`, each with the address of the peer that it is about, if it is about one.
    pub fn attend(&mut self, now_ns: u64, complain: &mut dyn FnMut(Option<&str>, &str)) -> Vec<AuthenticatedPeer> {
        if now_ns >= self.paused_until_ns {
            self.paused_until_ns = 0;
        }
        while self.unauthenticated.len() < UNAUTHENTICATED && self.paused_until_ns == 0 {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    // The connection stays, so the socket would be readable again at once.
                    self.paused_until_ns = now_ns + PAUSE_NS;
                    complain(None, &format!("no connection can be accepted: {error}"));
                    break;
                }
            };
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            if let Ok(stream) = ready.and_then(|()| Transport::accepted(stream, self.access.tls())) {
                let peer = peer.ip().to_string();
                self.unauthenticated.push(Unauthenticated {
                    stream,
                    peer,
                    since_ns: now_ns,
                    bytes: Vec::new(),
                    transcript: None,
                });
            }
        }
        let mut authenticated = Vec::new();
        let mut at = 0;
        while at < self.unauthenticated.len() {
            let peer_stream = &mut self.unauthenticated[at];
            let mut step = peer_stream.step(&self.access);
            if matches!(step, Step::Wait) && now_ns > peer_stream.since_ns + PATIENCE_NS {
                step = Step::Refuse("took too long to show the token".into());
            }
            if matches!(step, Step::Wait) {
                at += 1;
                continue;
            }
            let mut peer_stream = self.unauthenticated.swap_remove(at);
            match step {
                Step::Enter { name, about, used, proof } => {
                    let rest = peer_stream.bytes.split_off(used);
                    authenticated.push(AuthenticatedPeer {
                        stream: peer_stream.stream,
                        peer: peer_stream.peer,
                        name,
                        about,
                        rest,
                        proof,
                    });
                }
                Step::Refuse(why) => {
                    complain(
                        Some(&peer_stream.peer),
                        &format!("refused a connection from {}: {why}", peer_stream.peer),
                    );
                    refuse(peer_stream.stream, Refusal::Final, &why);
                }
                Step::Wait | Step::Gone => {}
            }
        }
        authenticated
    }
}

/// Sends the reason, if the socket accepts it without blocking, and closes the connection.
pub(crate) fn refuse(mut stream: Transport, refusal: Refusal, why: &str) {
    let mut frame = Vec::new();
    Frame::Refused { refusal, why: why.into() }.encode(0, &mut frame);
    // The other end may be gone already.
    let _ = stream.write_all(&frame);
    stream.hang_up();
}

impl Unauthenticated {
    fn step(&mut self, access: &Access) -> Step {
        let ended = match self.read() {
            Ok(ended) => ended,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Step::Refuse(error.to_string()),
            Err(_) => return Step::Gone,
        };
        let step = self.understand(access).unwrap_or_else(Step::Refuse);
        if ended && matches!(step, Step::Wait) { Step::Gone } else { step }
    }

    /// Reads the available bytes, up to the limit for an unauthenticated peer. Returns whether the peer has closed the
    /// connection.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        while self.bytes.len() <= LARGEST_UNAUTHENTICATED + GREETING_BYTES {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn understand(&mut self, access: &Access) -> Result<Step, String> {
        if self.transcript.is_none() {
            let explain = |error: GreetingError| match self.bytes.first() {
                Some(&first) if is_tls(first) => "speaks TLS, and this end does not".to_owned(),
                _ => error.to_string(),
            };
            let Some(greeting) = Greeting::decode(&self.bytes, PROTOCOL).map_err(explain)? else {
                return Ok(Step::Wait);
            };
            let listener = token::random().map_err(|error| error.to_string())?;
            if self.stream.write_all(&Greeting { word: 0, nonce: listener }.encode(PROTOCOL)).is_err() {
                return Ok(Step::Gone);
            }
            let (caller, channel) = (greeting.nonce, self.stream.channel().map_err(|error| error.to_string())?);
            self.transcript = Some(Transcript { protocol: PROTOCOL, caller, listener, channel });
            self.bytes.drain(..GREETING_BYTES);
        }
        let Some(transcript) = self.transcript else { return Ok(Step::Wait) };
        let decoded = frame::decode(&self.bytes, LARGEST_UNAUTHENTICATED).map_err(|error| error.to_string())?;
        let Some(decoded) = decoded else { return Ok(Step::Wait) };
        let Frame::Prove { proof, name, about } = decoded.frame else {
            return Err("sent another frame before it showed the token".into());
        };
        if !access.accepts(&transcript, End::Caller, &name, &proof) {
            return Err("does not know the token".into());
        }
        let proof = access.proof(&transcript, End::Listener, &name);
        Ok(Step::Enter { name, about, used: decoded.used, proof })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use crosswind_linux::children::{exit_now, fork, reap};
    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;

    /// A process without descriptors neither spins nor forgets a connection. In a process of its own: the limit is one of
    /// the whole process.
    #[test]
    fn without_a_descriptor_it_pauses_and_then_goes_on() {
        let token = token::Token::new("a token for tests only").expect("long enough");
        let mut listener = Listener::open("127.0.0.1:0", token.into()).expect("opens");
        let address = listener.address().expect("bound");
        let limited_to = |current| {
            setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(4096) }).expect("a lower limit");
        };
        // SAFETY: the child takes no lock.
        let child = unsafe {
            fork(move || {
                let waiting = TcpStream::connect(&address);
                let mut complaints = 0;
                limited_to(0);
                listener.attend(1, &mut |_, _| complaints += 1);
                listener.attend(2, &mut |_, _| complaints += 1);
                let paused = listener.fds().count() == 0 && listener.due() == Some(1 + PAUSE_NS);
                limited_to(4096);
                listener.attend(1 + PAUSE_NS, &mut |_, _| complaints += 1);
                let accepted = listener.unauthenticated.len() == 1 && listener.fds().count() == 2;
                exit_now(i32::from(!(waiting.is_ok() && paused && accepted && complaints == 1)));
            })
        };
        assert_eq!(reap(child.expect("a process")).and_then(|status| status.exit_status()), Some(0));
    }
}
