//! What a node finds out while it runs: how fast its links and its processor are, and what sends and receives cost it.
//!
//! Pure, as all of this crate: times come in as numbers, seconds of any clock that all calls share. Every node estimates
//! what it can see itself: its own processor, and its children's links, since it is the one that sends. What a child's
//! subtree can use, the child says.
//!
//! | file | question |
//! |---|---|
//! | `estimator` | what does a node see, and what follows for its children and its parent? |
//! | `rate` | how fast is a link? |
//! | `compute` | how fast is the processor, and what does traffic cost it? |
//! | `change` | has something changed, so that older observations mean nothing? |
//! | [`observing`] | which transfers and which work count? |
//! | `flow` | how many MB have passed by a time? |

mod change;
mod compute;
mod estimator;
mod flow;
pub mod observing;
mod rate;

pub use estimator::{Estimator, Observed, ObservedChild, Revision, Subtree};
pub use rate::Estimate;
