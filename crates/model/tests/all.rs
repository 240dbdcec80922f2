//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

mod contention;
mod curved;
mod disturbances;
mod golden_fork;
mod overlay;
mod steady_state;
mod streams;
