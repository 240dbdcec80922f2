//! A farm in wall time. Each process is one node of a tree; tasks travel down the tree and results up.
//!
//! | question | module |
//! |---|---|
//! | how are the root and the agents started? | [`root`], [`agent`] |
//! | how do bytes travel between nodes? | `link`, `transfer`, [`payload`] |
//! | what does an agent decide? | not this crate: `crosswind-agent` |
//! | what carries out an agent's decisions? | `runtime` |
//! | what waits for sockets, timers and the computing thread? | `event_loop` |
//! | what computes? | [`executor`], [`command`] |
//! | how do other threads submit and withdraw tasks? | [`task_source`], `recalls` |
//! | how does what tasks print reach the user? | [`printer`], `capture` |
//! | what survives the root? | [`result_writer`], [`journal`] |
//! | which inputs are there? | [`names`] |
//! | which processes end with a task? | [`task_processes`] |
//! | what can another process read about a running node? | `status_file` |
//! | how is a recorded run replayed? | [`replay`] |

pub mod agent;
mod capture;
pub mod command;
mod event_loop;
pub mod executor;
pub mod function;
pub mod journal;
pub(crate) mod link;
pub mod names;
pub mod payload;
pub mod printer;
mod recalls;
pub mod replay;
pub mod result_writer;
pub mod root;
mod runtime;
mod status_file;
pub mod task_processes;
pub mod task_source;
mod transfer;
