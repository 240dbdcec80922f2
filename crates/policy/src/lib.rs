//! Scheduling policies as deterministic state machines: events in, commands out.
//!
//! No I/O, clock, thread or randomness (`clippy.toml` forbids the calls), so the simulator drives the same code in
//! virtual time as the agents do in wall time. The crate moves no bytes and executes no tasks.
//!
//! | module | decides |
//! |---|---|
//! | [`farm`] | what a node of a farm does next: compute, send, request, return |
//! | [`heap`] | priority queue for keys that change |
//! | [`queue`] | which class's frame leaves a network interface next, and whether it may |
//! | [`window`] | whether a rank of a parallel program may send another packet |
//! | [`coscheduling`] | which messages move in the next slice, if all nodes agree on slices |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod coscheduling;
pub mod farm;
pub mod heap;
pub mod queue;
pub mod window;
