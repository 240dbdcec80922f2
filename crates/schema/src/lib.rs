//! The documents of Crosswind: files that a person can open, and the types behind them.
//!
//! A command turns one document into the next; commands share nothing else. This crate parses and validates. It
//! computes nothing, and never uses a clock, a thread or a socket.
//!
//! | document | file | module |
//! |---|---|---|
//! | Platform | `platform.toml` | [`platform`] |
//! | Links | `links.toml` | [`links`] |
//! | Experiment | `experiment.toml` | [`experiment`] |
//! | Disturbance | `disturbance.toml` | [`disturbance`] |
//! | Measurement | `measurement.parquet` (this crate: its header) | [`measurement`] |
//! | Plan | `plan.json` | [`plan`] |
//! | Overlap | `overlap.json` | [`overlap`] |
//! | Runs | `runs.json` | [`run`], [`program_run`], [`streams_run`], [`provenance`] |
//! | Hosts | `hosts.toml` | [`hosts`] |
//! | Trace | `trace.parquet` (this crate: its header) | [`trace`] |
//! | Tasks | `tasks.csv` | [`tasks_file`] |
//! | Simulated overlap | (between Python and the simulator) | [`simulated_overlap`] |

pub mod compute;
pub mod disturbance;
pub mod error;
pub mod experiment;
mod explain;
pub mod hosts;
pub mod json_schema;
pub mod links;
pub mod measurement;
pub mod overlap;
mod pieces;
mod place;
pub mod plan;
pub mod platform;
pub mod program_run;
pub mod provenance;
pub mod random;
mod read;
pub mod run;
pub mod simulated_overlap;
mod source;
pub mod streams_run;
pub mod tasks_file;
pub mod trace;
pub mod units;

pub use compute::{Compute, ComputedBy, Kernel, RankCompute};
pub use disturbance::Disturbance;
pub use error::{DescriptionError, Warning};
pub use experiment::{AnyExperiment, Class, Experiment, ProgramExperiment, StreamsExperiment};
pub use hosts::Hosts;
pub use links::Links;
pub use measurement::Measurement;
pub use overlap::Overlap;
pub use plan::Plan;
pub use platform::{Node, Platform, Tree};
pub use program_run::{ProgramRun, ProgramRuns, RecordedTimes, Spread, Switches};
pub use provenance::Provenance;
pub use read::LARGEST_BYTES;
pub use run::{Run, Runs};
pub use simulated_overlap::SimulatedOverlap;
pub use streams_run::{StreamsRun, StreamsRuns};
pub use trace::Trace;

/// The version of every file that this build reads and writes.
pub const SCHEMA_VERSION: u64 = 1;
