//! Errors of a simulation.

use crosswind_schema::DescriptionError;

/// Why no node computes the remaining tasks. Each variant carries the root's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Idle {
    /// No node of the platform computes.
    #[error("no node of the platform computes; give one, for example the root ({0:?}), a compute_per_s above 0")]
    Platform(String),
    /// All computing nodes have left.
    #[error("the nodes that compute have left; give the root ({0:?}) a compute_per_s above 0, or let one of them stay")]
    Left(String),
    /// A computing node is present but is sent nothing.
    #[error(
        "the root ({root:?}) computes nothing, and policy.order sends no task to {computes:?}; use another order, or give the \
         root a compute_per_s above 0"
    )]
    Unserved {
        root: String,
        /// The first node that computes.
        computes: String,
    },
}

/// Why a simulation has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The platform is no longer a tree: it was changed after its checks.
    #[error(transparent)]
    Platform(#[from] Box<DescriptionError>),
    /// The order needs a plan, but none was given.
    #[error("policy.order is \"planned\", but no planned rates were given; give one rate per node, {nodes} in all")]
    NoPlan { nodes: usize },
    /// Tasks remain, but no event is pending.
    #[error("after {done} of {tasks} tasks nothing more can happen at {time_s} s: {why}")]
    Stuck {
        done: u64,
        tasks: u64,
        time_s: f64,
        /// Why, and what to change.
        why: Idle,
    },
    /// Nodes fail so often that no task is done.
    #[error(
        "after {done} of {tasks} tasks nodes failed until {time_s} s with {redone} tasks begun and none done: tasks take \
         longer than nodes stay up; make failure.mtbf_s longer, or tasks shorter"
    )]
    Failing {
        done: u64,
        tasks: u64,
        time_s: f64,
        /// Tasks that were cut short since the last one was done.
        redone: u64,
    },
    /// Tasks remain of classes that no node of the tree can run any more.
    #[error(
        "at {time_s} s {left} tasks are left of classes that no node in the tree can run, or none that is served; give \
         another node a factor above 0 in workload.class, have the nodes that left join again, or use another policy.order"
    )]
    Classes { time_s: f64, left: u64 },
    /// A policy of the user's own failed, or made a choice that is not permitted.
    #[error("the policy of node {node:?}, at {time_s} s: {why}")]
    Policy { node: String, time_s: f64, why: String },
    /// A change that cannot happen.
    #[error("change[{at}], of node {node}: {field} {why}")]
    Change {
        at: usize,
        /// The node that the change is about.
        node: u32,
        /// The offending field of the change.
        field: &'static str,
        why: &'static str,
    },
    /// A field of a parallel program's network is out of range.
    #[error("network.{field} is {value}; it must be {permitted}")]
    Network { field: &'static str, value: f64, permitted: &'static str },
    /// A field of a fat tree is out of range.
    #[error("{field} is {value}; it must be {permitted}")]
    FatTree { field: &'static str, value: u32, permitted: &'static str },
    /// A setting that needs decisions outside the ranks' processors, which a fat tree does not simulate.
    #[error("{setting} cannot be simulated with network.fat_tree: leave one of the two away")]
    NotInFatTree {
        /// The setting as written in the description.
        setting: &'static str,
    },
    /// A setting that needs one processor per rank, which the schedule does not have.
    #[error(
        "{setting} cannot be simulated for a schedule with several processors or interfaces per rank (cpu, nic) or with \
         rendezvous_above_bytes: leave one of the two away"
    )]
    OneProcessor {
        /// The setting as written in the description.
        setting: &'static str,
    },
    #[error("the program has 0 ranks; it must have at least 1")]
    NoRanks,
    /// The disturbance was made for another number of ranks.
    #[error("the program has {ranks} ranks, but the disturbance is that of {timelines}")]
    Timelines { ranks: u32, timelines: u32 },
    /// A packet would be sent again before its sender could know that it is lost.
    #[error("policy.resend_s is {} s; it must be at least a round trip, {} s", *.resend_ns as f64 * 1e-9, *.round_trip_ns as f64 * 1e-9)]
    Resend { resend_ns: u64, round_trip_ns: u64 },
    /// An operation names a rank that does not exist.
    #[error("rank {rank} names rank {named}; it must be 0 to {}", .ranks - 1)]
    NoSuchRank {
        /// The rank with the operation.
        rank: u32,
        /// The rank that the operation names.
        named: u32,
        ranks: u32,
    },
    #[error("rank {rank} sends to itself; a send must go to another rank")]
    SendToItself { rank: u32 },
    /// No event is pending, and some ranks have not finished.
    #[error("deadlock: after {time_s} s nothing more can happen, and {waiting} of {ranks} ranks wait. {named}")]
    Deadlock {
        waiting: usize,
        ranks: usize,
        /// Time of the last event, s.
        time_s: f64,
        /// Some of the waiting ranks and what each waits for.
        named: String,
    },
    /// A packet is discarded at every attempt.
    #[error(
        "after {time_s} s rank {to} has thrown away a packet of rank {from} 1000 times: they never run at the same time. With \
         policy.away = \"buffer\" packets wait"
    )]
    Starved {
        from: u32,
        /// The destination, which is away at every attempt.
        to: u32,
        /// Time at which the run was abandoned, s.
        time_s: f64,
    },
    /// A job's message exceeds the maximum length.
    #[error("a message of a job has {bytes} bytes; it must have at most {most}")]
    LongMessage { bytes: u64, most: u64 },
    /// A job runs on a host that does not exist.
    #[error("a job runs on host {host}; the hosts are 0 to {}", .hosts - 1)]
    NoSuchHost { host: u32, hosts: u32 },
    /// The number of jobs given differs from that of the experiment.
    #[error("the experiment has {asked} jobs, but the messages of {given} were given")]
    Jobs { asked: usize, given: usize },
    /// Messages are generated faster than the links carry them, without end.
    #[error(
        "after {time_s} s {messages} messages wait: streams with arrivals = \"open\" make more than the links carry; make \
         gap_s longer, or messages fewer"
    )]
    Overrun {
        messages: usize,
        /// Time at which the run was abandoned, s.
        time_s: f64,
    },
    /// A bug in the simulator, not an error in the input.
    #[error("the simulator is wrong: {0}")]
    Broken(&'static str),
    /// The run would exceed the range of the clock.
    #[error("the run lasts longer than 292 years: rates are too low for the tasks' sizes and works")]
    Endless,
    /// The caller's callback stopped the run.
    #[error("interrupted")]
    Interrupted,
}
