//! The probe: computes and communicates at the same time on a real machine and counts both.
//!
//! It executes; it does not design. Which levels come when, and when enough is known, is decided in
//! `python/crosswind/measure/`. It fits nothing either: rows of amounts go out, one per sampling interval.
//!
//! - [`kernel`]: what computes, [`pages`]: in which memory. [`flow`]: what moves bytes. [`pacer`]: what keeps the rate.
//! - [`peer`]: the other end (`crosswind serve`). [`link`]: this end's view of it. [`protocol`]: what they say.
//! - [`work`]: what is driven: our own threads, or a [`foreign`] process that speaks to us by lines.
//! - [`overlap`]: burners and pings as programs of their own, for `crosswind overlap`.
//! - [`sampler`]: reads all counters at one instant. [`probe`]: puts the parts together.

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
