//! The dialling side of the handshake: connects to a listener and authenticates both ends.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::limits::PATIENCE;
use crosswind_access::place::{host, resolve};
use crosswind_access::token::{self, End, Transcript};
use crosswind_access::transport::is_tls;
use crosswind_access::{Access, Transport};
use crosswind_agent::frame::{self, Frame, LARGEST_FRAME, Refusal};
use crosswind_agent::settings::Admission;

use crate::error::LiveError;
use crate::protocol::PROTOCOL;

/// Pause between two attempts to reach a parent that is not listening yet.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for a parent's next bytes during the handshake. Its listener allows no more, so by then the parent or the
/// route to it may be gone.
const SILENCE: Duration = PATIENCE;
/// Handshakes of this process with parents at a time. If all nodes of a process began at once, they would fill their
/// parent's queue, and those at its end would give up and begin again.
const AT_ONCE: usize = 16;
static HANDSHAKES: Slots = Slots { taken: Mutex::new(0), freed: Condvar::new() };
/// Largest code accepted from a parent, bytes.
const LARGEST_CODE: usize = 1 << 30;

/// Limits how many threads do something at a time.
struct Slots {
    taken: Mutex<usize>,
    freed: Condvar,
}

struct Slot<'a>(&'a Slots);

impl Slots {
    /// Takes a slot, once one is free or the time is over.
    fn take(&self, until: Instant) -> Slot<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let is_full = |taken: &mut usize| *taken >= AT_ONCE;
        let waited = self.freed.wait_timeout_while(taken, left, is_full);
        *waited.unwrap_or_else(PoisonError::into_inner).0 += 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

/// A connection that a parent has accepted.
pub(crate) struct Welcome {
    pub stream: Transport,
    pub admission: Admission,
    pub code: Vec<u8>,
    pub rest: Vec<u8>,
}

/// A listener that has accepted this end and has proved that it knows the token.
pub(crate) struct Entered {
    pub stream: Transport,
    /// Payload of the welcome frame.
    pub settings: Vec<u8>,
    pub rest: Vec<u8>,
}

/// Identity that the peer's certificate must prove.
#[derive(Clone, Copy)]
pub(crate) enum PeerRole {
    /// A parent, whose code this process may run. The platform in its welcome names which node it must be.
    Parent,
    /// The host that the address belongs to.
    Host,
}

/// Parameters of one handshake, as seen by the dialling end.
pub(crate) struct Handshake<'a> {
    pub address: &'a str,
    pub role: PeerRole,
    /// Name of this end, followed by its description in `about`.
    pub name: &'a str,
    pub about: &'a str,
    pub access: &'a Access,
    /// Time limit for dialling and the handshake together.
    pub patience: Duration,
    /// Returns whether the connection is still wanted; checked before each attempt.
    pub still: &'a dyn Fn() -> bool,
}

