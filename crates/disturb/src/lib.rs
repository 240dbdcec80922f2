//! Disturbs a command from outside, and records what disturbs this machine anyway.
//!
//! | question | module |
//! |---|---|
//! | how are processors taken away from a command? | [`inject`] |
//! | what takes this machine's processors away? | [`noise`] |
//! | what did an earlier command leave? | [`leftovers`] |
//! | why can it not be done? | [`error`] |
//!
//! What it changed is undone by processes of their own (`crosswind_linux::freezer`, `watchdog`), however it ends.

pub mod error;
pub mod inject;
pub mod leftovers;
pub mod noise;

pub use error::DisturbError;
