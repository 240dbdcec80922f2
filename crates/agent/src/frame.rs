//! Frames that agents exchange, and their encoding as bytes. Pure functions, without sockets.
//!
//! A connection starts with a greeting in each direction (`crosswind_access::greeting`). Everything after it is frames:
//! a length (32 bits, big-endian), one byte for the kind, fields of fixed size, then fields of variable size. A frame
//! that carries bytes of a task or a result (its body) is decoded as soon as its fields are complete. The body is then
//! read straight to its destination, not through a buffer of frames.
//!
//! No length is trusted: one above its limit is rejected before memory is allocated for it.

use crosswind_policy::farm::estimate::Subtree;

use crate::fields::{self, FrameError, Reader, long};

/// Maximum size of a frame, bytes.
pub const LARGEST_FRAME: usize = 16 << 20;
/// Maximum body in one frame, bytes. It bounds how long a control frame waits behind a body.
pub const LARGEST_BODY: usize = 8 << 20;
/// Bytes before the fields: length and kind.
const HEAD: usize = 5;

/// How the bytes of a task or a result are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A payload of bytes with content.
    Bytes,
    /// Filler that only loads the link; the receiver counts it.
    Blank,
}

/// Kind of a refusal, as far as the refused end acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Trying again does not help.
    Final,
    /// A peer of this name is connected. It may be a predecessor whose end has not been noticed yet.
    NameTaken,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Child to parent: its name, and a proof that it knows the token.
    Prove {
        proof: [u8; 32],
        name: String,
        /// JSON: rates of a node that the platform does not list. May be empty.
        about: String,
    },
    /// Parent to child: the child is registered, with a proof that the parent knows the token too.
    Welcome {
        proof: [u8; 32],
        /// JSON: the settings of the run.
        settings: Vec<u8>,
    },
    /// The listener does not accept the connection.
    Refused {
        refusal: Refusal,
        /// The reason, for the other end's user.
        why: String,
    },
    /// Parent to child: a piece of the code to run (a pickled callable). `last` marks the last piece.
    Code { last: bool, piece: Vec<u8> },
    /// Child to parent: its subtree is ready. Carries the number of agents in the subtree and the first request.
    Ready { agents: u32, tasks: u64 },
    /// Parent to child: the run has started.
    Start {
        /// Time 0 on the root's clock, ns.
        root_ns: u64,
    },
    /// Child to parent: requests `tasks` more tasks.
    Ask { tasks: u64 },
    /// Child to parent: heartbeat, and request for the root's clock.
    Ping { child_ns: u64 },
    Pong {
        child_ns: u64,
        /// The parent's estimate of the root's clock, ns.
        root_ns: u64,
    },
    /// Parent to child: what the task that follows is called, for its command: the names of its input and of its result,
    /// separated by a 0 byte.
    Name { task: u64, name: Vec<u8> },
    /// Parent to child: the task that follows is a batch of calls. Its first calls may be answered before the last
    /// ([`Self::Partial`]), and it is not tried again when an agent is lost that computes it.
    Batch { task: u64 },
    /// Parent to child: the task that follows calls a function. The task's body begins with the function's bytes, or the
    /// child has the function already.
    Function {
        task: u64,
        /// Number of the function at the root.
        number: u64,
        /// Bytes of the function in front of the task. 0: the child has it.
        bytes: u64,
    },
    /// Parent to child: the function will be sent again in front of the next task that calls it.
    Forget { number: u64 },
    /// The start of a task. Body: its first bytes.
    Task {
        task: u64,
        /// Size of its input, bytes, in this frame and in the chunks that follow.
        total: u64,
        /// Work units; 0 if unknown.
        work: f64,
        form: Form,
        /// Rate at which the link is paced, MB/s of the platform. 0: it is not paced.
        rate: f64,
    },
    /// More bytes of a task's input.
    Chunk { task: u64 },
    /// The paced link continues at this rate. 0: the transfer is held.
    Pace {
        /// Rate of the emulated link, MB/s.
        rate: f64,
    },
    /// Child to parent: the rate at which it sends to its own children, which lowers its receive limit. Paced links
    /// only.
    Sending {
        /// Sum over all children, MB/s of the platform.
        rate: f64,
    },
    /// Child to parent, if the child has children: the task that it computes itself.
    Computing { task: u64 },
    /// Parent to child: number of tasks to request or hold from now on.
    Places { tasks: u64 },
    /// Parent to child: approximate number of tasks that it will still get.
    RemainingHint { tasks: u64 },
    /// Child to parent: the estimated task rates of its subtree.
    Subtree(Subtree),
    /// The start of a result. Body: its first bytes.
    Result {
        task: u64,
        /// Size of the result, bytes.
        total: u64,
        /// The node that computed it.
        node: u32,
        /// `true` for a result, `false` for an error text.
        ok: bool,
        form: Form,
        /// Rate at which the link is paced, MB/s of the platform. 0: it is not paced.
        rate: f64,
    },
    /// More bytes of a result.
    ResultChunk { task: u64 },
    /// Parent to child: there are no more tasks; send the reports.
    Finish,
    /// Child to parent: a piece of the report of an agent in its subtree.
    Report {
        node: u32,
        /// Part of the report: [`TOTALS`](crate::record::TOTALS), [`ROWS`](crate::record::ROWS) or
        /// [`LOG`](crate::record::LOG).
        part: u8,
        piece: Vec<u8>,
    },
    /// Child to parent: all reports of its subtree have been sent.
    Reported,
    /// Child to parent: an event in its subtree (JSON).
    Event { event: String },
    /// The connection is closed regularly.
    Bye,
    /// Child to parent: it is about to leave and accepts no more tasks. The parent sends `Finish` when the child holds
    /// none.
    Draining,
    /// Child to parent: hands back a task that it has not begun.
    HandBack { task: u64 },
    /// Parent to child: do not begin this task. The answer is `Recalled`, `Begun`, or the task's result.
    Recall { task: u64 },
    /// Child to parent: the task is withdrawn and will not be computed in its subtree. Its result, which says so, follows
    /// when the task's turn has come.
    Recalled { task: u64 },
    /// Child to parent: a node of its subtree computes the task.
    Begun { task: u64 },
    /// Child to parent, at most once for each batch: the outcomes of its first calls, and that those after the one in
    /// progress are not computed there. The meaning of the bytes is the user's.
    Partial { task: u64, outcomes: Vec<u8> },
    /// Child to parent, before a command's result: when its last attempt ran.
    Ran {
        task: u64,
        /// Start, on the root's clock, ns.
        began_ns: u64,
        took_ns: u64,
    },
    /// Child to parent: lines that a task of its subtree printed.
    Printed {
        /// The node that computes it.
        node: u32,
        task: u64,
        /// Which call of a batch, from 1; 0 for another task, and where it is not known.
        call: u32,
        /// Bytes left out before the text.
        left_out: u64,
        text: Vec<u8>,
    },
    /// Child to parent: a task exceeded its time limit, and the agent exits because only that ends the task.
    OverTime {
        task: u64,
        /// Number of attempts on this agent, including this one.
        tried: u32,
    },
}

