//! Runs farms and parallel programs in wall time: the agents of a tree of nodes, or the ranks of a program, over TCP, with
//! the very policies that the simulator drives.
//!
//! | question | module |
//! |---|---|
//! | how does a farm of agents run? | [`farm`] |
//! | what do all of them greet with? | [`protocol`] |
//! | who is let in? | `door`, `dial`, with what `crosswind-access` asks for |
//! | who disturbs a command that somebody else wrote? | [`inject`] |
//! | what disturbs this machine anyway? | [`noise`] |
//! | who undoes what those changed? | [`watchdog`] |
//! | how do the ranks of a parallel program run? | [`ranks`] |
//! | which of two classes' messages leaves a host next? | [`filter`] |
//! | how long do streams of messages take through it? | [`streams`] |
//!
//! It decides nothing: who is served next is the policy's (`crosswind-policy`). It knows no Python.

mod dial;
pub mod diary;
mod door;
pub mod error;
pub mod farm;
pub mod filter;
pub mod inject;
pub mod linux;
pub mod noise;
pub mod protocol;
pub mod ranks;
pub mod streams;
pub mod watchdog;

pub use error::LiveError;
