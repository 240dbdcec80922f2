//! Overlap: processes that only compute and processes that only communicate, and how long each takes beside the
//! other.
//!
//! Live versions of the programs of quadrics-overlap, section 3: `burn_cycles` is [`burn`] and `dping` is [`ping`],
//! with [`echo`] as its other end at a peer (`crosswind serve`). `python/crosswind/overlap/` decides which run
//! together and how often. Each program here runs once, from a common start, and reports when it ended.

pub mod burn;
pub mod echo;
pub mod line;
pub mod ping;
pub mod spec;
