//! Whole farms of agents under drawn faults, in virtual time, as FoundationDB and TigerBeetle test.
//!
//! | question | module |
//! |---|---|
//! | what does a seed make? | [`schedule`], [`random`] |
//! | how do frames become bytes, and bytes frames? | [`wire`] |
//! | what do tasks consist of? | [`bytes`] |
//! | how does a farm go in virtual time, and what must hold? | [`world`] |
//! | which part of a schedule that fails is to blame? | [`shrink`] |
//!
//! After each schedule: every task was answered once, by its own result or with a reason; the root and all agents have
//! ended; what has ended holds no task and no byte; and while nothing was on its way between a parent and a child, both
//! agreed on how many tasks are out.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bytes;
pub mod random;
pub mod schedule;
pub mod shrink;
pub mod wire;
pub mod world;
