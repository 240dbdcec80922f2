//! Wire format between two filters. Pure functions without I/O.
//!
//! A head of [`HEAD`] bytes precedes the payload: payload length (32 bits, big-endian), kind, class, a flag, a zero byte,
//! stream number (32 bits). Class and flag have fixed positions, as the paper requires of a frame
//! (communication-interactions, section 5.3). A length above [`LARGEST`] is rejected as soon as the head is read.

use crosswind_agent::fields::FrameError;
use crosswind_schema::Class;

pub const HEAD: usize = 12;
/// Maximum size of a payload, bytes.
pub const LARGEST: usize = 256 << 10;
/// Maximum size of a target's name, and of a reason, bytes.
pub const LARGEST_TEXT: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens a stream. The payload names the target, HOST:PORT.
    Open,
    Opened,
    /// Bytes of a stream. The flag means that no other frame of the parallel class waits behind this one.
    Data,
    /// Increases the window of a stream by a number of bytes (payload: 32 bits).
    Window,
    /// No data of the stream follows: the sender's application has ended its side, or the sender has received a reset.
    End,
    /// The stream is closed, and no data of it follows. The payload is the reason.
    Reset,
    /// Grants credits: frames of the class that may be in flight (32 bits), and frames taken so far (64 bits).
    Credit,
}

/// The kinds in the order of their numbers, with the shortest and the longest payload, bytes.
const KINDS: [(Kind, usize, usize); 7] = [
    (Kind::Open, 1, LARGEST_TEXT),
    (Kind::Opened, 0, 0),
    (Kind::Data, 1, LARGEST),
    (Kind::Window, 4, 4),
    (Kind::End, 0, 0),
    (Kind::Reset, 0, LARGEST_TEXT),
    (Kind::Credit, 12, 12),
];

/// A frame without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub class: Class,
    /// Only for [`Kind::Data`]: no frame of the parallel class waits behind it.
    pub last: bool,
    /// Stream number; 0 for [`Kind::Credit`].
    pub stream: u32,
    pub bytes: u32,
}

/// Returns the number of a class on the wire.
fn code(class: Class) -> u8 {
    match class {
        Class::Parallel => 0,
        Class::Local => 1,
    }
}

impl Head {
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD] {
        let mut out = [0; HEAD];
        out[..4].copy_from_slice(&self.bytes.to_be_bytes());
        out[4] = KINDS.iter().position(|(kind, ..)| *kind == self.kind).unwrap_or_default() as u8;
        out[5] = code(self.class);
        out[6] = u8::from(self.last);
        out[8..].copy_from_slice(&self.stream.to_be_bytes());
        out
    }

    /// Decodes a head. `None` if it is incomplete.
    ///
    /// # Errors
    /// When the head is invalid, or its payload length is not permitted for its kind.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
        let [a, b, c, d, number, class, flag, zero, stream @ ..] = *head;
        let bytes = u32::from_be_bytes([a, b, c, d]);
        let Some(&(kind, fewest, most)) = KINDS.get(usize::from(number)) else { return Err(FrameError::Kind(number)) };
        let wrong = |what| Err(FrameError::Fields { kind: number, what });
        if bytes as usize > most {
            return Err(FrameError::TooLarge { bytes: bytes as usize, limit: most });
        }
        if (bytes as usize) < fewest {
            return wrong("a payload that is too short");
        }
        let class = match class {
            0 => Class::Parallel,
            1 => Class::Local,
            _ => return wrong("an unknown class"),
        };
        if flag > 1 || zero != 0 || (flag == 1 && kind != Kind::Data) {
            return wrong("an unknown flag");
        }
        if (kind == Kind::Credit) != (u32::from_be_bytes(stream) == 0) {
            return wrong("a stream that it cannot have");
        }
        Ok(Some(Self { kind, class, last: flag == 1, stream: u32::from_be_bytes(stream), bytes }))
    }
}

/// Appends a frame with a small payload.
pub fn append(kind: Kind, class: Class, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend(Head { kind, class, last: false, stream, bytes: payload.len() as u32 }.encode());
    out.extend_from_slice(payload);
}

/// Encodes the payload of [`Kind::Credit`].
#[must_use]
pub fn grant_payload(frames: u32, taken: u64) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..4].copy_from_slice(&frames.to_be_bytes());
    payload[4..].copy_from_slice(&taken.to_be_bytes());
    payload
}

/// Decodes the payload of [`Kind::Credit`]. A value with missing bytes is 0.
#[must_use]
pub fn grant(payload: &[u8]) -> (u32, u64) {
    (
        number(payload),
        payload.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |taken| u64::from_be_bytes(*taken)),
    )
}

/// Returns the first 32 bits of a payload, or 0 if it is shorter.
#[must_use]
pub fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_twelve_bytes_are_a_head_that_is_written_as_it_was_read_or_an_error(bytes in any::<[u8; HEAD]>(), small in 0u8..9) {
            let mut bytes = bytes;
            (bytes[0], bytes[1], bytes[4], bytes[5], bytes[6], bytes[7]) = (0, 0, small, bytes[5] % 3, bytes[6] % 3, bytes[7] % 2);
            prop_assert_eq!(Head::decode(&bytes[..HEAD - 1]), Ok(None));
            if let Ok(Some(head)) = Head::decode(&bytes) {
                prop_assert_eq!(head.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_grant_is_heard_as_it_was_said() {
        assert_eq!(grant(&grant_payload(16, u64::MAX - 3)), (16, u64::MAX - 3));
        assert_eq!((grant(&[]), number(&7u32.to_be_bytes())), ((0, 0), 7));
    }

    #[test]
    fn a_lie_about_length_class_or_kind_is_refused_by_the_head() {
        let honest = Head { kind: Kind::Data, class: Class::Local, last: true, stream: 7, bytes: 1024 }.encode();
        assert!(Head::decode(&honest).is_ok_and(|head| head.is_some_and(|head| head.last && head.bytes == 1024)));
        for (place, lie) in [(0, 0xff), (4, 7), (5, 2), (6, 2), (7, 1)] {
            let mut bytes = honest;
            bytes[place] = lie;
            assert!(Head::decode(&bytes).is_err(), "byte {place}");
        }
        let empty = Head { kind: Kind::Data, class: Class::Local, last: false, stream: 7, bytes: 0 };
        assert!(Head::decode(&empty.encode()).is_err(), "a frame of no bytes would take a turn for nothing");
    }
}
