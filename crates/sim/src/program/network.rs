//! The network of a parallel program: LogGP with packets, and a control network for barriers.
//!
//! A packet of `b` bytes takes `overhead_ns` of the sender's processor, then `gap(b) = gap_ns + (b - 1) gap_per_byte_ns` of its
//! network interface; its last byte arrives `(b - 1) gap_per_byte_ns + latency_ns` after the processor is done with it. The
//! receiver's interface takes packets one `gap` apart, in order of arrival, so a rank that all others send to is a hot spot.
//! The receiver's processor pays `overhead_ns` again. There is no contention inside the network.

use crosswind_schema::experiment::Network as Description;
use crosswind_schema::units::Quantity;

use super::fat_tree::FatTree;
use crate::error::SimError;

/// Bits of a nanosecond's fraction in a [`Gap`].
const FRACTION: u32 = 20;

/// G in fixed point, since every packet needs it three times.
#[derive(Clone, Copy)]
pub(super) struct Gap(u64);

impl Gap {
    /// Returns the time from the first byte of a packet to its last, ns, rounded half up.
    #[inline]
    pub fn train(self, bytes: u32) -> u64 {
        let exact = u64::from(bytes.saturating_sub(1)).saturating_mul(self.0);
        exact.saturating_add(1 << (FRACTION - 1)) >> FRACTION
    }
}

/// Costs of messages, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// L: from the sender's interface to the receiver's.
    pub latency_ns: u64,
    /// o: processor time per packet, at both ends.
    pub overhead_ns: u64,
    /// g: between two packets at an interface.
    pub gap_ns: u64,
    /// G: between two bytes of a packet.
    pub gap_per_byte_ns: f64,
    pub packet_bytes: u32,
    /// Processor time per acknowledgement, at both ends. Acknowledgements take the latency and bypass the interfaces.
    pub acknowledgement_ns: u64,
    /// Barrier: from the arrival of the last rank until all may continue.
    pub control_ns: u64,
    /// The switches between the interfaces, if they have finite buffers.
    pub fat_tree: Option<FatTree>,
}

impl Network {
    /// Returns the network that an experiment describes. By default an acknowledgement costs the overhead and a barrier
    /// the latency.
    #[must_use]
    pub fn of(description: &Description) -> Self {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        let overhead_ns = ns(description.overhead_s.get());
        let latency_ns = ns(description.latency_s.get());
        Self {
            latency_ns,
            overhead_ns,
            gap_ns: ns(description.gap_s.get()),
            gap_per_byte_ns: description.gap_per_byte_s.get() * 1e9,
            packet_bytes: description.packet_bytes.get() as u32,
            acknowledgement_ns: description.acknowledgement_s.map_or(overhead_ns, |s| ns(s.get())),
            control_ns: description.control_s.map_or(latency_ns, |s| ns(s.get())),
            fat_tree: description.fat_tree.as_ref().map(FatTree::of),
        }
    }

    /// Returns the same network with the paths through its switches drawn from `seed`.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.fat_tree = self.fat_tree.map(|tree| FatTree { seed, ..tree });
        self
    }

    /// Returns the number of packets of a message of `bytes` bytes; at least 1.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes.max(1).div_ceil(u64::from(self.packet_bytes))
    }

    /// Returns G as a [`Gap`].
    pub(super) fn gap_per_byte(&self) -> Gap {
        // The cast saturates.
        Gap((self.gap_per_byte_ns * f64::from(1 << FRACTION) + 0.5) as u64)
    }

    /// Returns the shortest time in which an action of one rank can affect another, ns. Within it, ranks can be
    /// advanced one by one.
    pub(super) fn lookahead(&self, limited: bool) -> u64 {
        let packet = self.latency_ns.saturating_add(self.overhead_ns);
        let acknowledgement = self.latency_ns.saturating_add(self.acknowledgement_ns);
        let fastest = if limited { packet.min(acknowledgement) } else { packet };
        fastest.min(self.control_ns)
    }

    /// # Errors
    /// [`SimError::Network`] when a field is out of range.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let refuse = |field, value, permitted| Err(SimError::Network { field, value, permitted });
        if self.packet_bytes == 0 {
            return refuse("packet_bytes", 0.0, "at least 1");
        }
        if !(self.gap_per_byte_ns >= 0.0 && self.gap_per_byte_ns.is_finite()) {
            return refuse("gap_per_byte_ns", self.gap_per_byte_ns, "finite and at least 0");
        }
        let times = [
            ("latency_ns", self.latency_ns),
            ("overhead_ns", self.overhead_ns),
            ("gap_ns", self.gap_ns),
            ("acknowledgement_ns", self.acknowledgement_ns),
            ("control_ns", self.control_ns),
        ];
        // One day: far above any real network, far below overflow.
        const DAY: u64 = 86_400_000_000_000;
        for (field, value) in times {
            if value > DAY {
                return refuse(field, value as f64, "at most one day (8.64e13 ns)");
            }
        }
        if self.latency_ns == 0 {
            return refuse("latency_ns", 0.0, "at least 1: effects that need no time have no order");
        }
        if self.control_ns == 0 {
            return refuse("control_ns", 0.0, "at least 1: effects that need no time have no order");
        }
        Ok(())
    }
}
