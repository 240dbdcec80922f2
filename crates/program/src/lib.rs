//! What the ranks of a parallel program do: streams of operations, produced as they are needed, with real data.
//!
//! No I/O, no clock, no thread, so the simulator and the agents drive the very same ranks: the one in virtual time, the
//! other over TCP. It moves no bytes and knows no time but that of undisturbed computation.
//!
//! | question | module |
//! |---|---|
//! | what can a rank do? | [`op`] |
//! | what is a rank, and what a program? | [`rank`] |
//! | which one does an experiment name? | [`chosen`] |
//! | the programs of scheduling-and-communication | [`cholesky`], [`column`], [`connect`], [`em3d`], [`sample`] |
//! | halo exchange and allreduce? | [`bsp`] |
//! | what NAS kernels send, superstep by superstep? | [`nas`] |
//! | a schedule in LogGOPSim's format? | [`goal`] |
//! | how do I run one without time, in any order? | [`plain`] |
//! | where do random data come from? | [`random`] |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bsp;
pub mod cholesky;
pub mod chosen;
pub mod column;
pub mod connect;
pub mod em3d;
pub mod goal;
pub mod nas;
pub mod op;
pub mod plain;
pub mod random;
pub mod rank;
pub mod sample;
mod sorting;

pub use bsp::Bsp;
pub use cholesky::Cholesky;
pub use chosen::{NoProgram, ProgramVisitor, with_program};
pub use column::Column;
pub use connect::Connect;
pub use em3d::Em3d;
pub use goal::{Goal, GoalError};
pub use nas::Skeleton;
pub use op::{Body, Kind, Op};
pub use rank::{Program, Rank, Reply};
pub use sample::Sample;
