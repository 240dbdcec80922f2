//! Closed forms of the contention between messages of several flows on links and in network interfaces.
//!
//! All rates are in one unit, MB/s or messages/s of one size (E4-13): only their ratios matter.
//!
//! | question | module | symbol of the paper |
//! |---|---|---|
//! | how many messages per second does a link carry? | [`rate`] | gamma |
//! | what part of a link do n flows use while they congest it? | [`effective`] | delta(n) |
//! | how much are a parallel job's messages delayed, by communication pattern? | [`delay`] | eta |
//! | what do one or two queues in a network interface cost a stream? | [`queues`] | T2/T1, T3/T1 |
//!
//! None of these forms models growing queues. Where flows demand more than a link carries, the result reports it
//! ([`delay::Saturated`]); use a simulation instead (`crosswind run --on sim`, experiments of kind streams).
//!
//! Source: communication-interactions (docs/papers/), with its errata. Where a printed equation is wrong, it is
//! available as `Formula::Literal` beside the corrected one.

pub mod delay;
pub mod effective;
pub mod queues;
pub mod rate;

pub use delay::{DelayRatio, Flows, LocalTarget, Saturated};
pub use effective::EffectiveRatio;
pub use rate::message_rate;
