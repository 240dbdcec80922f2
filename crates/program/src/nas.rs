//! MG, FT, EP and IS of the NAS parallel benchmarks as communication skeletons: what each rank sends to which rank in
//! each superstep, and how long all compute before (communication-interactions, section 4.3). There are no numerics:
//! the transferred values only prove that nothing is lost.
//!
//! Counts and bytes are those that the paper measured on 4 and 8 hosts. `steps` and docs/concepts/programs.md describe
//! how they are decomposed into exchanges, and what is not from the paper. The same supersteps serve as the messages of
//! a job in an experiment of kind streams ([`Skeleton::supersteps`]) and, as ranks, as a program on any network
//! ([`Program`]).
//!
//! | question | module |
//! |---|---|
//! | which exchanges does a kernel have, of how many bytes? | `steps` |
//! | what does a rank do next? | `rank` |

mod rank;
mod steps;

use std::sync::Arc;

use crosswind_schema::experiment::parameters::NasParameters;

pub use self::rank::SkeletonRank;
use self::steps::Step;
use crate::random::mixed;
use crate::rank::Program;

/// A message of a superstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkeletonMessage {
    /// Number of the sending host, from 0.
    pub from: u32,
    pub to: u32,
    /// Length in bytes, at least 1.
    pub bytes: u64,
}

/// All hosts compute, then send. A host starts its next superstep when it has received all messages that this one sends
/// to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Superstep {
    /// Computing time of each host at the start, s.
    pub compute_s: f64,
    /// Messages sent after that, grouped by sending host, each group in sending order.
    pub messages: Vec<SkeletonMessage>,
}

/// A NAS kernel on a number of hosts.
#[derive(Clone, Debug)]
pub struct Skeleton {
    hosts: u32,
    steps: Arc<[Step]>,
}

impl Skeleton {
    /// Creates the kernel on `hosts` hosts, at least 1. A single host computes and sends nothing.
    ///
    /// # Examples
    /// ```
    /// use crosswind_program::nas::Skeleton;
    /// use crosswind_schema::experiment::parameters::{MgParameters, NasParameters};
    ///
    /// let mg = Skeleton::new(&NasParameters::Mg(MgParameters::default()), 4);
    /// assert_eq!(mg.messages(), 816);
    /// assert_eq!(mg.supersteps().map(|step| step.messages.len() as u64).sum::<u64>(), 816);
    /// ```
    #[must_use]
    pub fn new(parameters: &NasParameters, hosts: u32) -> Self {
        let hosts = hosts.max(1);
        Self { hosts, steps: steps::of(parameters, hosts).into() }
    }

    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the supersteps, each built on demand.
    pub fn supersteps(&self) -> impl ExactSizeIterator<Item = Superstep> + '_ {
        self.steps.iter().map(|step| Superstep {
            compute_s: step.compute_s,
            messages: (0..self.hosts)
                .flat_map(|from| {
                    let to = step.exchange.receivers(from, self.hosts);
                    to.map(move |to| SkeletonMessage { from, to, bytes: u64::from(step.bytes) })
                })
                .collect(),
        })
    }

    /// Returns the number of messages of all hosts.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.steps.iter().map(|step| step.exchange.messages(self.hosts)).sum()
    }

    /// Returns the bytes of all messages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.exchange.messages(self.hosts) * u64::from(step.bytes)).sum()
    }

    /// Returns the computing time of each host, s.
    #[must_use]
    pub fn compute_s(&self) -> f64 {
        self.steps.iter().map(|step| step.compute_s).sum()
    }

    /// Returns a host's initial value.
    fn first(host: u32) -> u64 {
        mixed(u64::from(host) + 1)
    }

    /// Returns the value that a host sends to another in a superstep.
    const fn sent(value: u64, step: u32, to: u32) -> u64 {
        mixed(value ^ (step as u64) << 32 ^ to as u64)
    }

    /// Returns the value mixed with the sum of the received values.
    const fn with(value: u64, came: u64) -> u64 {
        mixed(value.wrapping_add(came))
    }

    /// Returns all hosts' final values, computed superstep by superstep.
    #[must_use]
    pub fn expected(&self) -> Vec<u64> {
        let mut values: Vec<u64> = (0..self.hosts).map(Self::first).collect();
        let mut came = vec![0u64; values.len()];
        for (number, step) in self.steps.iter().enumerate() {
            came.fill(0);
            for (from, &value) in (0..self.hosts).zip(&values) {
                for to in step.exchange.receivers(from, self.hosts) {
                    let sum = &mut came[to as usize];
                    *sum = sum.wrapping_add(Self::sent(value, number as u32, to));
                }
            }
            values.iter_mut().zip(&came).for_each(|(value, &came)| *value = Self::with(*value, came));
        }
        values
    }
}

impl Program for Skeleton {
    type Rank = SkeletonRank;

    fn ranks(&self) -> u32 {
        self.hosts
    }

    fn rank(&self, rank: u32) -> SkeletonRank {
        SkeletonRank::new(Arc::clone(&self.steps), rank, self.hosts)
    }

    /// Every rank must have received every message of every superstep exactly once.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        for (rank, (expected, result)) in self.expected().iter().zip(results).enumerate() {
            if *result != [*expected] {
                return Err(format!("rank {rank} ends with {result:016x?}; it should be [{expected:016x}]"));
            }
        }
        Ok(())
    }
}
