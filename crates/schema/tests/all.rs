//! All integration tests in one program: compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot continue must stop

mod any_bytes;
mod disturbances;
mod experiments;
mod json_schema_files;
mod program_experiments;
mod refusals;
mod streams_experiments;
mod timelines;
