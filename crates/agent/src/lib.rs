//! A farm agent's logic: what happens to it comes in as calls with the time, what it does comes out as actions.
//!
//! | question | module |
//! |---|---|
//! | what do agents send each other, as bytes? | [`frame`], [`fields`] |
//! | what is a run about? | [`settings`] |
//! | what is left of a run? | [`record`] |
//!
//! No socket, thread, process, file or clock (`clippy.toml` forbids the calls): `crosswind-live` has those and drives this
//! in wall time; `crosswind-faults` drives whole farms of it in virtual time.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod clock;
pub mod emulated;
pub mod error;
pub mod fields;
pub mod frame;
pub mod late;
pub mod record;
pub mod settings;

pub use error::SettingsError;
