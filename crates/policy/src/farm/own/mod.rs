//! A policy of the user's own: which child gets which task next.
//!
//! [`OwnPolicy`] decides, for one node. [`OwnNode`] does everything else: it requests tasks from the parent, counts what
//! children requested, and refuses choices that are not permitted. Simulated only: `crosswind_sim::simulate_with`.

mod node;
mod policy;
mod state;

pub use node::OwnNode;
pub use policy::{Choice, OwnPolicy};
pub use state::{OwnChild, OwnState};
