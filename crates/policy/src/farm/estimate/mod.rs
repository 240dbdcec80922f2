//! Online estimation: how fast a node's links and processor are, and what sending and receiving cost the processor.
//!
//! Pure, like the whole crate: times are passed as numbers, in seconds of any clock that all calls share. Every node
//! estimates what it can observe itself, which is its own processor and the links to its children, because it is their
//! sender. A child reports what its subtree can use.
//!
//! | module | contents |
//! |---|---|
//! | `estimator` | what a node observes, and what follows for its children and its parent |
//! | `rate` | speed of a link |
//! | `compute` | speed of the processor, and the cost of traffic |
//! | `change` | change detection, after which older observations are dropped |
//! | [`observing`] | which transfers and which work count |
//! | `flow` | MB transferred by a given time |

mod change;
mod compute;
mod estimator;
mod flow;
pub mod observing;
mod rate;

pub use estimator::{Estimator, Observed, ObservedChild, Revision, Subtree};
pub use rate::Estimate;
