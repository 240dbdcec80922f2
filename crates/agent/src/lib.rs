//! A farm agent's logic, as a state machine: inputs are method calls that carry the time, outputs are queued actions.
//!
//! | module | contents |
//! |---|---|
//! | [`agent`] | the state machine: executes the policy's commands |
//! | [`action`] | interface to the driver: inputs and actions |
//! | [`phases`] | phases of a run, from gathering to reports; leaving early |
//! | `input` | frames from children and the parent, and heartbeats |
//! | `children`, [`registration`] | children that join, drain or are lost |
//! | `quota` | quotas of a child |
//! | [`printed`] | what tasks print while they run |
//! | [`recall`] | tasks that the user withdraws, and what is known of tasks before they end |
//! | [`task_store`], `limits` | task store; tasks that are given up |
//! | `estimation` | online estimates of rates and interference |
//! | `transfer_rates`, `rate_changes`, [`emulation`], [`late`] | timing of emulated links and processors |
//! | [`frame`], [`fields`] | frames between agents, and their encoding |
//! | [`settings`], [`layout`] | settings of a run; the part of them that each child gets |
//! | [`clock`] | estimate of the root's clock |
//! | [`account`], [`record`] | totals, traces, events and the replay log |
//!
//! The crate uses no socket, thread, process, file or clock (`clippy.toml` forbids the calls). `crosswind-live` has
//! those and drives it in wall time; `crosswind-faults` drives whole farms of agents in virtual time.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod account;
pub mod action;
pub mod agent;
mod children;
pub mod clock;
pub mod emulation;
pub mod error;
mod estimation;
pub mod fields;
pub mod frame;
mod input;
pub mod late;
pub mod layout;
pub mod limits;
pub mod phases;
pub mod printed;
mod quota;
mod rate_changes;
pub mod recall;
pub mod record;
pub mod registration;
pub mod settings;
pub mod task_store;
mod transfer_rates;

pub use agent::Agent;
pub use error::SettingsError;
