//! A parallel program reduced to its messages: supersteps of computing, sending, and waiting for messages from the
//! others.

use crate::error::SimError;
use crate::time::{Nanos, nanos};

/// Longer messages are rejected as mistakes.
const MOST_BYTES: u64 = 1_000_000_000;

/// The messages of a parallel program placed on hosts. A process computes, sends its messages of the superstep, and
/// starts the next superstep once it has received all messages that the current one sends to it. Other processes may be
/// ahead of it.
///
/// # Examples
///
/// ```
/// use crosswind_sim::interface::Job;
///
/// // Two processes, on hosts 3 and 1: 1 ms, then a message of 64 bytes each way.
/// let job = Job::new(vec![3, 1], [(0.001, vec![(0, 1, 64), (1, 0, 64)])]).unwrap();
/// assert_eq!((job.messages(), job.bytes()), (2, 128));
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) hosts: Vec<u32>,
    pub(super) compute_ns: Vec<Nanos>,
    /// Destination process and length in bytes, by superstep, then by sender.
    pub(super) messages: Vec<(u32, u32)>,
    /// Index of the first message of each sender in each superstep.
    begin: Vec<u32>,
    /// Number of messages that each process receives in each superstep.
    pub(super) expected: Vec<u32>,
}

impl Job {
    /// Creates a job. `hosts` gives the host of each process. `supersteps` gives, for each superstep, the computing
    /// time of all processes in seconds and the messages: sending process, receiving process, bytes.
    ///
    /// # Errors
    /// A message names a process that does not exist, goes to its sender, or is longer than 10^9 bytes.
    pub fn new(
        hosts: Vec<u32>,
        supersteps: impl IntoIterator<Item = (f64, Vec<(u32, u32, u64)>)>,
    ) -> Result<Self, SimError> {
        let count = hosts.len() as u32;
        let mut job =
            Self { hosts, compute_ns: Vec::new(), messages: Vec::new(), begin: vec![0], expected: Vec::new() };
        for (compute_s, mut messages) in supersteps {
            job.compute_ns.push(nanos(compute_s));
            let first = job.expected.len();
            job.expected.resize(first + count as usize, 0);
            messages.sort_by_key(|&(from, ..)| from);
            let mut messages = messages.into_iter().peekable();
            for process in 0..count {
                while let Some((_, to, bytes)) = messages.next_if(|&(from, ..)| from == process) {
                    if to >= count {
                        return Err(SimError::NoSuchRank { rank: process, named: to, ranks: count });
                    }
                    if to == process {
                        return Err(SimError::SendToItself { rank: process });
                    }
                    if bytes > MOST_BYTES {
                        return Err(SimError::LongMessage { bytes, most: MOST_BYTES });
                    }
                    job.expected[first + to as usize] += 1;
                    job.messages.push((to, bytes.max(1) as u32));
                }
                job.begin.push(job.messages.len() as u32);
            }
            if let Some((from, ..)) = messages.next() {
                return Err(SimError::NoSuchRank { rank: from, named: from, ranks: count });
            }
        }
        Ok(job)
    }

    /// Returns the number of messages of all processes.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Returns the bytes of all messages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|&(_, bytes)| u64::from(bytes)).sum()
    }

    /// Returns the range of `messages` that a process sends in a superstep.
    pub(super) fn sent(&self, superstep: u32, process: u32) -> std::ops::Range<usize> {
        let at = superstep as usize * self.hosts.len() + process as usize;
        self.begin[at] as usize..self.begin[at + 1] as usize
    }
}

#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub step: Vec<u32>,
    /// Whether it has sent and is waiting for messages.
    pub waits: Vec<bool>,
    /// Messages of `expected` that have not arrived.
    pub left: Vec<u32>,
    /// Processes that have not finished.
    pub running: u32,
    pub ended: Option<Nanos>,
}

impl Progress {
    pub fn new(job: &Job) -> Self {
        let processes = job.hosts.len();
        Self {
            step: vec![0; processes],
            waits: vec![false; processes],
            left: job.expected.clone(),
            running: processes as u32,
            ended: None,
        }
    }

    /// Whether a waiting process has received everything that it needs to continue.
    pub fn may_go_on(&self, process: u32) -> bool {
        let at = process as usize;
        self.waits[at] && self.left[self.step[at] as usize * self.step.len() + at] == 0
    }
}
