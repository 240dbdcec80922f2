//! A farm agent's logic: what happens to it comes in as calls with the time, what it does comes out as actions.
//!
//! | question | module |
//! |---|---|
//! | what does an agent do with what its policy says? | [`agent`] |
//! | what passes between the logic and what drives it? | [`action`] |
//! | what is the course of a run, from gathering to reports; how does an agent leave? | [`phases`] |
//! | what does a frame from a child or the parent, or silence, change? | `hearing` |
//! | which children are there; what if one is lost, drains, joins? | `children`, [`admitting`] |
//! | how much may a child ask for and tell? | `allowance` |
//! | which tasks are here, and which are tried no more? | [`stock`], `limits` |
//! | what is found out while it runs? | `estimating` |
//! | how fast do emulated links and processors go? | `sharing`, `changing`, [`emulated`], [`late`] |
//! | what do agents send each other, as bytes? | [`frame`], [`fields`] |
//! | what is a run about? | [`settings`] |
//! | what is left of a run? | [`account`], [`record`] |
//!
//! No socket, thread, process, file or clock (`clippy.toml` forbids the calls): `crosswind-live` has those and drives this
//! in wall time; `crosswind-faults` drives whole farms of it in virtual time.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod account;
pub mod action;
pub mod admitting;
pub mod agent;
mod allowance;
mod changing;
mod children;
pub mod clock;
pub mod emulated;
pub mod error;
mod estimating;
pub mod fields;
pub mod frame;
mod hearing;
pub mod late;
mod limits;
pub mod phases;
pub mod record;
pub mod settings;
mod sharing;
pub mod stock;

pub use agent::Agent;
pub use error::SettingsError;
