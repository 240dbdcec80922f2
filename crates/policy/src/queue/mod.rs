//! Two-class scheduling of a network interface: which frame leaves next, and how a receiver throttles local senders.
//!
//! An interface has one queue for frames of parallel programs and one for those of local users ([`DoubleQueue`]). A
//! receiver grants how many frames of each class may be in flight to it ([`ReceiverCredits`]), and a sender keeps to
//! the grant ([`SenderCredits`]).
//!
//! Frame contents, links and time are outside this module. The simulator and the live filter keep one [`DoubleQueue`]
//! per interface and one pair of credits per connection, and pass them events.
//!
//! Source: communication-interactions, section 5. The printed algorithms starve a class and deadlock (E4-14 and E4-15
//! of `docs/papers/communication-interactions.md`). They are available as `literal`, beside repaired versions.
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | discipline, threshold, and the bound on waiting |
//! | [`double`] | which frame leaves next |
//! | [`receiver`] | how many frames may be in flight to a receiver |
//! | [`sender`] | whether a frame may be sent |

pub mod double;
pub mod receiver;
pub mod sender;
pub mod settings;

pub use double::DoubleQueue;
pub use receiver::ReceiverCredits;
pub use sender::SenderCredits;
pub use settings::{CreditSettings, Grant, LongestWait, QueueSettings};

pub use crosswind_schema::experiment::streams::Discipline;
