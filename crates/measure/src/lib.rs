//! The probe: computes and communicates at the same time on a real machine, and counts both.
//!
//! It executes a design and does not make one: `python/crosswind/measure/` chooses the levels and decides when to
//! stop. It fits no model either; it returns one row of amounts per sampling interval.
//!
//! - [`kernel`]: the computation, and [`pages`], its memory. [`flow`]: the traffic threads. [`pacer`]: their pacing.
//! - [`peer`]: the other end (`crosswind serve`). [`link`]: this end's view of it. [`protocol`]: their messages.
//! - [`work`]: the driven workload, this process's threads or a [`foreign`] process that speaks a line protocol.
//! - [`overlap`]: burners and pings as standalone programs, for `crosswind overlap`.
//! - [`sampler`]: reads all counters at one instant. [`probe`]: combines the parts.

pub mod config;
pub mod error;
pub mod flow;
pub mod foreign;
pub mod kernel;
pub mod link;
pub mod loader;
pub mod overlap;
pub mod pacer;
pub mod pages;
pub mod peer;
pub mod placement;
pub mod probe;
pub mod protocol;
pub mod sampler;
pub mod socket;
pub mod work;

pub use config::Config;
pub use error::MeasureError;
pub use probe::Probe;
