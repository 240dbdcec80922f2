//! Deterministic simulation testing of whole farms: agents under random faults in virtual time, as FoundationDB and
//! TigerBeetle do it.
//!
//! | module | contents |
//! |---|---|
//! | [`schedule`], [`random`] | the tree, tasks and faults generated from a seed |
//! | [`wire`] | frames as bytes, by the codec of real agents |
//! | [`bytes`] | content of tasks and results |
//! | [`world`] | the simulated farm, and the invariants |
//! | [`shrink`] | reduction of a failing schedule |
//!
//! Invariants checked for each schedule: every task is answered once, by its own result or with a reason, or is withdrawn
//! on its user's request, and then no node begins it; the root and all agents end; an agent that ended regularly holds no task and no byte. At sampled moments when nothing is in
//! transit between a parent and a child, both must agree on the number of outstanding tasks.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bytes;
pub mod random;
pub mod schedule;
pub mod shrink;
pub mod wire;
pub mod world;
