//! Wire protocol between a probe and its peers, apart from the measured bytes.
//!
//! Every connection starts with a greeting each way (`crosswind_access::greeting`). Its word is the role, or zero in
//! the answer. Everything else is framed: a length (32 bits, big-endian, at most 64 KiB) and that many bytes of JSON.
//!
//! On a control connection, which uses TLS if both ends have certificates, both ends first prove that they know the
//! token. Then each request gets one reply. Every other connection belongs to a session opened on a control
//! connection and proves it in its first frame ([`Belongs`]), which is answered.
//!
//! A data connection then carries arbitrary bytes. A ping connection carries one frame with its settings, one reply,
//! a byte that starts it, the messages, and a last frame. These bytes are what is measured, so they are never
//! encrypted. A data connection of a foreign process starts with a ticket instead of greeting and proof
//! ([`Request::Ticket`]) and gets no answer.

use std::io::{self, Read, Write};

use crosswind_access::Access;
use crosswind_access::greeting::{GREETING_BYTES, Greeting, GreetingError, Protocol};
use crosswind_access::limits::LARGEST_UNAUTHENTICATED;
use crosswind_access::token::{self, End, Token, Transcript};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::Direction;

pub const PROTOCOL: Protocol = Protocol { magic: *b"XWND", version: 3 };
/// Most bytes of a frame.
pub const LARGEST_FRAME: usize = 64 << 10;

/// First byte of a ticket: neither a greeting's nor that of TLS.
pub const TICKET_MARK: u8 = b'T';
pub const TICKET_BYTES: usize = 64;

/// Creates an unguessable ticket, for connections of foreign processes, which implement no cryptography.
///
/// # Errors
/// When the system provides no random numbers.
pub fn new_ticket() -> io::Result<String> {
    let drawn: [u8; 32] = token::random()?;
    let mut ticket = String::from(char::from(TICKET_MARK));
    for byte in &drawn[..] {
        ticket.push_str(&format!("{byte:02x}"));
    }
    ticket.truncate(TICKET_BYTES);
    Ok(ticket)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Control,
    /// Bytes of a session's channel.
    Data,
    /// Bytes that only keep the receiver busy.
    Load,
    /// Messages that are echoed, beside burners (`overlap`).
    Ping,
}

impl Role {
    fn code(self) -> u16 {
        match self {
            Self::Control => 0,
            Self::Data => 1,
            Self::Load => 2,
            Self::Ping => 3,
        }
    }

    fn from_code(code: u16) -> Option<Self> {
        [Self::Control, Self::Data, Self::Load, Self::Ping].into_iter().find(|role| role.code() == code)
    }
}

/// Description of a channel for its peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSpec {
    /// Seen from the measured host.
    pub direction: Direction,
    pub streams: u32,
    pub message_bytes: u64,
    /// Granularity of the pacing, bytes.
    pub pacing_chunk_bytes: u64,
    /// Whether the peer paces the channel.
    pub paced_there: bool,
    pub socket_buffer_bytes: Option<u64>,
    pub congestion_control: Option<String>,
}

/// Request of a probe to a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Open a session with these channels.
    Open {
        channels: Vec<ChannelSpec>,
    },
    /// Set the rates of the channels, MB/s; null: no limit.
    Levels {
        rates: Vec<Option<f64>>,
    },
    /// Keep another server busy with this many connections; 0 ends it.
    Load {
        /// HOST:PORT of a server that answers the handshake.
        target: String,
        streams: u32,
    },
    Ping {},
    /// Report the bytes that the peer has counted on each channel.
    Moved {},
    /// Issue a ticket that admits one data connection of a channel in place of the greeting.
    Ticket {
        channel: usize,
    },
}

/// Proof that each end of a control connection sends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    pub proof: [u8; 32],
}

/// The session that a connection other than the control connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Belongs {
    pub session: u64,
    /// Index of the channel of a data connection; otherwise 0.
    pub channel: usize,
    /// HMAC of the handshake with the session's key, which is never sent.
    pub proof: [u8; 32],
}

impl Belongs {
    /// Creates the proof for a connection of a session, with the key that both ends derived from the control
    /// connection's handshake.
    #[must_use]
    pub fn new(session: u64, role: Role, channel: usize, key: &Token, transcript: &Transcript) -> Self {
        Self { session, channel, proof: key.proof(transcript, End::Caller, &Self::what(role, session, channel)) }
    }

