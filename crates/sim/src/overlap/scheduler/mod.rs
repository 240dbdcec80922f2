//! Models of the operating system's scheduler: which process runs next on a node.
//!
//! A scheduler tracks processes by index: their nice levels and the time they have used. It has no clock; callers
//! report how long each process ran. Two kinds: [`decay`] and [`fair`].

mod decay;
mod fair;

use crosswind_schema::overlap::Scheduler as Kind;

use crate::time::Nanos;

pub(super) use decay::Decay;
pub(super) use fair::Fair;

/// A scheduler: picks the process that runs next.
#[derive(Clone, Debug)]
pub(super) enum Scheduler {
    Decay(Decay),
    Fair(Fair),
}

impl Scheduler {
    pub fn new(kind: Kind, cpus: usize) -> Self {
        match kind {
            Kind::Decay => Self::Decay(Decay::default()),
            Kind::Fair => Self::Fair(Fair::new(cpus)),
        }
    }

    /// Adds a process, not yet runnable. Processes are numbered from 0.
    pub fn add(&mut self, nice: i8) {
        match self {
            Self::Decay(decay) => decay.add(nice),
            Self::Fair(fair) => fair.add(nice),
        }
    }

    /// Charges `time` ns of processor time to a process.
    pub fn ran(&mut self, process: usize, time: Nanos) {
        match self {
            Self::Decay(decay) => decay.ran(process, time),
            Self::Fair(fair) => fair.ran(process, time),
        }
    }

    /// Called when the time of all processes that ran until now has been charged.
    pub fn settled(&mut self) {
        if let Self::Fair(fair) = self {
            fair.settled();
        }
    }

    /// Returns how long a running process may continue before [`Scheduler::pick`] must be called again, ns.
    pub fn left(&self, process: usize) -> Nanos {
        match self {
            Self::Decay(decay) => decay.left(process),
            Self::Fair(fair) => fair.left(process),
        }
    }

    /// Marks a new or blocked process as runnable.
    pub fn woken(&mut self, process: usize) {
        if let Self::Fair(fair) = self {
            fair.woken(process);
        }
    }

    /// Marks a process as blocked or ended.
    pub fn blocked(&mut self, process: usize, ended: bool) {
        match self {
            Self::Decay(decay) => decay.blocked(process, ended),
            Self::Fair(fair) => fair.blocked(process),
        }
    }

    /// Picks the process to run on a processor. Returns the index into `candidates`, which pairs each runnable process
    /// with whether it ran on that processor last. Ties go to the first. `candidates` must not be empty.
    pub fn pick(&mut self, candidates: &[(usize, bool)]) -> usize {
        match self {
            Self::Decay(decay) => decay.pick(candidates),
            Self::Fair(fair) => fair.pick(candidates),
        }
    }

    /// Returns the index into `running` of the process that a newly woken process preempts, if any. `running` pairs
    /// each running process with whether the woken one ran on that processor last.
    pub fn preempts(&self, woken: usize, running: &[(usize, bool)]) -> Option<usize> {
        match self {
            Self::Decay(decay) => decay.preempts(woken, running),
            Self::Fair(fair) => fair.preempts(woken, running),
        }
    }
}

/// Returns the index and value of the largest, the first one on ties. `None` if there are no values.
fn largest<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<(usize, T)> {
    values.enumerate().fold(None, |best, (at, value)| match best {
        Some((_, most)) if value <= most => best,
        _ => Some((at, value)),
    })
}
