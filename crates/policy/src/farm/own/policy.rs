//! The interface of a policy of the user's own.

use super::super::event::{Child, TaskId};
use super::state::OwnState;

/// What a node does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing, until the next event.
    Wait,
    /// Compute a task here; `None`: the one that has waited longest. Its processor must be idle.
    Compute(Option<TaskId>),
    /// Send a task to a child that requested one; `None`: the one that has waited longest.
    Send { child: Child, task: Option<TaskId> },
}

/// Decides for one node of a farm. Each node has one of its own.
///
/// A method gets the state of the node and returns a choice. After a choice that was carried out, [`Self::choose`] is
/// called again, as long as something can begin. A choice that is not permitted ends the simulation with an error.
///
/// A run is deterministic if the policy is: no clock, no entropy of the system, no address as a key.
///
/// # Examples
/// Bandwidth-centric: of the children that ask, the one with the fastest link.
/// ```
/// use crosswind_policy::farm::own::{Choice, OwnPolicy, OwnState};
///
/// struct BandwidthCentric;
///
/// impl OwnPolicy for BandwidthCentric {
///     fn choose(&mut self, node: &OwnState) -> Choice {
///         let fastest = node.open().max_by(|(_, a), (_, b)| a.receive_limit_mb_per_s.total_cmp(&b.receive_limit_mb_per_s));
///         fastest.map_or(Choice::Wait, |(child, _)| Choice::Send { child, task: None })
///     }
/// }
/// ```
pub trait OwnPolicy {
    /// Whether an idle processor of the node takes the task that has waited longest before the policy is asked.
    fn own_first(&self) -> bool {
        true
    }

    /// A task waits, and something can begin: the port is free and a child asks, or the processor is idle.
    fn choose(&mut self, node: &OwnState) -> Choice;

    /// A child has requested tasks. This and the following are called at every such event, also where nothing can begin;
    /// by default they choose where something can.
    fn on_ask(&mut self, node: &OwnState, child: Child) -> Choice {
        let _ = child;
        if node.can_begin() { self.choose(node) } else { Choice::Wait }
    }

    /// A task has arrived, or several at once: `task` is the first.
    fn on_arrival(&mut self, node: &OwnState, task: TaskId) -> Choice {
        let _ = task;
        if node.can_begin() { self.choose(node) } else { Choice::Wait }
    }

    /// A task was computed here, or below: then its result has arrived.
    fn on_done(&mut self, node: &OwnState, task: TaskId) -> Choice {
        let _ = task;
        if node.can_begin() { self.choose(node) } else { Choice::Wait }
    }

    /// Returns the reason why the policy has failed. `None`: it has not.
    fn failure(&mut self) -> Option<String> {
        None
    }
}
