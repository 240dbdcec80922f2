//! Closed forms of what should happen: the interference law, the steady state of trees, independent tasks, scheduling
//! disturbances, contention of messages.
//!
//! No I/O, clock, threads or randomness: the same input gives the same answer (`clippy.toml` forbids the calls). The
//! crate measures and runs nothing; simulators and live runs are tested against it.
//!
//! | question | module | source |
//! |---|---|---|
//! | how fast does a node compute while it receives and sends? | [`law`] | interference-aware-scheduling, section 3.1 |
//! | how many tasks per second should each node get? | [`steady`] | the same, section 3.2 |
//! | which hosts should send to which? | [`overlay`] | no paper; each tree is rated by [`steady`] |
//! | what would a fork graph reach under the paper's policies? | [`fork`] | the same, section 4.1 |
//! | what do scheduling disturbances cost a parallel program, and what can it tolerate? | [`disturbance`] | scheduling-and-communication |
//! | what do other flows cost a parallel job's messages, and what does a second queue recover? | [`contention`] | communication-interactions |
//! | how good is "longest task first"? | [`papers::homework`] | the homework sheet |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod contention;
pub mod disturbance;
pub mod error;
pub mod fork;
pub mod law;
pub mod overlay;
pub mod papers;
pub mod steady;
pub mod streams;

pub use error::ModelError;
pub use steady::{Columns, Prepared, Rates, Task, plan, plan_columns, with_planned_lines};
