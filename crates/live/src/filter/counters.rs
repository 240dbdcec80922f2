//! Counters of a filter, for people who observe it.

use crosswind_schema::Class;
use serde::Serialize;

/// What has gone through for one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassCounters {
    pub sent_frames: u64,
    /// Bytes of applications in them.
    pub sent_bytes: u64,
    /// Frames that came from peers.
    pub received_frames: u64,
    /// Bytes of applications in them.
    pub received_bytes: u64,
    /// Frames that wait to be sent now.
    pub waiting_frames: u64,
    /// Longest that a frame has waited in the queues, s.
    pub longest_wait_s: f64,
    /// How long all frames have waited together, s.
    pub waited_s: f64,
    /// Credits that were sent to peers, frames.
    pub credits_sent: u64,
}

/// What a filter has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    pub parallel: ClassCounters,
    pub local: ClassCounters,
    pub peers: usize,
    /// Connections of applications now.
    pub connections: usize,
    /// Connections of applications since the start.
    pub connections_made: u64,
    /// Connections that were refused: no room, no peer, or no listener at the target.
    pub refused: u64,
    /// Peers that were dropped for what they said or did not say.
    pub peers_dropped: u64,
    /// Bytes that were taken from peers and that applications have not taken yet.
    pub held_bytes: u64,
    /// Frames that left an emulated or shaped link, both ways.
    pub paced_frames: u64,
    /// How late they left it, all together, s.
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
