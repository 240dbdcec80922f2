//! Parallel programs as ranks that produce streams of operations on demand, with real data.
//!
//! Ranks have no I/O, clock or threads. The simulator and the agents therefore drive the same code, one in virtual time
//! and the other over TCP. The crate moves no bytes and models no time except undisturbed computation.
//!
//! | question | module |
//! |---|---|
//! | what can a rank do? | [`op`] |
//! | what are a rank and a program? | [`rank`] |
//! | which program does an experiment name? | [`chosen`] |
//! | the programs of scheduling-and-communication | [`papers`] |
//! | halo exchange and allreduce? | [`bsp`] |
//! | what NAS kernels send, superstep by superstep? | [`nas`] |
//! | a schedule in LogGOPSim's format? | [`goal`] |
//! | how is a program run without time, in any order? | [`plain`] |
//! | how are random data drawn? | [`random`] |
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
