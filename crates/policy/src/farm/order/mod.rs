//! Orders of service: which of the requesting children is served next.
//!
//! Each order is a file with one function, which computes a key from the rates of a node and of one of its children.
//! The lowest key is served first, and ties in the order of the platform's file. A child without a key is never served.
//! The keys of two orders change as tasks are sent: `arrival` (a queue) and `planned` (deficits). [`Rule`]
//! distinguishes them.

pub mod arrival;
pub mod bandwidth;
mod candidate;
pub mod compute;
pub mod interference;
pub mod interference_rate;
pub mod planned;
pub mod root_only;

use crosswind_schema::experiment::Order;

pub use self::candidate::Candidate;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Every child has a constant key.
    #[default]
    Fixed,
    Arrival,
    /// Deficit counters against planned rates.
    Planned,
}

/// The rule of an order.
#[must_use]
pub fn rule(order: Order) -> Rule {
    match order {
        Order::Arrival => Rule::Arrival,
        Order::Planned => Rule::Planned,
        _ => Rule::Fixed,
    }
}

/// Returns a child's key; `None` if it is never served. With [`Rule::Planned`], the time between its tasks in the plan,
/// s.
#[must_use]
pub fn key(order: Order, candidate: &Candidate) -> Option<f64> {
    match order {
        Order::Interference => interference::key(candidate),
        Order::InterferenceRate => interference_rate::key(candidate),
        Order::Bandwidth => bandwidth::key(candidate),
        Order::Compute => compute::key(candidate),
        Order::Arrival => arrival::key(candidate),
        Order::RootOnly => root_only::key(candidate),
        Order::Planned => planned::key(candidate),
        Order::Own(_) => Some(0.0), // its node serves by itself: see `own`
    }
}
