//! The dialling end: a child asks its parent to be let in, and makes sure that it is the parent.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::limits::PATIENCE;
use crosswind_access::token::{self, End, Meeting};

use crate::error::LiveError;
use crate::frame::{self, Frame, LARGEST_FRAME, PROTOCOL};
use crate::settings::Admission;

/// Between two attempts to reach a parent that is not there yet.
const AGAIN: Duration = Duration::from_millis(100);
/// A parent that says nothing for so long while it lets us in, or the way to it, may be gone: its door gives us no longer.
const SILENCE: Duration = PATIENCE;
/// Most code that is taken, bytes.
const LARGEST_CODE: usize = 1 << 30;

/// A parent that let us in.
pub(crate) struct Welcome {
    pub stream: TcpStream,
    pub admission: Admission,
    pub code: Vec<u8>,
    /// What came beyond.
    pub rest: Vec<u8>,
}

/// Somebody who listened, who let us in and has shown the token.
pub(crate) struct Entered {
    pub stream: TcpStream,
    /// What came with the welcome.
    pub settings: Vec<u8>,
    /// What came beyond.
    pub rest: Vec<u8>,
}

/// Reaches the parent of a farm and is let in; tries again until the time is over where nobody listens yet,
/// as long as it is `still` wanted.
pub(crate) fn dial(
    address: &str,
    name: &str,
    about: &str,
    access: &Access,
    patience: Duration,
    still: &dyn Fn() -> bool,
) -> Result<Welcome, LiveError> {
    knock(address, name, about, access, (patience, SILENCE), still, &farm)
}

/// The same for whoever listens: only the token is shown, and what is said then is the caller's.
pub(crate) fn enter_as(
    address: &str,
    name: &str,
    about: &str,
    access: &Access,
    patience: Duration,
    still: &dyn Fn() -> bool,
) -> Result<Entered, LiveError> {
    knock(address, name, about, access, (patience, patience), still, &|talk, settings| {
        talk.stream.set_read_timeout(None).map_err(|error| talk.lost(error))?;
        Ok(Entered { stream: talk.stream, settings, rest: talk.bytes })
    })
}

/// The same over a connection that was made already.
pub(crate) fn enter_over(
    stream: TcpStream,
    address: &str,
    name: &str,
    about: &str,
    access: &Access,
    patience: Duration,
) -> Result<Entered, LiveError> {
    let (talk, settings) = enter(stream, address, name, about, access, (Instant::now() + patience, patience))?;
    talk.stream.set_read_timeout(None).map_err(|error| talk.lost(error))?;
    Ok(Entered { stream: talk.stream, settings, rest: talk.bytes })
}

type Then<'a, T> = &'a dyn Fn(Conversation<'_>, Vec<u8>) -> Result<T, LiveError>;

fn knock<T>(
    address: &str,
    name: &str,
    about: &str,
    access: &Access,
    (patience, silence): (Duration, Duration),
    still: &dyn Fn() -> bool,
    then: Then<'_, T>,
) -> Result<T, LiveError> {
    access.permits(address)?;
    let until = Instant::now() + patience;
    loop {
        if !still() {
            return Err(LiveError::Interrupted);
        }
        match connect(address, until) {
            Ok(stream) => {
                let entered = enter(stream, address, name, about, access, (until, silence));
                match entered.and_then(|(talk, said)| then(talk, said)) {
                    // A parent that ends, or is cut off, while we stand at its door may be one that comes back.
                    Err(LiveError::Unreachable { .. }) if Instant::now() + AGAIN < until => {}
                    result => return result,
                }
            }
            Err(source) if Instant::now() + AGAIN >= until => {
                return Err(LiveError::Unreachable { peer: address.into(), source });
            }
            Err(_) => {}
        }
        std::thread::sleep(AGAIN);
    }
}

fn connect(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for place in address.to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&place, left.min(Duration::from_secs(5))) {
            // On one machine, knocking at a port where nobody listens may come out at the knocker itself (TCP's simultaneous
            // open), which would then have taken the port from whoever comes back to it.
            Ok(stream) if stream.local_addr()? == place => last = io::ErrorKind::ConnectionRefused.into(),
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

struct Conversation<'a> {
    stream: TcpStream,
    address: &'a str,
    bytes: Vec<u8>,
    until: Instant,
    /// The longest that nothing may be heard.
    silence: Duration,
}

impl Conversation<'_> {
    fn refused(&self, why: impl ToString) -> LiveError {
        LiveError::Refused { peer: self.address.into(), why: why.to_string() }
    }

    fn lost(&self, source: io::Error) -> LiveError {
        LiveError::Unreachable { peer: self.address.into(), source }
    }

    fn more(&mut self) -> Result<(), LiveError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
        let left = self.until.saturating_duration_since(Instant::now()).min(self.silence);
        if left.is_zero() {
            return Err(self.lost(late()));
        }
        self.stream.set_read_timeout(Some(left)).map_err(|error| self.lost(error))?;
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => {
                self.bytes.extend_from_slice(&buffer[..read]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(self.lost(late()))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
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

fn enter<'a>(
    stream: TcpStream,
    address: &'a str,
    name: &str,
    about: &str,
    access: &Access,
    (until, silence): (Instant, Duration),
) -> Result<(Conversation<'a>, Vec<u8>), LiveError> {
    let mut talk = Conversation { stream, address, bytes: Vec::new(), until, silence };
    let caller = token::random().map_err(LiveError::system("drawing a nonce"))?;
    let greeting = Greeting { word: 0, nonce: caller }.encode(PROTOCOL);
    talk.stream.write_all(&greeting).map_err(|error| talk.lost(error))?;
    let listener = loop {
        // A parent that refuses at once says so in a frame, which is no greeting.
        match Greeting::decode(&talk.bytes, PROTOCOL) {
            Ok(Some(greeting)) => break greeting.nonce,
            Ok(None) => talk.more()?,
            Err(error) => {
                let said = match frame::decode(&talk.bytes, LARGEST_FRAME) {
                    Ok(Some(frame::Decoded { frame: Frame::Refused { why }, .. })) => format!("refuses us: {why}"),
                    _ => error.to_string(),
                };
                return Err(talk.refused(said));
            }
        }
    };
    talk.bytes.drain(..GREETING_BYTES);
    let meeting = Meeting { protocol: PROTOCOL, caller, listener };
    let mut proof = Vec::new();
    let own = access.proof(&meeting, End::Caller, name);
    Frame::Prove { proof: own, name: name.into(), about: about.into() }.encode(0, &mut proof);
    talk.stream.write_all(&proof).map_err(|error| talk.lost(error))?;
    let settings = match talk.frame()? {
        Frame::Welcome { proof, settings } if access.accepts(&meeting, End::Listener, name, &proof) => settings,
        Frame::Welcome { .. } => return Err(talk.refused("does not know the token")),
        Frame::Refused { why } => return Err(talk.refused(format!("refuses us: {why}"))),
        _ => return Err(talk.refused("said something else than it should")),
    };
    Ok((talk, settings))
}

/// What the parent of a farm says beyond: the run, and the code.
fn farm(mut talk: Conversation<'_>, settings: Vec<u8>) -> Result<Welcome, LiveError> {
    let admission: Admission = serde_json::from_slice(&settings).map_err(|error| talk.refused(error))?;
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
    talk.stream.set_read_timeout(None).map_err(|error| talk.lost(error))?;
    Ok(Welcome { stream: talk.stream, admission, code, rest: talk.bytes })
}
