//! Runs farms and parallel programs in wall time: the agents of a tree of nodes, or the ranks of a program, over TCP, with
//! the very policies that the simulator drives.
//!
//! | question | module |
//! |---|---|
//! | what do agents say to each other, as bytes? | [`frame`], [`fields`] |
//! | how are connections authenticated? | `door`, `dial`, with what `crosswind-access` asks for |
//! | how do bytes get from one to the other? | `link`, `transfer`, [`payload`] |
//! | what does a node do with what the policy says? | `station` |
//! | what is the way of a run, from gathering to reports? | `turn` (the loop), `phases` |
//! | what computes? | [`executor`], [`command`], `emulated` |
//! | how is a root, how an agent started? | [`root`], [`agent`] |
//! | how are tasks handed over from other threads? | [`desk`] |
//! | what survives the root? | [`keeper`], [`journal`] |
//! | what disturbs a command from outside? | [`inject`] |
//! | what disturbs this machine anyway? | [`noise`] |
//! | what undoes what those changed? | [`watchdog`] |
//! | what ends with a task? | [`task_processes`] |
//! | what is left of a run? | [`record`], [`replay`] |
//! | how do the ranks of a parallel program run? | [`ranks`] |
//! | which of two classes' messages leaves a host next? | [`filter`] |
//! | how long do streams of messages take through it? | [`streams`] |
//!
//! It decides nothing: the order of service is the policy's (`crosswind-policy`). It knows no Python.

pub mod agent;
mod clock;
pub mod command;
pub mod desk;
mod dial;
pub mod diary;
mod door;
mod emulated;
pub mod error;
pub mod executor;
pub mod fields;
pub mod filter;
pub mod frame;
pub mod inject;
pub mod journal;
pub mod keeper;
mod late;
mod link;
pub mod linux;
pub mod noise;
pub mod payload;
mod phases;
pub mod ranks;
pub mod record;
pub mod replay;
pub mod root;
pub mod settings;
mod station;
pub mod streams;
pub mod task_processes;
mod transfer;
mod turn;
pub mod watchdog;

pub use error::LiveError;
