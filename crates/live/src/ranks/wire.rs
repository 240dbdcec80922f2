//! Wire format between ranks and with the conductor. Pure functions without I/O.
//!
//! A frame has a length (32 bits, big-endian), one byte for its kind, and its fields. A message whose stated size exceeds
//! its data is padded with zeros, so that it loads the link accordingly. The greeting and the token come before
//! ([`crosswind_agent::frame`]). A length above [`LARGEST`] is rejected before memory is allocated.

use crosswind_agent::fields::{self, FrameError, Reader, long, word};
use crosswind_program::{Body, Kind};

/// Maximum length of a frame in bytes, without its length field.
pub const LARGEST: usize = 64 << 20;
/// Maximum bytes of packets in one frame. A longer message is sent in parts, so that other frames can be sent in between.
pub const PART: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It computes or has more operations to execute.
    Moving,
    /// It waits for a message, an answer, a credit, or the conductor.
    Waiting,
    /// It has no more operations, and handles what arrives.
    Done,
}

const STATES: [State; 3] = [State::Moving, State::Waiting, State::Done];

#[derive(Clone, Debug, PartialEq)]
pub enum Wire {
    /// Packets of a message before its last ones.
    Part { packets: u32 },
    /// The last packets of a one-sided message.
    Message {
        kind: Kind,
        /// Number of packets in this frame.
        packets: u32,
        /// Size of the whole message, bytes.
        bytes: u64,
        body: Body,
    },
    /// The last packets of a send.
    Sent {
        tag: u32,
        /// Number of packets in this frame.
        packets: u32,
    },
    /// The answer to a get, put or request.
    Answer {
        /// Number of credits returned with it, packets.
        packets: u32,
        body: Body,
    },
    /// Returns credits for `packets` packets.
    Credit { packets: u32 },
    /// Rank to conductor: connected to all other ranks.
    Meshed,
    /// Conductor to rank: time 0.
    Start {
        /// Time 0 on the monotonic clock, ns.
        zero_ns: u64,
    },
    /// Rank to conductor: waits at a barrier or a store-sync; for a store-sync with the counts of one-way messages so far.
    Enter {
        /// Number of the barrier or store-sync, from 0. Late frames about an earlier one are ignored.
        meeting: u64,
        /// Whether this is a store-sync.
        stores: bool,
        /// Stores and posts sent since the start.
        sent: u64,
        /// Stores and posts handled since the start.
        handled: u64,
    },
    /// Conductor to rank: all ranks have arrived.
    Release,
    /// Conductor to rank: requests a [`Wire::Status`].
    Probe { wave: u64 },
    Status {
        wave: u64,
        state: State,
        /// Frames sent to other ranks since the start.
        sent: u64,
        /// Frames of other ranks handled since the start.
        handled: u64,
        what: String,
    },
    /// Rank to conductor: no more operations.
    Done {
        /// That time on the monotonic clock, ns.
        at_ns: u64,
    },
    /// Conductor to rank: all ranks are done, so send the result and the report.
    Finish,
    /// Rank to conductor: a piece of the result.
    Held { piece: Vec<u8> },
    /// Rank to conductor: the report, which ends the result.
    Report { report: Vec<u8> },
    /// Rank to conductor: the connection to another rank broke.
    Lost { rank: u32, why: String },
    /// Either direction: the run ends.
    Abort { why: String },
}

const PART_OF: u8 = 1;
const MESSAGE: u8 = 2;
const SENT: u8 = 3;
const ANSWER: u8 = 4;
const CREDIT: u8 = 5;
const MESHED: u8 = 6;
const START: u8 = 7;
const ENTER: u8 = 8;
const RELEASE: u8 = 9;
const PROBE: u8 = 10;
const STATUS: u8 = 11;
const DONE: u8 = 12;
const FINISH: u8 = 13;
const HELD: u8 = 14;
const REPORT: u8 = 15;
const LOST: u8 = 16;
const ABORT: u8 = 17;

