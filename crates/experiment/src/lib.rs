//! From an experiment's point to a run: in virtual time, or as what live agents and ranks are told.
//!
//! A point is an experiment without a sweep, with the files that it names read by the caller: this crate reads none. The
//! simulated run and the live settings are made here and nowhere else, so that they cannot drift apart.
//!
//! | question | module |
//! |---|---|
//! | a farm's tasks, plan and settings: simulated, as agents are told, and the root? | [`farm`], [`farm_live`], [`farm_root`] |
//! | what do live tasks compute? | [`work`] |
//! | a parallel program under a disturbance: simulated, and as ranks are told? | [`program`], [`program_live`] |
//! | what does a program come to undisturbed, asked again and again? | [`undisturbed`] |
//! | streams through network interfaces? | [`streams`] |
//! | what did each node do when, as a table? | [`columns`] |
//! | many simulations at a time? | [`pool`] |
//! | why is there no run? | [`error`] |

pub mod columns;
pub mod error;
pub mod farm;
pub mod farm_live;
pub mod farm_root;
pub mod pool;
pub mod program;
pub mod program_live;
pub mod streams;
pub mod undisturbed;
pub mod work;

pub use error::ExperimentError;