/// A decoded frame, with its length and that of the body that follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub frame: Frame,
    pub used: usize,
    /// Bytes of body that follow.
    pub body: usize,
}

const PROVE: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const CODE: u8 = 4;
const READY: u8 = 5;
const START: u8 = 6;
const ASK: u8 = 7;
const PING: u8 = 8;
const PONG: u8 = 9;
const TASK: u8 = 10;
const CHUNK: u8 = 11;
const PACE: u8 = 12;
const SENDING: u8 = 13;
const RESULT: u8 = 14;
const RESULT_CHUNK: u8 = 15;
const FINISH: u8 = 16;
const REPORT: u8 = 17;
const REPORTED: u8 = 18;
const EVENT: u8 = 19;
const BYE: u8 = 20;
const COMPUTING: u8 = 21;
const DRAINING: u8 = 22;
const HAND_BACK: u8 = 23;
const PLACES: u8 = 24;
const SUBTREE: u8 = 25;
const TO_COME: u8 = 26;
const OVER_TIME: u8 = 27;
const RECALL: u8 = 28;
const RECALLED: u8 = 29;
const BEGUN: u8 = 30;
const NAME: u8 = 31;
const BATCH: u8 = 32;
const PARTIAL: u8 = 33;
const FUNCTION: u8 = 34;
const FORGET: u8 = 35;
const RAN: u8 = 36;
/// A refusal of its own kind, since the text of [`REFUSED`] fills the frame. Only authenticated peers get it.
const NAME_TAKEN: u8 = 37;
const PRINTED: u8 = 38;
const LAST: u8 = PRINTED;

