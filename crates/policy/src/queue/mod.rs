//! Which frame leaves a network interface next, of two classes, and how a receiver holds local senders back.
//!
//! An interface has a queue for frames of parallel programs and one for those of local users ([`DoubleQueue`]). A receiver
//! says how many frames of each class may be under way to it ([`ReceiverCredits`]), and a sender obeys ([`SenderCredits`]).
//!
//! Not here: frames' contents, links, time. The simulator and the live filter hold one [`DoubleQueue`] for each interface and
//! one pair of credits for each connection, and tell them what happens when.
//!
//! Source: communication-interactions, section 5. What is printed there starves and stops (E4-14 and E4-15 of
//! `docs/papers/communication-interactions.md`); it is here as `literal`, beside what does not.
//!
//! | question | module |
//! |---|---|
//! | which discipline, which threshold, how long may a frame wait? | [`settings`] |
//! | which frame leaves next? | [`double`] |
//! | how many frames may be under way to a receiver? | [`receiver`] |
//! | may a frame be sent to it? | [`sender`] |

pub mod double;
pub mod receiver;
pub mod sender;
pub mod settings;

pub use double::DoubleQueue;
pub use receiver::ReceiverCredits;
pub use sender::SenderCredits;
pub use settings::{CreditSettings, Grant, LongestWait, QueueSettings};

pub use crosswind_schema::experiment::streams::Discipline;