impl Wire {
    /// Appends the frame. Messages and answers are padded with zeros until their fields have at least `wire` bytes.
    pub fn encode(&self, wire: u64, out: &mut Vec<u8>) {
        let start = fields::begin(out);
        match self {
            Self::Part { packets } => word(out, PART_OF, *packets),
            Self::Message { kind, packets, bytes, body } => {
                word(out, MESSAGE, *packets);
                out.push(Kind::ALL.iter().position(|known| known == kind).unwrap_or(0) as u8);
                out.extend(bytes.to_be_bytes());
                put_body(body, out);
            }
            Self::Sent { tag, packets } => {
                word(out, SENT, *packets);
                out.extend(tag.to_be_bytes());
            }
            Self::Answer { packets, body } => {
                word(out, ANSWER, *packets);
                put_body(body, out);
            }
            Self::Credit { packets } => word(out, CREDIT, *packets),
            Self::Meshed => out.push(MESHED),
            Self::Start { zero_ns } => long(out, START, *zero_ns),
            Self::Enter { meeting, stores, sent, handled } => {
                long(out, ENTER, *meeting);
                out.push(u8::from(*stores));
                out.extend(sent.to_be_bytes());
                out.extend(handled.to_be_bytes());
            }
            Self::Release => out.push(RELEASE),
            Self::Probe { wave } => long(out, PROBE, *wave),
            Self::Status { wave, state, sent, handled, what } => {
                long(out, STATUS, *wave);
                out.push(*state as u8);
                out.extend(sent.to_be_bytes());
                out.extend(handled.to_be_bytes());
                out.extend(what.as_bytes());
            }
            Self::Done { at_ns } => long(out, DONE, *at_ns),
            Self::Finish => out.push(FINISH),
            Self::Held { piece } => {
                out.push(HELD);
                out.extend(piece);
            }
            Self::Report { report } => {
                out.push(REPORT);
                out.extend(report);
            }
            Self::Lost { rank, why } => {
                word(out, LOST, *rank);
                out.extend(why.as_bytes());
            }
            Self::Abort { why } => {
                out.push(ABORT);
                out.extend(why.as_bytes());
            }
        }
        if self.is_padded() {
            let missing = wire.saturating_sub((out.len() - start - 5) as u64);
            out.resize(out.len() + missing as usize, 0);
        }
        fields::end(start, 0, out);
    }

    /// Returns whether zeros may follow the fields.
    const fn is_padded(&self) -> bool {
        matches!(self, Self::Part { .. } | Self::Message { .. } | Self::Sent { .. } | Self::Answer { .. })
    }
}

/// Appends the form of a body, then its words.
fn put_body(body: &Body, out: &mut Vec<u8>) {
    match body {
        Body::Empty => out.push(0),
        Body::Pair(pair) => {
            out.push(1);
            pair.iter().for_each(|word| out.extend(word.to_be_bytes()));
        }
        Body::Words(words) => {
            out.push(2);
            out.extend((words.len() as u32).to_be_bytes());
            words.iter().for_each(|word| out.extend(word.to_be_bytes()));
        }
    }
}

