//! The traits of a rank and of a program, which drivers (the simulator, agents) call.

use crate::op::{Body, Kind, Op};

/// Result of a message handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Nanoseconds that the handler computes on an undisturbed processor, beyond the network's overhead.
    pub ns: u64,
    /// Bytes of the answer on the wire, if there is one.
    pub bytes: u32,
    pub body: Body,
}

/// One rank: its memory and its position in the program.
///
/// Its behaviour depends only on the calls made: it has no clock and no unseeded randomness. Handlers run between two
/// operations or during a wait, never inside [`Rank::next`].
pub trait Rank {
    /// Whether a message to itself crosses the network like any other. If not, it costs only its handler.
    const ITSELF_BY_NETWORK: bool = false;

    /// Returns the next operation. Called when the last one is over; not called again after [`Op::Done`].
    fn next(&mut self) -> Op;

    /// Notifies the rank that the first packet of the message from [`Rank::next`] is with the network, and that more
    /// follow. Called before anything else is handled, and not for a message of one packet.
    fn begun(&mut self) {}

    /// Notifies the rank that the last packet of the message from [`Rank::next`] is with the network. Called before
    /// anything else is handled. A driver without time need not call it, since the next call of [`Rank::next`] implies
    /// it.
    fn sent(&mut self) {}

    /// Returns computation to do, ns, while the message from [`Rank::next`] waits for the interface or a credit. Called
    /// only before any part of that message has been sent. `None` if there is none.
    fn meanwhile(&mut self) -> Option<u64> {
        None
    }

    /// Handles a message from another rank (or itself).
    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        let _ = (from, kind, body);
        Reply::default()
    }

    /// Describes what the current [`Op::Wait`](crate::Op::Wait) is for. Used in a deadlock's error message.
    fn waits_for(&self) -> String {
        "any message".into()
    }

    /// Takes the answer to an own get, put or request. Requests to one rank are answered in order.
    fn answered(&mut self, from: u32, body: Body) {
        let _ = (from, body);
    }

    /// Returns the rank's result for [`Program::check`], as words so that ranks may live in several processes.
    fn result(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// A parallel program. Threads of a simulation share it and its ranks.
pub trait Program: Sync {
    type Rank: Rank + Send;

    /// Returns the number of ranks, at least 1.
    fn ranks(&self) -> u32;

    /// Returns a rank in its initial state.
    fn rank(&self, rank: u32) -> Self::Rank;

    /// Checks the ranks' results, in rank order, against a sequential computation.
    ///
    /// # Errors
    /// A description of the difference.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let _ = results;
        Ok(())
    }
}
