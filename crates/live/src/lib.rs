//! Runs farms and parallel programs in wall time: the agents of a tree of nodes, or the ranks of a program, over TCP, with
//! the very policies that the simulator drives.
//!
//! | question | module |
//! |---|---|
//! | how does a farm of agents run? | [`farm`] |
//! | with what does every connection begin? | [`protocol`] |
//! | how are connections authenticated? | `listener`, `dial`, with what `crosswind-access` asks for |
//! | how do the ranks of a parallel program run? | [`ranks`] |
//! | which of two classes' messages leaves a host next? | [`filter`] |
//! | how long do streams of messages take through it? | [`streams`] |
//!
//! It decides nothing: the order of service is the policy's (`crosswind-policy`). It knows no Python.

mod dial;
pub mod error;
pub mod farm;
pub mod filter;
mod listener;
pub mod log;
pub mod protocol;
pub mod ranks;
pub mod streams;

pub use error::LiveError;