/// Decodes the next frame. `None` while it is incomplete.
///
/// # Errors
/// If the length is larger than `limit`, or the bytes do not form a frame.
pub fn decode(bytes: &[u8], limit: usize) -> Result<Option<Decoded>, FrameError> {
    let Some(&[a, b, c, d, kind]) = bytes.get(..HEAD) else {
        // Four bytes are enough to reject a wrong length.
        if let Some(&[a, b, c, d]) = bytes.get(..4) {
            fields::length([a, b, c, d], limit)?;
        }
        return Ok(None);
    };
    let length = fields::length([a, b, c, d], limit)?;
    let rest = &bytes[HEAD..];
    let fields = length - 1;
    let mut reader = Reader { kind, bytes: &rest[..rest.len().min(fields)] };
    if let Some(fixed) = before_body(kind) {
        if fields < fixed {
            return Err(FrameError::Fields { kind, what: "too few bytes" });
        }
        if rest.len() < fixed {
            return Ok(None);
        }
        let body = fields - fixed;
        if body > LARGEST_BODY {
            return Err(FrameError::TooLarge { bytes: body, limit: LARGEST_BODY });
        }
        reader.bytes = &rest[..fixed];
        let frame = reader.frame()?;
        return Ok(Some(Decoded { frame, used: HEAD + fixed, body }));
    }
    if !(PROVE..=LAST).contains(&kind) {
        return Err(FrameError::Kind(kind));
    }
    if rest.len() < fields {
        return Ok(None);
    }
    let frame = reader.frame()?;
    if !reader.bytes.is_empty() {
        return Err(FrameError::Fields { kind, what: "too many bytes" });
    }
    Ok(Some(Decoded { frame, used: HEAD + fields, body: 0 }))
}

/// Bytes that [`decode`] needs to recognize the next frame of a body in progress. The reader fetches this many and no
/// more, so that the body's bytes go from the socket straight to their destination.
pub const CHUNK_HEAD: usize = HEAD + 8;

/// Size of the fields before the body, bytes. `None` for kinds without a body.
fn before_body(kind: u8) -> Option<usize> {
    match kind {
        TASK => Some(8 + 8 + 8 + 1 + 8),
        RESULT => Some(8 + 8 + 4 + 1 + 1 + 8),
        CHUNK | RESULT_CHUNK => Some(8),
        _ => None,
    }
}

impl Reader<'_> {
    /// Reads a finite number of at least 0.
    fn amount(&mut self) -> Result<f64, FrameError> {
        let value = f64::from_bits(self.u64()?);
        if value.is_finite() && value >= 0.0 { Ok(value) } else { self.wrong("a number that is no amount") }
    }

    fn form(&mut self) -> Result<Form, FrameError> {
        self.flag().map(|blank| if blank { Form::Blank } else { Form::Bytes })
    }

    fn frame(&mut self) -> Result<Frame, FrameError> {
        Ok(match self.kind {
            PROVE => {
                let (proof, name_bytes) = (self.take()?, self.take().map(u16::from_be_bytes)?);
                let Some((name, about)) = self.bytes.split_at_checked(name_bytes.into()) else {
                    return self.wrong("a name longer than itself");
                };
                let (name, about) = (name.to_vec(), about.to_vec());
                self.bytes = &[];
                Frame::Prove { proof, name: self.as_text(name)?, about: self.as_text(about)? }
            }
            WELCOME => Frame::Welcome { proof: self.take()?, settings: self.rest() },
            REFUSED => Frame::Refused { refusal: Refusal::Final, why: self.text()? },
            NAME_TAKEN => Frame::Refused { refusal: Refusal::NameTaken, why: self.text()? },
            CODE => Frame::Code { last: self.flag()?, piece: self.rest() },
            READY => Frame::Ready { agents: self.u32()?, tasks: self.u64()? },
            START => Frame::Start { root_ns: self.u64()? },
            ASK => Frame::Ask { tasks: self.u64()? },
            PING => Frame::Ping { child_ns: self.u64()? },
            PONG => Frame::Pong { child_ns: self.u64()?, root_ns: self.u64()? },
            TASK => Frame::Task {
                task: self.u64()?,
                total: self.u64()?,
                work: self.amount()?,
                form: self.form()?,
                rate: self.amount()?,
            },
            CHUNK => Frame::Chunk { task: self.u64()? },
            PACE => Frame::Pace { rate: self.amount()? },
            SENDING => Frame::Sending { rate: self.amount()? },
            PLACES => Frame::Places { tasks: self.u64()? },
            TO_COME => Frame::RemainingHint { tasks: self.u64()? },
            RECALL => Frame::Recall { task: self.u64()? },
            RECALLED => Frame::Recalled { task: self.u64()? },
            BEGUN => Frame::Begun { task: self.u64()? },
            NAME => Frame::Name { task: self.u64()?, name: self.rest() },
            BATCH => Frame::Batch { task: self.u64()? },
            FUNCTION => Frame::Function { task: self.u64()?, number: self.u64()?, bytes: self.u64()? },
            FORGET => Frame::Forget { number: self.u64()? },
            PARTIAL => Frame::Partial { task: self.u64()?, outcomes: self.rest() },
            RAN => Frame::Ran { task: self.u64()?, began_ns: self.u64()?, took_ns: self.u64()? },
            PRINTED => Frame::Printed {
                node: self.u32()?,
                task: self.u64()?,
                call: self.u32()?,
                left_out: self.u64()?,
                text: self.rest(),
            },
            OVER_TIME => Frame::OverTime { task: self.u64()?, tried: self.u32()? },
            SUBTREE => Frame::Subtree(Subtree {
                compute_per_s: self.amount()?,
                uses_tasks_per_s: self.amount()?,
                empties_tasks_per_s: self.amount()?,
                longest_send_s: self.amount()?,
            }),
            RESULT => Frame::Result {
                task: self.u64()?,
                total: self.u64()?,
                node: self.u32()?,
                ok: self.flag()?,
                form: self.form()?,
                rate: self.amount()?,
            },
            RESULT_CHUNK => Frame::ResultChunk { task: self.u64()? },
            FINISH => Frame::Finish,
            REPORT => {
                let (node, [part]) = (self.u32()?, self.take()?);
                Frame::Report { node, part, piece: self.rest() }
            }
            REPORTED => Frame::Reported,
            EVENT => Frame::Event { event: self.text()? },
            BYE => Frame::Bye,
            COMPUTING => Frame::Computing { task: self.u64()? },
            DRAINING => Frame::Draining,
            HAND_BACK => Frame::HandBack { task: self.u64()? },
            other => return Err(FrameError::Kind(other)),
        })
    }
}