    #[must_use]
    pub fn is_proved(&self, role: Role, key: &Token, transcript: &Transcript) -> bool {
        key.accepts(transcript, End::Caller, &Self::what(role, self.session, self.channel), &self.proof)
    }

    fn what(role: Role, session: u64, channel: usize) -> String {
        format!("{} {session} {channel}", role.code())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    Opened {
        /// Its number. It is not secret: connections prove that they belong to the session.
        session: u64,
        /// Host name of the peer.
        host: String,
        /// Boot id, which shows whether both ends run on the same kernel.
        boot: String,
    },
    /// The caller is authenticated; `proof` shows that this end knows the token too.
    Proved {
        proof: [u8; 32],
    },
    Done {},
    /// Bytes of each channel, from the session's start.
    Moved {
        bytes: Vec<u64>,
    },
    /// Valid once, on a connection of its own.
    Ticket {
        /// [`TICKET_BYTES`] letters and digits, the first of them [`TICKET_MARK`].
        ticket: String,
    },
    Refused {
        why: String,
    },
}

fn bad(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Name under which both ends of a control connection prove that they know the token.
const CONTROL: &str = "control";

/// Sends a greeting and checks the answer. Returns the handshake that both ends then authenticate.
///
/// # Errors
/// When the other end is not a peer, or speaks another version.
pub fn greet(stream: &mut (impl Read + Write), role: Role) -> io::Result<Transcript> {
    let caller = token::random()?;
    stream.write_all(&Greeting { word: role.code(), nonce: caller }.encode(PROTOCOL))?;
    let answer = read_greeting(stream)?.map_err(|error| bad(error.to_string()))?;
    Ok(Transcript { protocol: PROTOCOL, caller, listener: answer.nonce, channel: [0; 32] })
}

/// Reads the greeting of a caller and answers it.
///
/// # Errors
/// When the caller speaks another protocol, or another version.
pub fn be_greeted(stream: &mut (impl Read + Write)) -> io::Result<(Role, Transcript)> {
    let greeting = read_greeting(stream)?;
    let listener = token::random()?;
    // Answered for any version, so that the caller can report a mismatch.
    if !matches!(greeting, Err(GreetingError::NotCrosswind)) {
        stream.write_all(&Greeting { word: 0, nonce: listener }.encode(PROTOCOL))?;
    }
    let Greeting { word, nonce: caller } = greeting.map_err(|error| bad(error.to_string()))?;
    let role = Role::from_code(word).ok_or_else(|| bad(format!("no role {word}")))?;
    Ok((role, Transcript { protocol: PROTOCOL, caller, listener, channel: [0; 32] }))
}

/// Reads a greeting, and rejects a wrong one as soon as its first bytes show it.
fn read_greeting(stream: &mut impl Read) -> io::Result<Result<Greeting, GreetingError>> {
    const HEAD: usize = 8;
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes[..HEAD])?;
    if let Err(error) = Greeting::decode(&bytes[..HEAD], PROTOCOL) {
        return Ok(Err(error));
    }
    stream.read_exact(&mut bytes[HEAD..])?;
    Ok(Greeting::decode(&bytes, PROTOCOL).and_then(|greeting| greeting.ok_or(GreetingError::NotCrosswind)))
}

/// Proves knowledge of the token to a listener and checks its proof. Returns the key for connections of the session.
///
/// # Errors
/// When the listener refuses, or does not know the token.
pub fn prove(stream: &mut (impl Read + Write), access: &Access, transcript: &Transcript) -> io::Result<Token> {
    write_frame(stream, &Shown { proof: access.proof(transcript, End::Caller, CONTROL) })?;
    match read_frame(stream)? {
        Reply::Proved { proof } if access.accepts(transcript, End::Listener, CONTROL, &proof) => {
            Ok(access.key_of(transcript))
        }
        Reply::Proved { .. } => Err(bad("does not know the token")),
        Reply::Refused { why } => Err(bad(format!("refused this end: {why}"))),
        _ => Err(bad("says something else than it should")),
    }
}

/// Checks a caller's proof of the token and proves knowledge of it in turn. Returns the key for connections of the
/// session.
///
/// # Errors
/// When the caller does not know the token; it has then been sent a refusal.
pub fn be_proved(stream: &mut (impl Read + Write), access: &Access, transcript: &Transcript) -> io::Result<Token> {
    let shown: Shown = read_frame_up_to(stream, LARGEST_UNAUTHENTICATED)?;
    if !access.accepts(transcript, End::Caller, CONTROL, &shown.proof) {
        let why = "it does not know the token";
        write_frame(stream, &Reply::Refused { why: why.into() })?;
        return Err(bad(why));
    }
    write_frame(stream, &Reply::Proved { proof: access.proof(transcript, End::Listener, CONTROL) })?;
    Ok(access.key_of(transcript))
}

/// Writes one frame.
///
/// # Errors
/// When the other end is gone, or the message is too large.
pub fn write_frame(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LARGEST_FRAME {
        return Err(bad(format!("a message of {} bytes; at most {LARGEST_FRAME} are sent", text.len())));
    }
    let mut frame = (text.len() as u32).to_be_bytes().to_vec();
    frame.extend(text);
    stream.write_all(&frame)
}

/// Reads one frame. Allocates only for bytes that arrived, at most [`LARGEST_FRAME`].
///
/// # Errors
/// When the length is too large, the bytes are no such message, or the other end is gone.
pub fn read_frame<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    read_frame_up_to(stream, LARGEST_FRAME)
}

