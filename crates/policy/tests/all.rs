//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

mod coscheduling;
mod node;
mod queue;
mod queue_credits;
mod window;