impl Handshake<'_> {
    /// Connects to the parent of a farm and is accepted. Retries until the timeout while no listener answers.
    pub fn dial(&self) -> Result<Welcome, LiveError> {
        self.again(&farm)
    }

    /// Does the same for any listener. The caller handles what follows the handshake.
    pub fn enter(&self) -> Result<Entered, LiveError> {
        self.again(&|talk, settings| talk.over(settings))
    }

    /// Does the same over an existing connection, without retries.
    pub fn enter_over(&self, stream: TcpStream) -> Result<Entered, LiveError> {
        self.access.permits(self.address)?;
        let (talk, settings) = self.prove(stream, Instant::now() + self.patience)?;
        talk.over(settings)
    }

    fn again<T>(&self, then: Then<'_, T>) -> Result<T, LiveError> {
        self.access.permits(self.address)?;
        let until = Instant::now() + self.patience;
        loop {
            if !(self.still)() {
                return Err(LiveError::Interrupted);
            }
            let slot = matches!(self.role, PeerRole::Parent).then(|| HANDSHAKES.take(until));
            let connected = connect(self.address, until).map(|stream| self.prove(stream, until));
            drop(slot);
            match connected {
                Ok(proved) => match proved.and_then(|(talk, said)| then(talk, said)) {
                    // A parent that closes the connection or is cut off during the handshake may come back.
                    Err(LiveError::Unreachable { .. }) if Instant::now() + AGAIN < until => {}
                    result => return result,
                },
                Err(source) if Instant::now() + AGAIN >= until => {
                    return Err(LiveError::Unreachable { peer: self.address.into(), source });
                }
                Err(_) => {}
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Authenticates both ends. With TLS, certificates are checked first, so that nothing is sent to an unauthenticated
    /// peer.
    fn prove(&self, stream: TcpStream, until: Instant) -> Result<(Conversation<'_>, Vec<u8>), LiveError> {
        let (address, name, access) = (self.address, self.name, self.access);
        let unreachable = |source| LiveError::Unreachable { peer: address.into(), source };
        let stream = Transport::dialled(stream, access.tls()).map_err(unreachable)?;
        let silence = if matches!(self.role, PeerRole::Parent) { SILENCE } else { self.patience };
        let mut talk = Conversation { stream, address, name, bytes: Vec::new(), until, silence };
        talk.be_patient()?;
        talk.stream.shake_hands().map_err(|error| talk.failed(error))?;
        let expected = match self.role {
            PeerRole::Parent => talk.stream.may_send_code(),
            PeerRole::Host => talk.stream.names(host(address)),
        };
        expected.map_err(|why| talk.refused(why))?;
        let caller = token::random().map_err(LiveError::system("drawing a nonce"))?;
        talk.write(&Greeting { word: 0, nonce: caller }.encode(PROTOCOL))?;
        let listener = talk.greeted()?;
        let channel = talk.stream.channel().map_err(|error| talk.refused(error))?;
        let transcript = Transcript { protocol: PROTOCOL, caller, listener, channel };
        let mut proof = Vec::new();
        let own = access.proof(&transcript, End::Caller, name);
        Frame::Prove { proof: own, name: name.into(), about: self.about.into() }.encode(0, &mut proof);
        talk.write(&proof)?;
        let settings = match talk.frame()? {
            Frame::Welcome { proof, settings } if access.accepts(&transcript, End::Listener, name, &proof) => settings,
            Frame::Welcome { .. } => return Err(talk.refused("does not know the token")),
            Frame::Refused { refusal, why } => return Err(talk.refused_by_peer(refusal, &why)),
            _ => return Err(talk.refused("sent an unexpected frame")),
        };
        Ok((talk, settings))
    }
}

type Then<'a, T> = &'a dyn Fn(Conversation<'_>, Vec<u8>) -> Result<T, LiveError>;

fn connect(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for place in resolve(address)? {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&place, left.min(Duration::from_secs(5))) {
            // On one machine, connecting to a port without a listener may connect a socket to itself (TCP's simultaneous
            // open), which would then hold the port that the listener needs.
            Ok(stream) if stream.local_addr()? == place => last = io::ErrorKind::ConnectionRefused.into(),
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

struct Conversation<'a> {
    stream: Transport,
    address: &'a str,
    name: &'a str,
    bytes: Vec<u8>,
    until: Instant,
    /// Longest wait for the peer's next bytes.
    silence: Duration,
}

impl Conversation<'_> {
    fn refused(&self, why: impl ToString) -> LiveError {
        LiveError::refused(self.address, why)
    }

    fn refused_by_peer(&self, refusal: Refusal, why: &str) -> LiveError {
        LiveError::Refused { peer: self.address.into(), refusal, why: format!("refused this end: {why}") }
    }

    fn failed(&self, source: io::Error) -> LiveError {
        let source = match source.kind() {
            io::ErrorKind::InvalidData => return self.refused(source),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")
            }
            _ => source,
        };
        LiveError::Unreachable { peer: self.address.into(), source }
    }

    fn be_patient(&mut self) -> Result<(), LiveError> {
        let until = self.until.min(Instant::now() + self.silence);
        self.stream.wait_until(Some(until)).map_err(|error| self.failed(error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LiveError> {
        self.stream.write_all(bytes).map_err(|error| self.failed(error))
    }

    fn more(&mut self) -> Result<(), LiveError> {
        self.be_patient()?;
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => {
                self.bytes.extend_from_slice(&buffer[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the nonce in the peer's greeting.
    fn greeted(&mut self) -> Result<[u8; 32], LiveError> {
        loop {
            // A parent that refuses immediately sends a frame instead of a greeting.
            match Greeting::decode(&self.bytes, PROTOCOL) {
                Ok(Some(greeting)) => {
                    self.bytes.drain(..GREETING_BYTES);
                    return Ok(greeting.nonce);
                }
                Ok(None) => self.more()?,
                Err(error) => {
                    return Err(match frame::decode(&self.bytes, LARGEST_FRAME) {
                        Ok(Some(frame::Decoded { frame: Frame::Refused { refusal, why }, .. })) => {
                            self.refused_by_peer(refusal, &why)
                        }
                        _ if is_tls(self.bytes[0]) => self.refused("speaks TLS, and this end does not"),
                        _ => self.refused(error),
                    });
                }
            }
        }
    }

    /// Ends the handshake and returns the connection.
    fn over(mut self, settings: Vec<u8>) -> Result<Entered, LiveError> {
        self.stream.wait_until(None).map_err(|error| self.failed(error))?;
        Ok(Entered { stream: self.stream, settings, rest: self.bytes })
    }

    fn frame(&mut self) -> Result<Frame, LiveError> {
        loop {
            match frame::decode(&self.bytes, LARGEST_FRAME) {
                Ok(Some(decoded)) => {
                    self.bytes.drain(..decoded.used);
                    return Ok(decoded.frame);
                }
                Ok(None) => self.more()?,
                Err(error) => return Err(self.refused(error)),
            }
        }
    }
}

/// Reads the rest of a farm parent's welcome: the run and, if there is any, the code.
fn farm(mut talk: Conversation<'_>, settings: Vec<u8>) -> Result<Welcome, LiveError> {
    let admission: Admission = serde_json::from_slice(&settings).map_err(|error| talk.refused(error))?;
    let own = admission.run.platform.nodes.iter().find(|node| node.name == talk.name);
    let parent = own.and_then(|node| node.parent.as_deref()).unwrap_or_default();
    talk.stream.names(parent).map_err(|why| talk.refused(why))?;
    let mut code = Vec::new();
    let mut last = !admission.code;
    while !last {
        let Frame::Code { last: end, piece } = talk.frame()? else { return Err(talk.refused("sent no code")) };
        if code.len() + piece.len() > LARGEST_CODE {
            return Err(talk.refused(format!("sent more than {LARGEST_CODE} bytes of code")));
        }
        code.extend(piece);
        last = end;
    }
    let Entered { stream, rest, .. } = talk.over(Vec::new())?;
    Ok(Welcome { stream, admission, code, rest })
}
