//! Runs a parallel program in wall time: one process per rank, each connected to every other rank over TCP.
//!
//! The ranks are those that the simulator drives (`crosswind_program`), and the window is the simulator's
//! (`crosswind_policy`). Messages have bodies and occupy their stated size on the wire. Network and disturbances are the
//! machine's own and are not modelled, except that an emulated rank follows the timeline of a disturbance file
//! (`processor`).
//!
//! | question | module |
//! |---|---|
//! | what are the settings of a run? | [`settings`] |
//! | which bytes do ranks exchange? | [`wire`] |
//! | how do ranks connect and authenticate? | [`mesh`], `channel` |
//! | how does a rank execute its operations and handle messages? | `rank` |
//! | what does a rank wait for, until when, and how is that reported if the run is stuck? | `condition` |
//! | how does a rank handle frames of the conductor, and report to it? | `conversation` |
//! | how are computations carried out? | `processor` |
//! | what starts the ranks together, releases barriers, and ends the run? | [`conductor`] |
//! | is the run over, or stuck? | `waves` |
//! | what is the outcome? | [`report`] |

mod channel;
mod condition;
pub mod conductor;
mod conversation;
pub mod mesh;
mod processor;
mod rank;
pub mod report;
pub mod settings;
mod waves;
pub mod wire;

pub use conductor::{Conductor, ConductorConfig, Stop};
pub use mesh::{Joined, RankConfig};
pub use report::{Outcome, RankReport};
pub use settings::RanksSettings;
