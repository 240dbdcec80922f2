//! All tests of the public interface in one binary: compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a failed step must stop the test

mod adaptation;
mod arrivals;
mod closed_form;
mod ending;
mod failures;
mod farms;
mod golden_fork;
mod interface_laws;
mod interface_oracles;
mod interface_processor;
mod interfaces;
mod laws;
mod overlap_oracles;
mod own_policy;
mod program_away;
mod program_bsp;
mod program_costs;
mod program_fat_tree;
mod program_goal;
mod program_goal_oracle;
mod program_laws;
mod program_oracles;
mod program_order;
mod program_threads;
mod program_windows;
mod programs;
mod reference;
mod relays;
mod returns;
mod same_bits;
