//! What scheduling disturbances cost a parallel program, in closed form, and what it tolerates.
//!
//! Slowdowns are of the makespan over that of a program whose ranks are always away together (dedicated time times jobs).
//! A barrier program is one whose ranks all compute `work_s` between any two barriers. Messages cost nothing here.
//!
//! | question | module |
//! |---|---|
//! | how slow is a barrier program, or any, under one kind of disturbance? | [`slowdown`] |
//! | which of these apply to a disturbance file? | [`bounds`] |
//! | which quantum, skew, daemon, share, number of ranks keeps a stated slowdown? | [`bearable`] |
//!
//! Source: derived for scheduling-and-communication (docs/papers/), which measures and has no formulas.

pub mod bearable;
pub mod bounds;
pub mod slowdown;

pub use bearable::{Bearable, Limit, Relation, bearable};
pub use bounds::{Bounds, bounds};
