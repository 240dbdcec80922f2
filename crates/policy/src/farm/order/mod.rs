//! Orders of service: which of the children that asked is served next.
//!
//! Each order is a file with one function: from what a node knows of itself and of a child, a key. Lowest key first,
//! equal ones in the order of the file; no key: never. Two orders have keys that change as tasks are sent: `arrival` (a
//! queue) and `planned` (deficits); [`Rule`] says which.

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
    /// Every child has its key, for good.
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

/// A child's key; none: it is never served. With [`Rule::Planned`], the seconds that the plan gives one of its tasks.
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
    }
}
