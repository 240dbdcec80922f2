//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

mod any_bytes;
mod disturbances;
mod experiments;
mod json_schema_files;
mod program_experiments;
mod refusals;
mod streams_experiments;
mod timelines;
