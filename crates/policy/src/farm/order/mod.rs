//! Orders of service: which of the children that asked is served next.
//!
//! Each order is a file with one function: from what a node knows of itself and of a child, a key. Lowest key first,
//! equal ones in the order of the file; no key: never. Two orders have keys that change as tasks are sent: `arrival` (a
//! queue) and `planned` (deficits); [`Rule`] says which.

pub mod arrival;
pub mod bandwidth;
pub mod compute;
pub mod interference;
pub mod interference_rate;
pub mod planned;
pub mod root_only;

use crosswind_schema::experiment::Order;
use crosswind_schema::plan::Ports;

use super::settings::Mean;

/// How keys come about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Every child has its key, for good.
    #[default]
    Fixed,
    /// Requests queue up.
    Arrival,
    /// Deficit counters against planned rates.
    Planned,
}

/// What an order may look at.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Sends at a time.
    pub ports: Ports,
    /// A task of mean size and work.
    pub task: Mean,
    /// Compute rate of the node itself, work units/s.
    pub own_compute_per_s: f64,
    /// Compute rate of the child.
    pub compute_per_s: f64,
    /// Receive limit of the child.
    pub receive_limit_mb_per_s: f64,
    /// What sending to the child costs the node, s/MB.
    pub ir_send_s_per_mb: f64,
    /// What the plan gives the child, tasks/s; 0 without a plan.
    pub planned_tasks_per_s: f64,
}

impl Candidate {
    /// Tasks that the node itself loses per task sent: `ir_send Z C`.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.ir_send_s_per_mb * self.task.size_mb * self.own_compute_per_s / self.task.work
    }
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
