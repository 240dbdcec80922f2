//! All tests of the public API in one program, because compiling and linking each file by itself would take minutes.

#![allow(clippy::unwrap_used)] // failures in tests panic

mod between;
mod farm;
mod filter;
mod filter_peers;
mod filter_windows;
mod ranks;
mod ranks_lost;
mod ranks_programs;
mod scripted;
mod tls;
mod tree;