/// Reads one frame of at most `most` bytes: unauthenticated callers have a lower limit.
///
/// # Errors
/// As [`read_frame`].
pub fn read_frame_up_to<T: DeserializeOwned>(stream: &mut impl Read, most: usize) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(bad(format!("a frame of {length} bytes; at most {most} are read")));
    }
    let mut text = Vec::new();
    if stream.take(length as u64).read_to_end(&mut text)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text).map_err(|error| bad(format!("no message: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic_or_read_past_a_frame(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut rest = bytes.as_slice();
            let _ = read_frame::<Request>(&mut rest);
            prop_assert!(rest.len() <= bytes.len());
            let _ = read_greeting(&mut bytes.as_slice());
        }

        #[test]
        fn what_is_written_is_what_is_read(rates in proptest::collection::vec(proptest::option::of(0.0..1e6f64), 0..16)) {
            let request = Request::Levels { rates };
            let mut wire = Vec::new();
            write_frame(&mut wire, &request).expect("small");
            wire.extend(b"next");
            let mut rest = wire.as_slice();
            prop_assert_eq!(read_frame::<Request>(&mut rest).expect("whole"), request);
            prop_assert_eq!(rest, b"next");
        }
    }

    #[test]
    fn a_length_that_lies_is_refused_before_memory_is_taken() {
        let error = read_frame::<Request>(&mut [0xff, 0xff, 0xff, 0xff, b'{'].as_slice()).expect_err("refused");
        assert!(error.to_string().contains("at most 65536"), "{error}");
        let error = read_frame::<Request>(&mut [0, 0, 1, 0, b'{'].as_slice()).expect_err("cut short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_connection_belongs_to_the_session_whose_key_it_knows_and_to_no_other() {
        let transcript = Transcript { protocol: PROTOCOL, caller: [1; 32], listener: [2; 32], channel: [0; 32] };
        let own = Access::of(Some("a token for tests only"), None).expect("long enough").key_of(&transcript);
        let data = Transcript { caller: [3; 32], ..transcript };
        let belongs = Belongs::new(7, Role::Data, 1, &own, &data);
        assert!(belongs.is_proved(Role::Data, &own, &data));
        assert!(!belongs.is_proved(Role::Ping, &own, &data), "another role");
        assert!(!Belongs { channel: 2, ..belongs }.is_proved(Role::Data, &own, &data), "another channel");
        assert!(!Belongs { session: 8, ..belongs }.is_proved(Role::Data, &own, &data), "another session");
        assert!(!belongs.is_proved(Role::Data, &own, &transcript), "heard on another connection");
        assert!(!belongs.is_proved(Role::Data, &Access::default().key_of(&transcript), &data), "without the token");
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &serde_json::json!({"type": "ping", "shell": "rm"})).expect("small");
        assert!(read_frame::<Request>(&mut wire.as_slice()).is_err());
    }
}
