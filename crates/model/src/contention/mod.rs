//! What messages of several flows cost each other on links and in network interfaces, in closed form.
//!
//! Rates are all in one unit, MB/s or messages/s of one size (E4-13): only their ratios count.
//!
//! | question | module | symbol of the paper |
//! |---|---|---|
//! | how many messages per second does a link carry? | [`rate`] | gamma |
//! | which part of a link do n flows use while they congest it? | [`effective`] | delta(n) |
//! | how much later are a parallel job's messages, by pattern of communication? | [`delay`] | eta |
//! | what do one or two queues in a network interface cost a stream? | [`queues`] | T2/T1, T3/T1 |
//!
//! None of it knows a queue that grows: where flows want more than a link carries, the answer says so ([`delay::Saturated`]), and
//! a simulation (`crosswind run --on sim`, experiments of kind streams) is what to ask.
//!
//! Source: communication-interactions (docs/papers/), with its errata; where a printed equation is wrong, it stands beside
//! the corrected one as `Formula::Literal`.

pub mod delay;
pub mod effective;
pub mod queues;
pub mod rate;

pub use delay::{DelayRatio, Flows, LocalTarget, Saturated};
pub use effective::EffectiveRatio;
pub use rate::message_rate;
