//! Decisions, step by step: events in, commands out.
//!
//! No I/O, no clock, no thread, no randomness (`clippy.toml` forbids the calls), so the simulator and the agents drive
//! the very same code: the one in virtual time, the other in wall time. It moves no bytes and computes nothing.
//!
//! | question | module |
//! |---|---|
//! | what does a node of a farm do next: compute, send, ask, return? | [`farm`] |
//! | which is first, of many whose keys change? | [`heap`] |
//! | which class's frame leaves a network interface next, and may it? | [`queue`] |
//! | may a rank of a parallel program send another packet? | [`window`] |
//! | which messages move in the next slice, where all nodes agree on slices? | [`coscheduling`] |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod coscheduling;
pub mod farm;
pub mod heap;
pub mod queue;
pub mod window;
