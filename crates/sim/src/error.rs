//! What can be wrong with a simulation.

use crosswind_schema::DescriptionError;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The platform was changed into no tree after its checks.
    #[error(transparent)]
    Platform(#[from] Box<DescriptionError>),
    /// The order needs a plan, and there is none.
    #[error("policy.order is \"planned\", but no planned rates were given; give one rate per node, {nodes} in all")]
    NoPlan {
        /// Nodes of the platform.
        nodes: usize,
    },
    /// Tasks are left, and nothing will happen any more.
    #[error(
        "after {done} of {tasks} tasks nothing more can happen at {time_s} s: no node that is served computes; give one of \
         them a compute_per_s above 0"
    )]
    Stuck {
        /// Tasks done.
        done: u64,
        /// Tasks in all.
        tasks: u64,
        /// When.
        time_s: f64,
    },
    /// A fault that cannot happen.
    #[error("fault[{at}] is about node {node}; {why}")]
    Fault {
        /// Which.
        at: usize,
        /// Whom it is about.
        node: u32,
        /// Why not.
        why: &'static str,
    },
    /// The run would last longer than time can be counted.
    #[error("the run lasts longer than 292 years: rates are too low for the tasks' sizes and works")]
    Endless,
    /// Whoever watches said stop.
    #[error("interrupted")]
    Interrupted,
}
