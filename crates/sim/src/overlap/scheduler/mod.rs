//! Which process runs next on a node: the operating system's side of overlap.
//!
//! A scheduler knows processes by number, their nice levels and what they have used. It has no clock: it is told which process
//! ran for how long. Two kinds: [`decay`], [`fair`].

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

    /// Another process, not yet runnable; they are numbered from 0.
    pub fn add(&mut self, nice: i8) {
        match self {
            Self::Decay(decay) => decay.add(nice),
            Self::Fair(fair) => fair.add(nice),
        }
    }

    /// A process has run for so long.
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

    /// For how long a running process may go on until [`Scheduler::pick`] is asked again.
    pub fn left(&self, process: usize) -> Nanos {
        match self {
            Self::Decay(decay) => decay.left(process),
            Self::Fair(fair) => fair.left(process),
        }
    }

    /// A process that slept, or is new, wants a processor.
    pub fn woken(&mut self, process: usize) {
        if let Self::Fair(fair) = self {
            fair.woken(process);
        }
    }

    /// A process wants no processor any more.
    pub fn blocked(&mut self, process: usize, ended: bool) {
        match self {
            Self::Decay(decay) => decay.blocked(process, ended),
            Self::Fair(fair) => fair.blocked(process),
        }
    }

    /// Which of several runnable processes a processor shall have: the index into `candidates`, each with whether it ran there
    /// last. The first of those that are alike. There is at least one.
    pub fn pick(&mut self, candidates: &[(usize, bool)]) -> usize {
        match self {
            Self::Decay(decay) => decay.pick(candidates),
            Self::Fair(fair) => fair.pick(candidates),
        }
    }

    /// Which running process a process that has just woken preempts, if any: the index into `running`, each with
    /// whether the woken one ran on that processor last.
    pub fn preempts(&self, woken: usize, running: &[(usize, bool)]) -> Option<usize> {
        match self {
            Self::Decay(decay) => decay.preempts(woken, running),
            Self::Fair(fair) => fair.preempts(woken, running),
        }
    }
}

/// The index of the largest, the first of those that are alike; none of none.
fn largest<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<(usize, T)> {
    values.enumerate().fold(None, |best, (at, value)| match best {
        Some((_, most)) if value <= most => best,
        _ => Some((at, value)),
    })
}
