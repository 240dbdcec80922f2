//! Counters of a filter, for monitoring.

use crosswind_schema::Class;
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassCounters {
    pub sent_frames: u64,
    /// Application bytes in the sent frames.
    pub sent_bytes: u64,
    pub received_frames: u64,
    /// Application bytes in the received frames.
    pub received_bytes: u64,
    /// Frames that are waiting to be sent now.
    pub waiting_frames: u64,
    /// Longest time that a frame has waited in the queues, s.
    pub longest_wait_s: f64,
    /// Total time that frames have waited, s.
    pub waited_s: f64,
    pub credits_sent: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    pub parallel: ClassCounters,
    pub local: ClassCounters,
    pub peers: usize,
    pub connections: usize,
    /// Connections of applications since the start.
    pub connections_made: u64,
    /// Connections that were refused: no room, no peer, or no listener at the target.
    pub refused: u64,
    /// Peers dropped because they violated the protocol or stopped responding.
    pub peers_dropped: u64,
    /// Bytes received from peers that applications have not accepted yet.
    pub held_bytes: u64,
    /// Frames that left an emulated or shaped link, in both directions.
    pub paced_frames: u64,
    /// Total lateness of those frames, s.
    pub late_s: f64,
}

impl Counters {
    pub(super) fn of(&mut self, class: Class) -> &mut ClassCounters {
        match class {
            Class::Parallel => &mut self.parallel,
            Class::Local => &mut self.local,
        }
    }
}
