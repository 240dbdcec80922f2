//! A network that can fill: a fat tree of switches with finite buffers, and senders that must poll.
//!
//! The unlimited network of [`super`] holds whatever is sent, so that no hot spot spreads and no sender is ever blocked. Here a
//! packet moves on only into a buffer that has room, so a receiver that does not poll fills the switches before it, and then the
//! senders' interfaces (scheduling-and-communication, section 3: a window is there so that "no processor can be flooded"). A
//! sender's processor depends on remote state within one link's time, so ranks cannot be advanced one by one for a latency:
//! this is an event-driven mode of its own.
//!
//! The text gives neither topology nor depths. The tree is that of the CM-5's data network as it is commonly described (four
//! children and two parents to each switch), not checked against a primary source; depths and the polling rule are fields.
//!
//! # Rules
//!
//! - Two networks of the same shape: requests; replies, with acknowledgements. Replies are always taken, so neither can
//!   block the other for ever.
//! - A packet takes the same time on each link, the latency over the links of the longest way: its bytes do not matter. The
//!   network's g is charged by the links near the root, not once more.
//! - Only the first packet of a buffer moves, and only if the next buffer has room. Upward: to a free parent, at random if
//!   both are.
//! - A processor sends what it owes (answers, acknowledgements) first; while that has no room it takes replies only. Then it
//!   takes what has arrived: all of it while it cannot go on, and `polls_per_send` requests since its last own packet while it
//!   could. Then it goes on.
//!
//! | question | file |
//! |---|---|
//! | where does a packet go, and what is in its way? | `switches` |
//! | what does a rank do next? | `processor` |
//! | what happens next, of everything? | `engine` |

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
    /// Of the buffer at each input of a switch.
    pub buffer_packets: u32,
    /// Of a node's interface, for packets that have arrived; of each network.
    pub receive_packets: u32,
    /// Of a node's interface, for packets to be sent; of each network.
    pub send_packets: u32,
    /// Requests that a processor takes between two packets of its own while it could go on.
    pub polls_per_send: u32,
    /// Of the ways that packets take.
    pub seed: u64,
}

/// A table of numbers for each pair of ranks is kept; the largest CM-5 had as many nodes.
const MOST_RANKS: u32 = 1024;

impl FatTree {
    /// The fat tree that an experiment describes, with the ways of seed 0.
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
    /// [`SimError::FatTree`] when a buffer holds nothing, or there are too many ranks; [`SimError::NotInFatTree`] when the window
    /// asks for what is decided outside of the ranks' processors.
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
