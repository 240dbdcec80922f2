//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

mod any_order;
mod granularity;
mod nas;
