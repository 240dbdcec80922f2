//! Messages of two classes through network interfaces and a switch, in virtual time.
//!
//! Each host has an interface with one queue or two, a link to the switch and one back, and a receiving program. Messages are cut
//! into frames; which leaves next, and how many may be under way to a receiver, decides `crosswind_policy::queue`, the very code
//! of the live filter. It draws nothing (the schema crate does) and knows no closed form (its tests do).
//!
//! A stream is measured three times: alone (T1), beside all others through one queue (T2), and through the queues of the
//! experiment (T3); lengths and gaps of its operations are the same in all three.
//!
//! # What is not here
//!
//! More than one switch, acknowledgements and credits that take room on links, errors of transmission. Where the description has no
//! `network.processor`, a job computes so long, whatever happens.
//!
//! | question | file |
//! |---|---|
//! | which streams and jobs are present, what happens next? | `engine`, `slots` |
//! | when does a stream's next message begin, what is timed? | `traffic` |
//! | what does a parallel program send? | `job` |
//! | which frame goes onto the link, and when? | `output`, `pace` |
//! | what does the switch do with it? | `port` |
//! | when is it with the receiving program? | `input` |
//! | what do messages take of a host's processor, and of its job? | `processor` |
//! | how many frames may a sender send? | `credits`, `flow` |
//! | what came of it? | `outcome` |
//! | what happened to each frame? | `observer` |
//!
//! Source: communication-interactions, sections 2 to 6.

mod credits;
mod engine;
mod flow;
mod input;
mod job;
mod observer;
mod outcome;
mod output;
mod pace;
mod port;
mod processor;
mod slab;
mod slots;
mod traffic;

pub use engine::Present;
pub use job::Job;
pub use observer::{Observed, Observer};
pub use outcome::{measure, simulate_streams};
pub use traffic::{Measured, MeasuredStream};
