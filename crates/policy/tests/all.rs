//! All tests of the public interface, in one program, because compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot continue must stop

mod coscheduling;
mod node;
mod queue;
mod queue_credits;
mod window;
