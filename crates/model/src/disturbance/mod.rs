//! What scheduling disturbances cost a parallel program, in closed form, and what it tolerates.
//!
//! Slowdowns are of the makespan over that of a program whose ranks are always away together (dedicated time times jobs).
//! A barrier program is one whose ranks all compute `work_s` between any two barriers. Messages cost nothing here.
//!
//! | question | module |
//! |---|---|
//! | how slow is a barrier program, or any, under one kind of disturbance? | [`slowdown`] |
//! | which of these apply to a disturbance file? | [`bounds`] |
//! | which quantum, skew, daemon, share, number of ranks keeps a stated slowdown? | [`tolerance`] |
//! | what does each kind of source cost, what may its fields be? | `source` |
//!
//! Source: derived for scheduling-and-communication (docs/papers/), which measures and has no formulas.

pub mod bounds;
pub mod slowdown;
mod source;
pub mod tolerance;

pub use bounds::{Bounds, bounds};
pub use tolerance::{Limit, Relation, Tolerance, tolerance};
