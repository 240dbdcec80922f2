//! Hooks for observing frames.

use crosswind_schema::Class;

use crate::time::Nanos;

/// A frame, or in [`Observer::made`] a whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Message number. Numbers of delivered messages are reused.
    pub message: u32,
    pub class: Class,
    pub from: u32,
    pub to: u32,
    pub bytes: u32,
}

/// Receives each event of a frame, at a virtual time in nanoseconds. The default, `()`, observes nothing and costs
/// nothing.
pub trait Observer {
    const LISTENS: bool = true;
    /// A message is handed to its sender's interface.
    fn made(&mut self, at: Nanos, message: Observed);
    /// A frame leaves the sender's queue; its time on the link begins.
    fn leaves(&mut self, at: Nanos, frame: Observed);
    /// A frame reaches the receiving program.
    fn arrives(&mut self, at: Nanos, frame: Observed);
    /// A frame finds a full buffer and is lost.
    fn lost(&mut self, at: Nanos, frame: Observed);
}

impl Observer for () {
    const LISTENS: bool = false;
    #[inline]
    fn made(&mut self, _: Nanos, _: Observed) {}
    #[inline]
    fn leaves(&mut self, _: Nanos, _: Observed) {}
    #[inline]
    fn arrives(&mut self, _: Nanos, _: Observed) {}
    #[inline]
    fn lost(&mut self, _: Nanos, _: Observed) {}
}
