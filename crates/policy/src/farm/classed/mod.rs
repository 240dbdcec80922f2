//! Farms whose tasks have classes: a node is faster for some than for others, and cannot run some at all.
//!
//! The built-in orders say which child is served. [`ClassedNode`] says with a task of which class: one that the child, or
//! a node below it, is best at compared with the others. Simulated only: `crosswind_sim::simulate_with`.

mod node;
mod taste;

pub use node::ClassedNode;
pub use taste::{Taste, tastes};
