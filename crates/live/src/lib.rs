//! Runs farms and parallel programs in wall time over TCP: the agents of a tree of nodes, or the ranks of a program. The
//! policies are the ones that the simulator drives.
//!
//! | question | module |
//! |---|---|
//! | how do agents form a farm? | [`farm`] |
//! | what does every connection begin with? | [`protocol`] |
//! | how are connections authenticated? | `listener` and `dial`, with the checks of `crosswind-access` |
//! | how do the ranks of a parallel program run? | [`ranks`] |
//! | which class of messages leaves a host next? | [`filter`] |
//! | how long do message streams take through the filter? | [`streams`] |
//!
//! This crate makes no scheduling decisions: `crosswind-policy` sets the order of service. It does not depend on Python.

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
