//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

mod contention;
mod disturbances;
mod golden_fork;
mod linearised;
mod overlay;
mod steady_state;
mod streams;
