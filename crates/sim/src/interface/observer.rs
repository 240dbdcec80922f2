//! Observation of frames.

use crosswind_schema::Class;

use crate::time::Nanos;

/// A frame, or a message where it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The message; numbers of messages that have arrived are used again.
    pub message: u32,
    pub class: Class,
    /// The host that sends it.
    pub from: u32,
    /// The host that it goes to.
    pub to: u32,
    /// Bytes of the message in it.
    pub bytes: u32,
}

/// Called with each event of a frame, in nanoseconds of virtual time. The default, `()`, observes nothing and costs nothing.
pub trait Observer {
    const LISTENS: bool = true;
    /// A message is given to its sender's interface, whole.
    fn made(&mut self, at: Nanos, message: Observed);
    /// A frame leaves the sender's queue; its time on the link begins.
    fn leaves(&mut self, at: Nanos, frame: Observed);
    /// A frame is with the receiving program.
    fn arrives(&mut self, at: Nanos, frame: Observed);
    /// A frame finds no room and is lost.
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
