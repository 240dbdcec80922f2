//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

mod between;
mod farm;
mod filter;
mod filter_peers;
mod filter_windows;
mod ranks;
mod ranks_lost;
mod ranks_programs;
mod scripted;
mod sealed;
mod tree;
