//! What a simulator needs of whatever decides for a node.

use super::event::{Child, Commands, Event};
use super::node::Node;

/// Decides what one node of a simulated farm does next: a [`Node`] with a built-in order, or an
/// [`OwnNode`](super::own::OwnNode) with a policy of the user's own.
pub trait Decide {
    /// Whether it needs the time of each event, and may fail. The calls that only this needs cost nothing otherwise.
    const IS_OWN: bool;

    /// Handles an event and appends commands, in the order in which they must be executed.
    fn handle(&mut self, event: Event, commands: &mut impl Commands);

    /// Sets the time of the events that follow, s since the start.
    fn set_time(&mut self, now_s: f64) {
        let _ = now_s;
    }

    /// Says which node of the platform the child is that joins next.
    fn joins(&mut self, node: u32) {
        let _ = node;
    }

    /// Number of tasks outstanding under a child, as far as that is recorded.
    fn lent_to(&self, child: Child) -> usize;

    /// Returns the reason why it has failed. `None`: it has not.
    fn failure(&mut self) -> Option<String> {
        None
    }

    /// Number of tasks that wait at the node.
    fn waiting(&self) -> u64;
}

impl Decide for Node {
    const IS_OWN: bool = false;

    #[inline(always)]
    fn handle(&mut self, event: Event, commands: &mut impl Commands) {
        self.handle(event, commands);
    }

    fn lent_to(&self, child: Child) -> usize {
        self.ledger().map_or(0, |ledger| ledger.lent_to(child))
    }

    fn waiting(&self) -> u64 {
        self.ready()
    }
}
