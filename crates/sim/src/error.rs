//! What can be wrong with a simulation.

use crosswind_schema::DescriptionError;

/// Why nothing computes the tasks of a farm that are left; each with the root's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Idle {
    /// No node of the platform computes.
    #[error("no node of the platform computes; give one, for example the root ({0:?}), a compute_per_s above 0")]
    Platform(String),
    /// Those that compute have left.
    #[error("the nodes that compute have left; give the root ({0:?}) a compute_per_s above 0, or let one of them stay")]
    Left(String),
    /// One that computes is there, and is sent nothing.
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
    #[error("after {done} of {tasks} tasks nothing more can happen at {time_s} s: {why}")]
    Stuck {
        done: u64,
        tasks: u64,
        time_s: f64,
        /// Why, and what to change.
        why: Idle,
    },
    /// A change that cannot happen.
    #[error("change[{at}], of node {node}: {field} {why}")]
    Change {
        at: usize,
        /// The node that the change is about.
        node: u32,
        /// Which field of it.
        field: &'static str,
        why: &'static str,
    },
    /// A parallel program's network that is none.
    #[error("network.{field} is {value}; it must be {permitted}")]
    Network { field: &'static str, value: f64, permitted: &'static str },
    /// A fat tree that is none.
    #[error("{field} is {value}; it must be {permitted}")]
    FatTree { field: &'static str, value: u32, permitted: &'static str },
    /// What is decided outside of the ranks' processors.
    #[error("{setting} cannot be simulated with network.fat_tree: leave one of the two away")]
    NotInFatTree {
        /// As it stands in the description.
        setting: &'static str,
    },
    #[error("the program has 0 ranks; it must have at least 1")]
    NoRanks,
    /// A disturbance for another number of ranks.
    #[error("the program has {ranks} ranks, but the disturbance is that of {timelines}")]
    Timelines { ranks: u32, timelines: u32 },
    /// A packet would be sent again before its sender could know that it is lost.
    #[error("policy.resend_s is {} s; it must be at least a round trip, {} s", *.resend_ns as f64 * 1e-9, *.round_trip_ns as f64 * 1e-9)]
    Resend {
        /// Nanoseconds.
        resend_ns: u64,
        /// Nanoseconds.
        round_trip_ns: u64,
    },
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
    /// Nothing can happen any more, and ranks are not at their end.
    #[error("deadlock: after {time_s} s nothing more can happen, and {waiting} of {ranks} ranks wait. {named}")]
    Deadlock {
        waiting: usize,
        ranks: usize,
        /// When the last thing happened.
        time_s: f64,
        /// Some of them, and what they wait for.
        named: String,
    },
    /// Packets are thrown away for ever.
    #[error(
        "after {time_s} s rank {to} has thrown away a packet of rank {from} 1000 times: they never run at the same time. With \
         policy.away = \"buffer\" packets wait"
    )]
    Starved {
        from: u32,
        /// The destination that is away.
        to: u32,
        /// When it was given up.
        time_s: f64,
    },
    /// A job's message is longer than messages can be.
    #[error("a message of a job has {bytes} bytes; it must have at most {most}")]
    LongMessage {
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// A job runs on a host that does not exist.
    #[error("a job runs on host {host}; the hosts are 0 to {}", .hosts - 1)]
    NoSuchHost { host: u32, hosts: u32 },
    /// Jobs of another experiment.
    #[error("the experiment has {asked} jobs, but the messages of {given} were given")]
    Jobs { asked: usize, given: usize },
    /// Messages are made faster than links carry them, without end.
    #[error(
        "after {time_s} s {messages} messages wait: streams with arrivals = \"open\" make more than the links carry; make \
         gap_s longer, or messages fewer"
    )]
    Overrun {
        messages: usize,
        /// When it was given up.
        time_s: f64,
    },
    /// Not the input's fault.
    #[error("the simulator is wrong: {0}")]
    Broken(&'static str),
    /// The run would last longer than time can be counted.
    #[error("the run lasts longer than 292 years: rates are too low for the tasks' sizes and works")]
    Endless,
    /// The caller's callback stopped the run.
    #[error("interrupted")]
    Interrupted,
}
