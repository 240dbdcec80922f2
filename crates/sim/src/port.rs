//! A node's port: one send at a time, or several that share the send limit.

use crate::shared::Shared;
use crate::time::{Nanos, after, span};

pub(crate) const NO_NODE: u32 = u32::MAX;

/// A node's sends, and its children by the policy's child numbers.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub node: u32,
    /// Node of each child. [`NO_NODE`] after the child left.
    pub children: Vec<u32>,
    pub single: SingleSend,
    pub shared: Option<Box<Shared>>,
}

impl Port {
    pub fn is_sending(&self) -> bool {
        self.single.child != NO_NODE || self.shared.as_ref().is_some_and(|shared| shared.is_sending())
    }
}

/// One send at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleSend {
    pub child: u32,
    pub task: u64,
    pub began: Nanos,
    /// Data that is left to send, MB.
    remaining: f64,
    /// Rate of the send, MB/ns.
    pub rate: f64,
    last: Nanos,
    /// When the last send ended, and how many ns late that was because times are rounded up.
    freed: (Nanos, f64),
}

impl Default for SingleSend {
    fn default() -> Self {
        Self { child: NO_NODE, task: 0, began: 0, remaining: 0.0, rate: 0.0, last: 0, freed: (Nanos::MAX, 0.0) }
    }
}

impl SingleSend {
    /// Starts a send to a child at a rate. Returns its end, or `None` at rate 0.
    #[inline]
    pub fn begin(&mut self, now: Nanos, child: u32, task: u64, mb: f64, rate: f64) -> Option<Nanos> {
        let late = if self.freed.0 == now { self.freed.1 } else { 0.0 };
        (self.child, self.task, self.began, self.last, self.rate) = (child, task, now, now, rate);
        self.remaining = mb - late * rate;
        self.ends(now)
    }

    /// Ends the send and returns the child that it went to.
    #[inline]
    pub fn end(&mut self, now: Nanos) -> u32 {
        let late = span(self.last, now) - self.remaining / self.rate;
        self.freed = (now, late.max(0.0));
        std::mem::replace(&mut self.child, NO_NODE)
    }

    /// Returns the MB sent by now.
    pub fn sent(&self, now: Nanos, mb: f64) -> f64 {
        mb - self.remaining + self.rate * span(self.last, now)
    }

    /// Continues at another rate. Returns the send's new end, or `None` at rate 0.
    pub fn change(&mut self, now: Nanos, rate: f64) -> Option<Nanos> {
        self.remaining -= self.rate * span(self.last, now);
        (self.last, self.rate) = (now, rate);
        self.ends(now)
    }

    #[inline]
    fn ends(&self, now: Nanos) -> Option<Nanos> {
        (self.rate > 0.0).then(|| after(now, self.remaining / self.rate))
    }
}