impl Frame {
    /// Appends the frame, with a length that includes `body` bytes to follow.
    pub fn encode(&self, body: usize, out: &mut Vec<u8>) {
        let start = fields::begin(out);
        self.fields(out);
        fields::end(start, body, out);
    }

    fn fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Prove { proof, name, about } => {
                out.push(PROVE);
                out.extend(proof);
                out.extend((name.len() as u16).to_be_bytes());
                out.extend(name.as_bytes());
                out.extend(about.as_bytes());
            }
            Self::Welcome { proof, settings } => {
                out.push(WELCOME);
                out.extend(proof);
                out.extend(settings);
            }
            Self::Refused { refusal, why } => {
                out.push(if *refusal == Refusal::NameTaken { NAME_TAKEN } else { REFUSED });
                out.extend(why.as_bytes());
            }
            Self::Code { last, piece } => {
                out.extend([CODE, u8::from(*last)]);
                out.extend(piece);
            }
            Self::Ready { agents, tasks } => {
                out.push(READY);
                out.extend(agents.to_be_bytes());
                out.extend(tasks.to_be_bytes());
            }
            Self::Start { root_ns } => long(out, START, *root_ns),
            Self::Ask { tasks } => long(out, ASK, *tasks),
            Self::Ping { child_ns } => long(out, PING, *child_ns),
            Self::Pong { child_ns, root_ns } => {
                long(out, PONG, *child_ns);
                out.extend(root_ns.to_be_bytes());
            }
            Self::Task { task, total, work, form, rate } => {
                long(out, TASK, *task);
                out.extend(total.to_be_bytes());
                out.extend(work.to_bits().to_be_bytes());
                out.push(u8::from(*form == Form::Blank));
                out.extend(rate.to_bits().to_be_bytes());
            }
            Self::Chunk { task } => long(out, CHUNK, *task),
            Self::Pace { rate } => long(out, PACE, rate.to_bits()),
            Self::Sending { rate } => long(out, SENDING, rate.to_bits()),
            Self::Result { task, total, node, ok, form, rate } => {
                long(out, RESULT, *task);
                out.extend(total.to_be_bytes());
                out.extend(node.to_be_bytes());
                out.extend([u8::from(*ok), u8::from(*form == Form::Blank)]);
                out.extend(rate.to_bits().to_be_bytes());
            }
            Self::ResultChunk { task } => long(out, RESULT_CHUNK, *task),
            Self::Finish => out.push(FINISH),
            Self::Report { node, part, piece } => {
                out.push(REPORT);
                out.extend(node.to_be_bytes());
                out.push(*part);
                out.extend(piece);
            }
            Self::Reported => out.push(REPORTED),
            Self::Places { tasks } => long(out, PLACES, *tasks),
            Self::RemainingHint { tasks } => long(out, TO_COME, *tasks),
            Self::Subtree(Subtree { compute_per_s, uses_tasks_per_s, empties_tasks_per_s, longest_send_s }) => {
                long(out, SUBTREE, compute_per_s.to_bits());
                for amount in [uses_tasks_per_s, empties_tasks_per_s, longest_send_s] {
                    out.extend(amount.to_bits().to_be_bytes());
                }
            }
            Self::Event { event } => {
                out.push(EVENT);
                out.extend(event.as_bytes());
            }
            Self::Bye => out.push(BYE),
            Self::Computing { task } => long(out, COMPUTING, *task),
            Self::Draining => out.push(DRAINING),
            Self::HandBack { task } => long(out, HAND_BACK, *task),
            Self::Recall { task } => long(out, RECALL, *task),
            Self::Recalled { task } => long(out, RECALLED, *task),
            Self::Begun { task } => long(out, BEGUN, *task),
            Self::Name { task, name } => {
                long(out, NAME, *task);
                out.extend(name);
            }
            Self::Batch { task } => long(out, BATCH, *task),
            Self::Function { task, number, bytes } => {
                long(out, FUNCTION, *task);
                out.extend(number.to_be_bytes());
                out.extend(bytes.to_be_bytes());
            }
            Self::Forget { number } => long(out, FORGET, *number),
            Self::Partial { task, outcomes } => {
                long(out, PARTIAL, *task);
                out.extend(outcomes);
            }
            Self::Ran { task, began_ns, took_ns } => {
                long(out, RAN, *task);
                out.extend(began_ns.to_be_bytes());
                out.extend(took_ns.to_be_bytes());
            }
            Self::Printed { node, task, call, left_out, text } => {
                out.push(PRINTED);
                out.extend(node.to_be_bytes());
                out.extend(task.to_be_bytes());
                out.extend(call.to_be_bytes());
                out.extend(left_out.to_be_bytes());
                out.extend(text);
            }
            Self::OverTime { task, tried } => {
                long(out, OVER_TIME, *task);
                out.extend(tried.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
        let amount = || 0.0..1e9f64;
        prop_oneof![
            (any::<[u8; 32]>(), ".{0,20}", ".{0,40}").prop_map(|(proof, name, about)| Frame::Prove {
                proof,
                name,
                about
            }),
            (any::<[u8; 32]>(), bytes()).prop_map(|(proof, settings)| Frame::Welcome { proof, settings }),
            ".{0,40}".prop_map(|why| Frame::Refused { refusal: Refusal::Final, why }),
            ".{0,40}".prop_map(|why| Frame::Refused { refusal: Refusal::NameTaken, why }),
            (any::<bool>(), bytes()).prop_map(|(last, piece)| Frame::Code { last, piece }),
            (any::<u32>(), any::<u64>()).prop_map(|(agents, tasks)| Frame::Ready { agents, tasks }),
            any::<u64>().prop_map(|root_ns| Frame::Start { root_ns }),
            any::<u64>().prop_map(|tasks| Frame::Ask { tasks }),
            any::<u64>().prop_map(|child_ns| Frame::Ping { child_ns }),
            (any::<u64>(), any::<u64>()).prop_map(|(child_ns, root_ns)| Frame::Pong { child_ns, root_ns }),
            (any::<u64>(), any::<u64>(), amount(), any::<bool>(), amount()).prop_map(
                |(task, total, work, blank, rate)| {
                    Frame::Task { task, total, work, form: if blank { Form::Blank } else { Form::Bytes }, rate }
                }
            ),
            any::<u64>().prop_map(|task| Frame::Chunk { task }),
            amount().prop_map(|rate| Frame::Pace { rate }),
            amount().prop_map(|rate| Frame::Sending { rate }),
            any::<u64>().prop_map(|task| Frame::Computing { task }),
            any::<u64>().prop_map(|tasks| Frame::Places { tasks }),
            (amount(), amount(), amount(), amount()).prop_map(|(compute_per_s, uses, empties, longest_send_s)| {
                let (uses_tasks_per_s, empties_tasks_per_s) = (uses, empties);
                Frame::Subtree(Subtree { compute_per_s, uses_tasks_per_s, empties_tasks_per_s, longest_send_s })
            }),
            (any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>(), amount()).prop_map(
                |(task, total, node, ok, rate)| { Frame::Result { task, total, node, ok, form: Form::Bytes, rate } }
            ),
            any::<u64>().prop_map(|task| Frame::ResultChunk { task }),
            (any::<u32>(), any::<u8>(), bytes()).prop_map(|(node, part, piece)| Frame::Report { node, part, piece }),
            ".{0,40}".prop_map(|event| Frame::Event { event }),
            Just(Frame::Finish),
            Just(Frame::Reported),
            Just(Frame::Bye),
            Just(Frame::Draining),
            any::<u64>().prop_map(|task| Frame::HandBack { task }),
            any::<u64>().prop_map(|task| Frame::Recall { task }),
            any::<u64>().prop_map(|task| Frame::Recalled { task }),
            any::<u64>().prop_map(|task| Frame::Begun { task }),
            (any::<u64>(), bytes()).prop_map(|(task, name)| Frame::Name { task, name }),
            any::<u64>().prop_map(|task| Frame::Batch { task }),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(task, number, bytes)| Frame::Function {
                task,
                number,
                bytes
            }),
            any::<u64>().prop_map(|number| Frame::Forget { number }),
            (any::<u64>(), bytes()).prop_map(|(task, outcomes)| Frame::Partial { task, outcomes }),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(task, began_ns, took_ns)| Frame::Ran {
                task,
                began_ns,
                took_ns
            }),
            (any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>(), bytes())
                .prop_map(|(node, task, call, left_out, text)| Frame::Printed { node, task, call, left_out, text }),
            (any::<u64>(), any::<u32>()).prop_map(|(task, tried)| Frame::OverTime { task, tried }),
        ]
    }

    fn has_body(frame: &Frame) -> bool {
        matches!(frame, Frame::Task { .. } | Frame::Chunk { .. } | Frame::Result { .. } | Frame::ResultChunk { .. })
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read_and_no_byte_more(frame in frames(), body in 0usize..1000) {
            let body = if has_body(&frame) { body } else { 0 };
            let mut wire = Vec::new();
            frame.encode(body, &mut wire);
            wire.extend(std::iter::repeat_n(7, body + 3));
            let decoded = decode(&wire, LARGEST_FRAME).expect("right").expect("whole");
            prop_assert_eq!(&decoded.frame, &frame);
            prop_assert_eq!(decoded.body, body);
            prop_assert_eq!(decoded.used, wire.len() - body - 3);
        }

        #[test]
        fn a_frame_cut_short_is_waited_for(frame in frames(), share in 0.0..1.0f64) {
            let mut wire = Vec::new();
            frame.encode(0, &mut wire);
            let cut = (wire.len() as f64 * share) as usize;
            prop_assert_eq!(decode(&wire[..cut], LARGEST_FRAME).expect("not wrong"), None);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_or_read_past_them(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(decoded)) = decode(&bytes, LARGEST_FRAME) {
                prop_assert!(decoded.used <= bytes.len());
            }
        }

        #[test]
        fn any_fields_of_a_known_kind_are_a_frame_or_an_error(kind in 0u8..=LAST + 1, fields in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut wire = (fields.len() as u32 + 1).to_be_bytes().to_vec();
            wire.push(kind);
            wire.extend(&fields);
            if let Ok(Some(decoded)) = decode(&wire, LARGEST_FRAME) {
                // Whatever was decoded encodes to the same bytes.
                let mut again = Vec::new();
                decoded.frame.encode(decoded.body, &mut again);
                prop_assert_eq!(&again[..], &wire[..decoded.used]);
            }
        }
    }

    #[test]
    fn a_length_that_lies_is_refused_by_its_first_four_bytes() {
        let error = decode(&[0xff, 0xff, 0xff, 0xff], LARGEST_FRAME).expect_err("refused");
        assert_eq!(error, FrameError::TooLarge { bytes: 0xffff_ffff, limit: LARGEST_FRAME });
        assert!(decode(&[0, 0, 0x20, 0], 4 << 10).is_err());
        assert!(decode(&[0, 0, 0, 0], LARGEST_FRAME).is_err());
    }
}
