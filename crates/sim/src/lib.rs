//! Discrete-event simulator of farms, parallel programs, network interfaces and communication overlap.
//!
//! Time is in integer nanoseconds, and ties are broken by scheduling order, so the same input gives the same bytes.
//! Decisions come from `crosswind-policy`, the code that agents run in real time, and random draws from the schema
//! crate. This crate reads no files.
//!
//! | question | file |
//! |---|---|
//! | which event is next? | `agenda`, `tournament` |
//! | which events are due at a node at this instant? | `inbox` |
//! | how far is a processor's task, given that sending and receiving slow it? | `processor` |
//! | how fast is a send, alone or sharing a port? | `port`, `shared` |
//! | which node does what, and when? | `farm`, `world`, `site`, `transfers`, `results`, `changes` |
//! | what do nodes estimate meanwhile? | `estimates` |
//! | the same for the ranks of a parallel program | [`program`] |
//! | the same for messages of two classes through network interfaces | [`interface`] |
//! | do a ping and burners overlap on shared processors? | [`overlap`] |
//! | what is the outcome? | `outcome`, `trace` |
//!
//! The law: a node that receives TR MB/s and sends TR_i to its children computes at `C max(0, 1 - IR_r TR - sum IR_i TR_i)`
//! (interference-aware-scheduling, section 3.1). Rates are constant between two events, so nothing is approximated.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod agenda;
mod changes;
mod error;
mod estimates;
mod farm;
mod inbox;
pub mod interface;
mod outcome;
pub mod overlap;
mod port;
mod processor;
pub mod program;
mod results;
mod shared;
mod site;
mod time;
mod tournament;
mod trace;
mod transfers;
mod world;

pub use error::{Idle, SimError};
pub use farm::{Farm, Options, simulate, simulate_with};
pub use outcome::{Happened, NodeFailures, NodeObserved, NodeOutcome, Outcome};
pub use trace::{Activity, Trace};
