//! Discrete-event simulation of messages of two classes passing through network interfaces and a switch.
//!
//! Each host has an interface with one or two queues, a link to the switch, a link back, and a receiving program.
//! Messages are cut into frames. `crosswind_policy::queue`, the same code that the live filter runs, decides which
//! frame leaves next and how many may be in flight to a receiver. This module draws no random numbers (the schema crate
//! does) and contains no closed forms (its tests do).
//!
//! A stream is measured three times: alone (T1), together with all others through one queue (T2), and through the
//! queues of the experiment (T3). Lengths and gaps of its operations are the same in all three.
//!
//! # What is not here
//!
//! Not modelled: more than one switch, link capacity used by acknowledgements and credits, transmission errors. Without
//! `network.processor` in the description, a job's computing times are fixed.
//!
//! | question | file |
//! |---|---|
//! | which streams and jobs are present, and which event is next? | `engine`, `slots` |
//! | when does a stream's next message begin, what is timed? | `traffic` |
//! | what does a parallel program send? | `job` |
//! | which frame goes onto the link, and when? | `output`, `pace` |
//! | what does the switch do with it? | `port` |
//! | when is it with the receiving program? | `input` |
//! | how much processor time do messages take from a host's job? | `processor` |
//! | how many frames may a sender have in flight? | `credits`, `flow` |
//! | what is the outcome? | `outcome` |
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
