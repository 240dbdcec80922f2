//! Does it in virtual time: what agents do in wall time, by the same policies.
//!
//! A discrete event simulation in integer nanoseconds; ties are broken by the order of scheduling, so the same input gives
//! the same bytes. It decides nothing (`crosswind-policy` does), draws nothing (the schema crate does) and reads no file.
//!
//! | question | file |
//! |---|---|
//! | what happens next? | `agenda`, `tournament` |
//! | what is a node to be told at this instant? | `inbox` |
//! | how far is a processor, whose rate falls with what the node sends and receives? | `processor` |
//! | how fast does a send go, alone or among others? | `port`, `shared` |
//! | which node does what, and when? | `farm`, `world`, `site`, `transfers`, `results`, `changes` |
//! | what do nodes find out meanwhile? | `estimates` |
//! | the same for the ranks of a parallel program | [`program`] |
//! | the same for messages of two classes through network interfaces | [`interface`] |
//! | do a ping and burners overlap on shared processors? | [`overlap`] |
//! | what came of it? | `outcome`, `trace` |
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
pub use farm::{Farm, Options, simulate};
pub use outcome::{Happened, NodeObserved, NodeOutcome, Outcome};
pub use trace::{Activity, Trace};
