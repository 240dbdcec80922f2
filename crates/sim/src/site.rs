//! A node's processor and its link to its parent, stored together because they are read together.

use crosswind_policy::farm::Child;

use crate::processor::Processor;
use crate::time::Nanos;

/// A node's processor and its link.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Site {
    pub processor: Processor,
    pub link: Link,
}

impl Site {
    /// Whether transfers over its link slow a processor.
    pub fn interferes(&self) -> bool {
        self.processor.ir_receive() > 0.0 || self.link.ir_send > 0.0
    }
}

/// A node's link to its parent.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub parent: u32,
    /// Its number at the parent.
    pub child: Child,
    /// MB/ns while the node sends nothing.
    pub receive_limit: f64,
    /// Reduction of the receive limit, MB/s per MB/s that the node sends.
    pub drop: f64,
    /// Fraction of its compute rate that the parent loses per MB/ns.
    pub ir_send: f64,
    pub latency: Nanos,
    pub received_mb: f64,
    /// The node's own port; [`NO_NODE`](crate::port::NO_NODE) at a leaf.
    pub port: u32,
    /// Whether it has left and not rejoined.
    pub gone: bool,
}
