//! Disturbs a command from outside, and records what disturbs this machine anyway.
//!
//! | question | module |
//! |---|---|
//! | how are processors taken away from a command? | [`inject`] |
//! | what takes this machine's processors away? | [`noise`] |
//! | why can it not be done? | [`error`] |
//!
//! What it changed is undone by a process of its own (`crosswind_linux::watchdog`), however it ends.

pub mod error;
pub mod inject;
pub mod noise;

pub use error::DisturbError;
