//! What two filters say to each other, as bytes. Pure functions; no socket is known here.
//!
//! A head of [`HEAD`] bytes, then its payload: length of the payload (32 bits, big-endian), kind, class, a flag, a byte of
//! zero, number of the stream (32 bits). The class and the flag stand at a fixed place, as the paper asks of a frame
//! (communication-interactions, section 5.3). Nothing here trusts a length: one beyond [`LARGEST`] is refused by its head.

use crosswind_agent::fields::FrameError;
use crosswind_schema::Class;

/// Bytes of a head.
pub const HEAD: usize = 12;
/// Most bytes of a payload.
pub const LARGEST: usize = 256 << 10;
/// Most bytes of a target's name, and of a reason.
pub const LARGEST_TEXT: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A stream begins: the payload names the target, HOST:PORT.
    Open,
    Opened,
    /// Bytes of a stream; the flag: no other frame of the parallel class waits behind it.
    Data,
    /// So many bytes more of a stream may be sent (payload: 32 bits).
    Window,
    /// No data of the stream follows: the sender's application has ended its side, or the sender has heard of a reset.
    End,
    /// The stream is no more, and no data of it follows; the payload says why.
    Reset,
    /// A grant: so many frames of the class may be under way (32 bits), so many were taken so far (64 bits).
    Credit,
}

/// The kinds in the order of their numbers, with how many bytes a payload may have.
const KINDS: [(Kind, usize, usize); 7] = [
    (Kind::Open, 1, LARGEST_TEXT),
    (Kind::Opened, 0, 0),
    (Kind::Data, 1, LARGEST),
    (Kind::Window, 4, 4),
    (Kind::End, 0, 0),
    (Kind::Reset, 0, LARGEST_TEXT),
    (Kind::Credit, 12, 12),
];

/// A frame but for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub class: Class,
    /// Of [`Kind::Data`]: nothing of the parallel class waits behind it.
    pub last: bool,
    /// Which stream; 0 with [`Kind::Credit`].
    pub stream: u32,
    /// Bytes of the payload.
    pub bytes: u32,
}

/// Number of a class on the wire.
fn code(class: Class) -> u8 {
    match class {
        Class::Parallel => 0,
        Class::Local => 1,
    }
}

impl Head {
    /// As it goes over the wire.
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

    /// The head that bytes begin with; none while bytes of it are missing.
    ///
    /// # Errors
    /// When it is none, or its payload would have a length that such a frame cannot have.
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

/// A frame with a small payload, appended.
pub fn append(kind: Kind, class: Class, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend(Head { kind, class, last: false, stream, bytes: payload.len() as u32 }.encode());
    out.extend_from_slice(payload);
}

/// The payload of [`Kind::Credit`].
#[must_use]
pub fn grant_payload(frames: u32, taken: u64) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..4].copy_from_slice(&frames.to_be_bytes());
    payload[4..].copy_from_slice(&taken.to_be_bytes());
    payload
}

/// The grant of a payload; of bytes that are missing, zeros.
#[must_use]
pub fn grant(payload: &[u8]) -> (u32, u64) {
    (
        number(payload),
        payload.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |taken| u64::from_be_bytes(*taken)),
    )
}

/// The first 32 bits of a payload; of bytes that are missing, zero.
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
