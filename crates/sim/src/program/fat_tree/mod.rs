//! A network with finite capacity: a fat tree of switches with finite buffers, and senders that must poll.
//!
//! The unlimited network of [`super`] accepts whatever is sent, so no hot spot spreads and no sender ever blocks. Here
//! a packet moves only into a buffer with room. A receiver that does not poll fills the switches in front of it, and
//! then the senders' interfaces (scheduling-and-communication, section 3: a window exists so that "no processor can be
//! flooded"). A sender depends on remote state within one link's time, so ranks cannot be advanced one by one for a
//! whole latency. This is therefore a separate, event-driven mode.
//!
//! The paper gives neither topology nor buffer depths. The tree is the CM-5's data network as commonly described (four
//! children and two parents per switch), not checked against a primary source. Depths and the polling rule are fields.
//!
//! # Rules
//!
//! - There are two networks of the same shape: one for requests, one for replies and acknowledgements. Replies are
//!   always accepted, so neither network can block the other for ever.
//! - A packet takes the same time on each link, whatever its length: the latency divided by the number of links on the
//!   longest path. The network's g is charged by the links near the root, not a second time.
//! - Only the first packet of a buffer moves, and only if the next buffer has room. On the way up it takes a free
//!   parent, at random if both are free.
//! - A processor first sends the answers and acknowledgements that it owes. While those have no room, it accepts
//!   replies only. It then handles what has arrived: everything while it cannot continue, and otherwise at most
//!   `polls_per_send` requests since its last own packet. Then it continues.
//!
//! | question | file |
//! |---|---|
//! | where does a packet go, and what blocks it? | `switches` |
//! | what does a rank do next? | `processor` |
//! | which event is next? | `engine` |

mod engine;
mod processor;
mod switches;

pub(super) use engine::simulate;

use crosswind_policy::window::{Away, CreditReturn, WindowSettings};
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::FatTree as Description;

use crate::error::SimError;

/// Depths, in packets, and the polling rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Capacity of the buffer at each input of a switch.
    pub buffer_packets: u32,
    /// Capacity of a node's interface for arrived packets, per network.
    pub receive_packets: u32,
    /// Capacity of a node's interface for packets to send, per network.
    pub send_packets: u32,
    /// Maximum number of requests that a processor handles between two packets of its own when it could continue.
    pub polls_per_send: u32,
    /// Seed of the paths that packets take.
    pub seed: u64,
}

/// Ranks are limited because each pair of ranks has table entries. The largest CM-5 had this many nodes.
const MOST_RANKS: u32 = 1024;

impl FatTree {
    /// The fat tree that an experiment describes, with paths drawn from seed 0.
    pub(super) fn of(description: &Description) -> Self {
        Self {
            buffer_packets: description.buffer_packets.get() as u32,
            receive_packets: description.receive_packets.get() as u32,
            send_packets: description.send_packets.get() as u32,
            polls_per_send: description.polls_per_send.get() as u32,
            seed: 0,
        }
    }

    /// # Errors
    /// [`SimError::FatTree`] when a buffer has no capacity or there are too many ranks; [`SimError::NotInFatTree`] when
    /// a setting needs decisions outside the ranks' processors.
    fn check(&self, ranks: u32, window: &WindowSettings, timelines: &Timelines) -> Result<(), SimError> {
        let refuse = |field, value: u32, permitted| Err(SimError::FatTree { field, value, permitted });
        for (field, packets) in [
            ("network.fat_tree.buffer_packets", self.buffer_packets),
            ("network.fat_tree.receive_packets", self.receive_packets),
            ("network.fat_tree.send_packets", self.send_packets),
        ] {
            if packets == 0 {
                return refuse(field, 0, "at least 1");
            }
        }
        if ranks > MOST_RANKS {
            return refuse("workload.ranks", ranks, "at most 1024 in a fat tree");
        }
        let settings = [
            ("policy.away = \"discard\"", window.away != Away::Buffer),
            ("policy.window = \"follow\"", window.follows()),
            ("policy.credit = \"extracted\"", window.limits() && window.credit == CreditReturn::Extracted),
            ("a disturbance with polls = true", timelines.polls()),
        ];
        match settings.iter().find(|(_, is_asked)| *is_asked) {
            Some((setting, _)) => Err(SimError::NotInFatTree { setting }),
            None => Ok(()),
        }
    }
}
