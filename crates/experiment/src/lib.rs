//! Runs an experiment's point: simulates it in virtual time, or builds the settings for live agents and ranks.
//!
//! A point is an experiment without a sweep. The caller reads the files that it refers to; this crate reads none.
//! Simulated runs and live settings are both built here, and nowhere else, so that they stay consistent.
//!
//! | question | module |
//! |---|---|
//! | a farm: tasks, plan and simulation; settings of live agents; the live root? | [`farm`], [`farm_live`], [`farm_root`] |
//! | what do live tasks compute? | [`work`] |
//! | a parallel program under a disturbance: simulated, and on live ranks? | [`program`], [`program_live`] |
//! | a recorded program, run again? | [`recorded`] |
//! | how long does a program take undisturbed (cached)? | [`undisturbed`] |
//! | streams through network interfaces? | [`streams`] |
//! | the activities of each node as a table? | [`columns`] |
//! | many simulations in parallel? | [`pool`] |
//! | which errors occur? | [`error`] |

pub mod columns;
pub mod error;
mod fairness;
pub mod farm;
pub mod farm_live;
pub mod farm_root;
mod flow;
pub mod pool;
pub mod program;
pub mod program_live;
pub mod recorded;
pub mod streams;
pub mod undisturbed;
pub mod work;

pub use crosswind_sim::SimError;
pub use error::ExperimentError;

/// Policies of the user's own, for [`farm::FarmPoint::simulate_own`].
pub mod own {
    pub use crosswind_policy::farm::own::{Choice, OwnChild, OwnPolicy, OwnState};
    pub use crosswind_policy::farm::{Child, TaskId};
}
