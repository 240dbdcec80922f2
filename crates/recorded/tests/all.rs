//! All integration tests in one program.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test that cannot continue must stop

mod meetings;
mod memory;
mod network;
mod replay;
