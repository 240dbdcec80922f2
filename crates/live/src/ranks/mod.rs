//! A parallel program run in wall time: one process per rank, each connected with every other one, over TCP.
//!
//! The ranks are those that the simulator drives (`crosswind_program`), the window is the simulator's (`crosswind_policy`),
//! messages have bodies and as many bytes as they say. It models no network and no disturbance: those are the machine's, but
//! that an emulated rank keeps to the timeline of a disturbance file (`processor`).
//!
//! | question | module |
//! |---|---|
//! | what is a run about? | [`settings`] |
//! | what do ranks say, as bytes? | [`wire`] |
//! | which ranks are connected, and how are connections authenticated? | [`mesh`], `channel` |
//! | what does a rank do with its operations and with what comes? | `rank` |
//! | what does it wait for, until when, and what of it is told when the run is stuck? | `waiting` |
//! | what does it hear from the conductor and tell it? | `obeying` |
//! | what is computing? | `processor` |
//! | what starts all at the same time, lets them through barriers, and ends the run? | [`conductor`] |
//! | is it over, or stuck? | `waves` |
//! | what came of it? | [`report`] |

mod channel;
pub mod conductor;
pub mod mesh;
mod obeying;
mod processor;
mod rank;
pub mod report;
pub mod settings;
mod waiting;
mod waves;
pub mod wire;

pub use conductor::{Conductor, ConductorConfig, Stop};
pub use mesh::{Joined, RankConfig};
pub use report::{Outcome, RankReport};
pub use settings::RanksSettings;
