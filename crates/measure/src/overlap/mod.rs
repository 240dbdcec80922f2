//! Overlap: processes that only compute, processes that only communicate, and how long each takes beside the other.
//!
//! The programs of quadrics-overlap, section 3, live: `burn_cycles` is [`burn`], `dping` is [`ping`], and [`echo`] is its
//! other end, at a peer (`crosswind serve`). Which of them run together, and how often, is decided in
//! `python/crosswind/overlap/`; each runs once here, from a common start, and tells when it was done.

pub mod burn;
pub mod echo;
pub mod line;
pub mod ping;
pub mod spec;
