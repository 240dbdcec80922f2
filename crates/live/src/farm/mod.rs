//! A farm in wall time: one process is one node of a tree, and tasks travel down it, results up.
//!
//! | question | module |
//! |---|---|
//! | how is a root, how an agent started? | [`root`], [`agent`] |
//! | how do bytes get from one to the other? | `link`, `transfer`, [`payload`] |
//! | what does a node do with what the policy says? | `station` |
//! | what is the way of a run, from gathering to reports? | `turn` (the loop), `phases` |
//! | what computes? | [`executor`], [`command`] |
//! | where do other threads hand tasks over? | [`desk`] |
//! | what survives the root? | [`keeper`], [`journal`] |
//! | what ends with a task? | [`task_processes`] |
//! | what is left of a run? | [`replay`] |

pub mod agent;
pub mod command;
pub mod desk;
pub mod executor;
pub mod journal;
pub mod keeper;
pub(crate) mod link;
pub mod payload;
mod phases;
pub mod replay;
pub mod root;
mod station;
pub mod task_processes;
mod transfer;
mod turn;
