//! All tests of the public interface in one binary: compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a failed step must stop the test

mod any_order;
mod granularity;
mod nas;
