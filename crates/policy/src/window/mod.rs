//! Credit-based flow control: how many packets may be in flight to one destination, and when credits return.
//!
//! A sender has W credits for each destination. A packet takes one. The credit returns when the receiver has taken the
//! packet off the network (*extracted*) or has processed it (*handled*). Without a credit the sender waits
//! (scheduling-and-communication, sections 2 and 3). Answers need no credit, so two ranks that wait for each other's
//! answers cannot deadlock.
//!
//! Time, packets and the network are outside this module. The simulator and the agents keep one [`Credits`] per sending
//! rank and call [`WindowSettings::returned`] at the receiving one.
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | size of the window, and when a credit returns |
//! | [`credits`] | a sender's credits |

pub mod credits;
pub mod settings;

pub use credits::Credits;
pub use settings::{Away, CreditReturn, Moment, ReturnedBy, WindowSettings};
