//! A rank and a program: what drivers (the simulator, agents) call.

use crate::op::{Body, Kind, Op};

/// What the handler of a message leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Nanoseconds that the handler computes on an undisturbed processor, beyond the network's overhead.
    pub ns: u64,
    /// Bytes of the answer on the wire, where there is one.
    pub bytes: u32,
    pub body: Body,
}

/// One rank: its memory, and where in the program it is.
///
/// Everything it does follows from the calls made: no clock, no randomness that is not seeded. Handlers run between two
/// operations or while one waits, never inside [`Rank::next`].
pub trait Rank {
    /// Whether a message to itself crosses the network as any other does; otherwise it costs its handler.
    const ITSELF_BY_NETWORK: bool = false;

    /// The next operation; called when the last one is over. After [`Op::Done`] it is not called again.
    fn next(&mut self) -> Op;

    /// The last packet of the message that [`Rank::next`] gave is with the network. Called before anything else is handled;
    /// a driver without time need not call it, since the next call of [`Rank::next`] says the same.
    fn sent(&mut self) {}

    /// Computation (ns) to do while the message that [`Rank::next`] gave waits for the interface or a credit; nothing of that
    /// message has been sent.
    fn meanwhile(&mut self) -> Option<u64> {
        None
    }

    /// Handles a message from another rank (or itself).
    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        let _ = (from, kind, body);
        Reply::default()
    }

    /// What [`Op::Wait`](crate::Op::Wait) is for just now, for a person: told when nothing can happen any more.
    fn waits_for(&self) -> String {
        "any message".into()
    }

    /// Takes the answer to an own get, put or request. What was asked of one rank is answered in the order of asking.
    fn answered(&mut self, from: u32, body: Body) {
        let _ = (from, body);
    }

    /// What it holds at the end, for [`Program::check`]: words, so that ranks may live in several processes.
    fn result(&self) -> Vec<u64> {
        Vec::new()
    }
}

pub trait Program {
    type Rank: Rank;

    /// How many ranks, at least 1.
    fn ranks(&self) -> u32;

    /// A rank at its start.
    fn rank(&self, rank: u32) -> Self::Rank;

    /// Whether the results of the ranks, in their order, are right, against a plain computation.
    ///
    /// # Errors
    /// What differs, for a person.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let _ = results;
        Ok(())
    }
}