/// Returns the big-endian 8-byte words. An incomplete word at the end is ignored.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| word.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// Decodes the next frame. Returns it with its length, or `None` if it is incomplete.
///
/// # Errors
/// When the length exceeds [`LARGEST`], or the bytes are not a valid frame.
pub fn decode(bytes: &[u8]) -> Result<Option<(Wire, usize)>, FrameError> {
    let Some((&head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = fields::length(head, LARGEST)?;
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    let mut reader = Reader { kind: frame[0], bytes: &frame[1..] };
    let wire = reader.wire()?;
    let zeros = wire.is_padded() && reader.bytes.iter().all(|&byte| byte == 0);
    if !reader.bytes.is_empty() && !zeros {
        return Err(FrameError::Fields { kind: reader.kind, what: "too many bytes" });
    }
    Ok(Some((wire, 4 + length)))
}

/// Readers of the fields that occur only in frames of ranks.
trait RankFields {
    fn state(&mut self) -> Result<State, FrameError>;
    fn message_kind(&mut self) -> Result<Kind, FrameError>;
    fn body(&mut self) -> Result<Body, FrameError>;
    fn wire(&mut self) -> Result<Wire, FrameError>;
}

impl RankFields for Reader<'_> {
    fn state(&mut self) -> Result<State, FrameError> {
        match STATES.get(usize::from(self.byte()?)) {
            Some(&state) => Ok(state),
            None => self.wrong("an unknown state"),
        }
    }

    fn message_kind(&mut self) -> Result<Kind, FrameError> {
        match Kind::ALL.get(usize::from(self.byte()?)) {
            Some(&kind) => Ok(kind),
            None => self.wrong("a message of an unknown kind"),
        }
    }

    fn body(&mut self) -> Result<Body, FrameError> {
        Ok(match self.byte()? {
            0 => Body::Empty,
            1 => Body::Pair([self.u64()?, self.u64()?]),
            2 => {
                let bytes = self.u32()? as usize * 8;
                let Some((words, rest)) = self.bytes.split_at_checked(bytes) else {
                    return self.wrong("fewer words than it says");
                };
                self.bytes = rest;
                Body::Words(self::words(words).collect())
            }
            _ => return self.wrong("a body of an unknown form"),
        })
    }

    fn wire(&mut self) -> Result<Wire, FrameError> {
        Ok(match self.kind {
            PART_OF => Wire::Part { packets: self.u32()? },
            MESSAGE => {
                let packets = self.u32()?;
                Wire::Message { packets, kind: self.message_kind()?, bytes: self.u64()?, body: self.body()? }
            }
            SENT => {
                let packets = self.u32()?;
                Wire::Sent { packets, tag: self.u32()? }
            }
            ANSWER => Wire::Answer { packets: self.u32()?, body: self.body()? },
            CREDIT => Wire::Credit { packets: self.u32()? },
            MESHED => Wire::Meshed,
            START => Wire::Start { zero_ns: self.u64()? },
            ENTER => {
                let meeting = self.u64()?;
                Wire::Enter { meeting, stores: self.flag()?, sent: self.u64()?, handled: self.u64()? }
            }
            RELEASE => Wire::Release,
            PROBE => Wire::Probe { wave: self.u64()? },
            STATUS => Wire::Status {
                wave: self.u64()?,
                state: self.state()?,
                sent: self.u64()?,
                handled: self.u64()?,
                what: self.text()?,
            },
            DONE => Wire::Done { at_ns: self.u64()? },
            FINISH => Wire::Finish,
            HELD => Wire::Held { piece: self.rest() },
            REPORT => Wire::Report { report: self.rest() },
            LOST => Wire::Lost { rank: self.u32()?, why: self.text()? },
            ABORT => Wire::Abort { why: self.text()? },
            kind => return Err(FrameError::Kind(kind)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bodies() -> impl Strategy<Value = Body> {
        prop_oneof![
            Just(Body::Empty),
            any::<[u64; 2]>().prop_map(Body::Pair),
            proptest::collection::vec(any::<u64>(), 0..40).prop_map(|words| Body::Words(words.into())),
        ]
    }

    fn frames() -> impl Strategy<Value = Wire> {
        let kind = proptest::sample::select(&Kind::ALL[..]);
        let bytes = || proptest::collection::vec(any::<u8>(), 0..100);
        prop_oneof![
            any::<u32>().prop_map(|packets| Wire::Part { packets }),
            (kind, any::<u32>(), any::<u64>(), bodies()).prop_map(|(kind, packets, bytes, body)| Wire::Message {
                kind,
                packets,
                bytes,
                body
            }),
            any::<[u32; 2]>().prop_map(|[tag, packets]| Wire::Sent { tag, packets }),
            (any::<u32>(), bodies()).prop_map(|(packets, body)| Wire::Answer { packets, body }),
            any::<u32>().prop_map(|packets| Wire::Credit { packets }),
            any::<u64>().prop_map(|zero_ns| Wire::Start { zero_ns }),
            (any::<bool>(), any::<[u64; 3]>()).prop_map(|(stores, [meeting, sent, handled])| Wire::Enter {
                meeting,
                stores,
                sent,
                handled
            }),
            any::<u64>().prop_map(|wave| Wire::Probe { wave }),
            (any::<[u64; 3]>(), proptest::sample::select(&STATES[..]), ".{0,40}")
                .prop_map(|([wave, sent, handled], state, what)| Wire::Status { wave, state, sent, handled, what }),
            any::<u64>().prop_map(|at_ns| Wire::Done { at_ns }),
            bytes().prop_map(|piece| Wire::Held { piece }),
            bytes().prop_map(|report| Wire::Report { report }),
            (any::<u32>(), ".{0,40}").prop_map(|(rank, why)| Wire::Lost { rank, why }),
            ".{0,40}".prop_map(|why| Wire::Abort { why }),
            proptest::sample::select(vec![Wire::Meshed, Wire::Release, Wire::Finish]),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read_and_no_byte_more(frame in frames(), wire in 0u64..600, beyond in 0usize..9) {
            let mut bytes = Vec::new();
            frame.encode(wire, &mut bytes);
            let whole = bytes.len();
            bytes.extend(std::iter::repeat_n(7, beyond));
            prop_assert_eq!(decode(&bytes).expect("right"), Some((frame.clone(), whole)));
            prop_assert_eq!(decode(&bytes[..whole - 1]).expect("not wrong"), None);
            prop_assert!(!frame.is_padded() || whole as u64 >= 5 + wire);
        }

        #[test]
        fn any_fields_of_a_known_kind_are_a_frame_or_an_error(
            kind in 0u8..20,
            fields in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut wire = (fields.len() as u32 + 1).to_be_bytes().to_vec();
            wire.push(kind);
            wire.extend(&fields);
            if let Ok(Some((frame, used))) = decode(&wire) {
                let mut again = Vec::new();
                frame.encode(fields.len() as u64, &mut again);
                prop_assert_eq!(&again[..], &wire[..used]);
            }
        }
    }

    #[test]
    fn a_length_that_lies_is_refused_by_its_first_four_bytes() {
        let error = decode(&[0xff; 4]).expect_err("refused");
        assert_eq!(error, FrameError::TooLarge { bytes: 0xffff_ffff, limit: LARGEST });
        assert!(decode(&[0; 4]).is_err());
    }
}
