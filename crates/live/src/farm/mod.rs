//! A farm in wall time: one process is one node of a tree, and tasks travel down it, results up.
//!
//! | question | module |
//! |---|---|
//! | how is a root, how an agent started? | [`root`], [`agent`] |
//! | how do bytes get from one to the other? | `link`, `transfer`, [`payload`] |
//! | what does a node do with what the policy says? | `station` |
//! | what is the way of a run, from gathering to reports? | `turn` (the loop), `phases` |
//! | what computes? | [`executor`], [`command`], `emulated` |
//! | where do other threads hand tasks over? | [`desk`] |
//! | what survives the root? | [`keeper`], [`journal`] |
//! | what ends with a task? | [`task_processes`] |
//! | what is left of a run? | [`record`], [`replay`] |

pub mod agent;
mod clock;
pub mod command;
pub mod desk;
mod emulated;
pub mod executor;
pub mod journal;
pub mod keeper;
mod late;
pub(crate) mod link;
pub mod payload;
mod phases;
pub mod record;
pub mod replay;
pub mod root;
pub mod settings;
mod station;
pub mod task_processes;
mod transfer;
mod turn;
