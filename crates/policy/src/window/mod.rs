//! How many packets may be under way to one destination: credits, and when they come back.
//!
//! A sender has W credits for each destination. A packet takes one; it comes back when the receiver has taken the packet off
//! the network (*extracted*) or has dealt with it (*handled*). Without a credit the sender waits (scheduling-and-communication,
//! sections 2 and 3). Answers need no credit, so two ranks that wait for each other's answers cannot block each other.
//!
//! Not here: time, packets, the network. The simulator and the agents hold one [`Credits`] for each sending rank and ask
//! [`WindowSettings::returned`] at the receiving one.
//!
//! | question | module |
//! |---|---|
//! | how large is the window, when does a credit come back? | [`settings`] |
//! | may this packet be sent? | [`credits`] |

pub mod credits;
pub mod settings;

pub use credits::Credits;
pub use settings::{Away, CreditReturn, Moment, ReturnedBy, WindowSettings};
