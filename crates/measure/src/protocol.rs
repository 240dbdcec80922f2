//! What a probe and its peers say to each other, apart from the bytes that are measured.
//!
//! Every connection starts with eight bytes each way: magic, version, role (or, in the answer, status). A control
//! connection then carries frames: a length (32 bits, big-endian, at most 64 KiB) and that many bytes of JSON, one reply to each
//! request. A data connection carries one frame that says whose it is, one reply, and then bytes without meaning; a connection
//! that is pinged on one frame that says how, one reply, a byte that begins, the messages, and a last frame.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::Direction;

/// First bytes of every connection.
pub const MAGIC: [u8; 4] = *b"XWND";
/// Version of this protocol; both ends must speak the same.
pub const VERSION: u16 = 1;
/// Most bytes of a frame.
pub const LARGEST_FRAME: usize = 64 << 10;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Requests and replies.
    Control,
    /// Bytes of a session's channel.
    Data,
    /// Bytes that only keep the receiver busy.
    Load,
    /// Messages that are sent back, beside burners (`overlap`).
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

/// What a peer must know of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSpec {
    /// Seen from the measured host.
    pub direction: Direction,
    /// Connections.
    pub streams: u32,
    /// Bytes per message.
    pub message_bytes: u64,
    /// Granularity of the pacing, bytes.
    pub pacing_chunk_bytes: u64,
    /// Whether the peer keeps the rate.
    pub paced_there: bool,
    /// Socket buffers, bytes.
    pub socket_buffer_bytes: Option<u64>,
    /// Congestion control.
    pub congestion_control: Option<String>,
}

/// What a probe asks of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A session with these channels.
    Open {
        /// Its channels.
        channels: Vec<ChannelSpec>,
    },
    /// Rates of the channels, MB/s; null: no limit.
    Levels {
        /// One for each channel.
        rates: Vec<Option<f64>>,
    },
    /// Keep another server busy with this many connections; 0 ends it.
    Load {
        /// HOST:PORT of a server that answers the handshake.
        target: String,
        /// Connections.
        streams: u32,
    },
    /// Are you there?
    Ping {},
    /// How many bytes has each channel moved, counted at your end?
    Moved {},
}

/// Who a data connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Belongs {
    /// What [`Reply::Opened`] told.
    pub session: u64,
    /// Index of the channel.
    pub channel: usize,
}

/// What a peer answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// The session is there.
    Opened {
        /// Its secret.
        session: u64,
        /// The peer's own name for itself.
        host: String,
        /// Tells whether it runs on the same kernel.
        boot: String,
    },
    /// It is done.
    Done {},
    /// Bytes of each channel, from the session's start.
    Moved {
        /// One for each channel.
        bytes: Vec<u64>,
    },
    /// It will not be done.
    Refused {
        /// Why.
        why: String,
    },
}

fn bad(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Sends the first eight bytes and checks the answer.
///
/// # Errors
/// When the other end is no peer, or one of another version.
pub fn greet(stream: &mut (impl Read + Write), role: Role) -> io::Result<()> {
    stream.write_all(&greeting(role.code()))?;
    let (version, status) = read_greeting(stream)?;
    if version != VERSION {
        return Err(bad(format!("speaks version {version} of the protocol; this build speaks {VERSION}")));
    }
    if status == 0 { Ok(()) } else { Err(bad("refuses: it has as many connections as it can bear")) }
}

/// Reads the first eight bytes of a caller and answers them.
///
/// # Errors
/// When it is no caller of ours, or one of another version.
pub fn be_greeted(stream: &mut (impl Read + Write)) -> io::Result<Role> {
    let (version, role) = read_greeting(stream)?;
    // Answered whatever the version is, so that the caller can say what is wrong.
    stream.write_all(&greeting(0))?;
    if version != VERSION {
        return Err(bad(format!("the caller speaks version {version}; this build speaks {VERSION}")));
    }
    Role::from_code(role).ok_or_else(|| bad(format!("no role {role}")))
}

fn greeting(word: u16) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_be_bytes());
    bytes[6..].copy_from_slice(&word.to_be_bytes());
    bytes
}

fn read_greeting(stream: &mut impl Read) -> io::Result<(u16, u16)> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    if bytes[..4] != MAGIC {
        return Err(bad("is no Crosswind: the first bytes are wrong"));
    }
    Ok((u16::from_be_bytes([bytes[4], bytes[5]]), u16::from_be_bytes([bytes[6], bytes[7]])))
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

/// Reads one frame. Memory is taken only for bytes that came, at most [`LARGEST_FRAME`].
///
/// # Errors
/// When the length is too large, the bytes are no such message, or the other end is gone.
pub fn read_frame<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LARGEST_FRAME {
        return Err(bad(format!("a frame of {length} bytes; at most {LARGEST_FRAME} are read")));
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
    fn an_unknown_field_is_refused() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &serde_json::json!({"type": "ping", "shell": "rm"})).expect("small");
        assert!(read_frame::<Request>(&mut wire.as_slice()).is_err());
    }
}
