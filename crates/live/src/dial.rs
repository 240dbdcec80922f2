//! The dialling end: a child asks its parent to be let in, and makes sure that it is the parent.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::limits::PATIENCE;
use crosswind_access::place::{host, resolve};
use crosswind_access::token::{self, End, Meeting};
use crosswind_access::transport::is_tls;
use crosswind_access::{Access, Transport};
use crosswind_agent::frame::{self, Frame, LARGEST_FRAME};
use crosswind_agent::settings::Admission;

use crate::error::LiveError;
use crate::protocol::PROTOCOL;

/// Between two attempts to reach a parent that is not there yet.
const AGAIN: Duration = Duration::from_millis(100);
/// A parent that says nothing for so long while it lets us in, or the way to it, may be gone: its listener gives us no longer.
const SILENCE: Duration = PATIENCE;
/// Most code that is taken, bytes.
const LARGEST_CODE: usize = 1 << 30;

/// A parent that let us in.
pub(crate) struct Welcome {
    pub stream: Transport,
    pub admission: Admission,
    pub code: Vec<u8>,
    pub rest: Vec<u8>,
}

/// A listener that has accepted this end and has shown the token.
pub(crate) struct Entered {
    pub stream: Transport,
    /// What came with the welcome.
    pub settings: Vec<u8>,
    pub rest: Vec<u8>,
}

/// What must be listening at an address.
#[derive(Clone, Copy)]
pub(crate) enum PeerRole {
    /// A parent, which may have us run code; which one, the platform says that it sends.
    Parent,
    /// The host that the address belongs to.
    Host,
}

/// What this end sends to be let in.
pub(crate) struct Handshake<'a> {
    /// HOST:PORT.
    pub address: &'a str,
    pub role: PeerRole,
    /// Name of this end, and what it tells of itself.
    pub name: &'a str,
    pub about: &'a str,
    pub access: &'a Access,
    /// How long to wait for a listener that is not there yet.
    pub patience: Duration,
    /// Whether it is still wanted.
    pub still: &'a dyn Fn() -> bool,
}

impl Handshake<'_> {
    /// Connects to the parent of a farm and is accepted; retries until the timeout where no listener is there yet.
    pub fn dial(&self) -> Result<Welcome, LiveError> {
        self.again(&farm)
    }

    /// The same for any listener: what follows the handshake is the caller's.
    pub fn enter(&self) -> Result<Entered, LiveError> {
        self.again(&|talk, settings| talk.over(settings))
    }

    /// The same over a connection that was made already.
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
            match connect(self.address, until) {
                Ok(stream) => match self.prove(stream, until).and_then(|(talk, said)| then(talk, said)) {
                    // A parent that ends, or is cut off, while we stand at its listener may be one that comes back.
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

    /// Both ends authenticate: certificates first, where there are some, so that nothing is told to an unauthenticated peer.
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
        talk.say(&Greeting { word: 0, nonce: caller }.encode(PROTOCOL))?;
        let listener = talk.greeted()?;
        let meeting = Meeting { protocol: PROTOCOL, caller, listener, channel: talk.stream.channel() };
        let mut proof = Vec::new();
        let own = access.proof(&meeting, End::Caller, name);
        Frame::Prove { proof: own, name: name.into(), about: self.about.into() }.encode(0, &mut proof);
        talk.say(&proof)?;
        let settings = match talk.frame()? {
            Frame::Welcome { proof, settings } if access.accepts(&meeting, End::Listener, name, &proof) => settings,
            Frame::Welcome { .. } => return Err(talk.refused("does not know the token")),
            Frame::Refused { why } => return Err(talk.refused(format!("refuses us: {why}"))),
            _ => return Err(talk.refused("said something else than it should")),
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
    /// The longest that nothing may be heard.
    silence: Duration,
}

impl Conversation<'_> {
    fn refused(&self, why: impl ToString) -> LiveError {
        LiveError::Refused { peer: self.address.into(), why: why.to_string() }
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

    fn say(&mut self, bytes: &[u8]) -> Result<(), LiveError> {
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

    /// What the other end drew at random, from its greeting.
    fn greeted(&mut self) -> Result<[u8; 32], LiveError> {
        loop {
            // A parent that refuses at once says so in a frame, which is no greeting.
            match Greeting::decode(&self.bytes, PROTOCOL) {
                Ok(Some(greeting)) => {
                    self.bytes.drain(..GREETING_BYTES);
                    return Ok(greeting.nonce);
                }
                Ok(None) => self.more()?,
                Err(error) => {
                    let said = match frame::decode(&self.bytes, LARGEST_FRAME) {
                        Ok(Some(frame::Decoded { frame: Frame::Refused { why }, .. })) => format!("refuses us: {why}"),
                        _ if is_tls(self.bytes[0]) => "speaks TLS, and this end does not".into(),
                        _ => error.to_string(),
                    };
                    return Err(self.refused(said));
                }
            }
        }
    }

    /// The connection, for whatever comes now.
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

/// What the parent of a farm says beyond: the run, and the code.
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
