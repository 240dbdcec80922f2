//! Disturbs a command from outside, and records the noise that this machine has anyway.
//!
//! | question | module |
//! |---|---|
//! | how are processors taken away from a command? | [`inject`] |
//! | what takes this machine's processors away? | [`noise`] |
//! | when could a rank's threads not run, and what kept them? | [`preemption`] |
//! | which process and container does a thread belong to? | [`process`] |
//! | what did an earlier command leave behind? | [`leftovers`] |
//! | which errors occur? | [`error`] |
//!
//! Separate processes (`crosswind_linux::freezer`, `watchdog`) undo every change, however this process ends.

pub mod error;
pub mod inject;
pub mod leftovers;
pub mod noise;
pub mod preemption;
pub mod process;

pub use error::DisturbError;
