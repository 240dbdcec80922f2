//! All tests of the public interface in one binary: compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a failed step must stop the test

mod contention;
mod curved;
mod disturbances;
mod golden_fork;
mod one_sender;
mod overlay;
mod steady_state;
mod streams;
