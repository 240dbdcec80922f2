//! Closed forms of the cost of scheduling disturbances to a parallel program, and of what it tolerates.
//!
//! Slowdowns compare the makespan with that of a program whose ranks are always away together (dedicated time times
//! jobs). A barrier program is one whose ranks all compute `work_s` between any two barriers. Messages cost nothing
//! here.
//!
//! | question | module |
//! |---|---|
//! | how slow is a barrier program, or any, under one kind of disturbance? | [`slowdown`] |
//! | which of these apply to a disturbance file? | [`bounds`] |
//! | which quantum, skew, daemon, share or number of ranks keeps a given slowdown? | [`tolerance`] |
//! | what does each kind of source cost, and what are the limits of its fields? | `source` |
//!
//! Source: derived for scheduling-and-communication (docs/papers/), which gives measurements but no formulas.

pub mod bounds;
pub mod slowdown;
mod source;
pub mod tolerance;

pub use bounds::{Bounds, bounds};
pub use tolerance::{Limit, Relation, Tolerance, tolerance};
