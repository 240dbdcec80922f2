//! A farm in wall time: one process is one node of a tree, and tasks travel down it, results up.
//!
//! | question | module |
//! |---|---|
//! | how is a root, how an agent started? | [`root`], [`agent`] |
//! | how do bytes get from one to the other? | `link`, `transfer`, [`payload`] |
//! | what does an agent decide? | not this crate: `crosswind-agent` |
//! | what does what an agent decides? | `runtime` |
//! | what waits for sockets, timers and the computing thread? | `event_loop` |
//! | what computes? | [`executor`], [`command`] |
//! | where do other threads hand tasks over? | [`task_source`] |
//! | what survives the root? | [`keeper`], [`journal`] |
//! | what ends with a task? | [`task_processes`] |
//! | what does another process see of a node that runs? | `standing` |
//! | what is left of a run? | [`replay`] |

pub mod agent;
pub mod command;
mod event_loop;
pub mod executor;
pub mod journal;
pub mod keeper;
pub(crate) mod link;
pub mod payload;
pub mod replay;
pub mod root;
mod runtime;
mod standing;
pub mod task_processes;
pub mod task_source;
mod transfer;
