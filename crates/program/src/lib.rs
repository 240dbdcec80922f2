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
//! | the programs of scheduling-and-communication | [`papers`] |
//! | halo exchange and allreduce? | [`bsp`] |
//! | what NAS kernels send, superstep by superstep? | [`nas`] |
//! | a schedule in LogGOPSim's format? | [`goal`] |
//! | how do I run one without time, in any order? | [`plain`] |
//! | where do random data come from? | [`random`] |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bsp;
pub mod chosen;
pub mod goal;
pub mod nas;
pub mod op;
pub mod papers;
pub mod plain;
pub mod random;
pub mod rank;

pub use bsp::Bsp;
pub use chosen::{NoProgram, ProgramVisitor, with_program};
pub use goal::{Goal, GoalError};
pub use nas::Skeleton;
pub use op::{Body, Kind, Op};
pub use papers::cholesky::Cholesky;
pub use papers::column::Column;
pub use papers::connect::Connect;
pub use papers::em3d::Em3d;
pub use papers::sample::Sample;
pub use rank::{Program, Rank, Reply};
