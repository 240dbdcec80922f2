//! What happens to frames, for whoever wants to look.

use crosswind_schema::Class;

use crate::time::Nanos;

/// A frame, or a message where it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The message; numbers of messages that have arrived are used again.
    pub message: u32,
    /// Whose it is.
    pub class: Class,
    /// The host that sends it.
    pub from: u32,
    /// The host that it goes to.
    pub to: u32,
    /// Bytes of the message in it.
    pub bytes: u32,
}

/// Told what happens when, in nanoseconds of virtual time. By default nobody listens, and nothing of this costs anything.
pub trait Observer {
    /// Whether anybody listens.
    const LISTENS: bool = true;
    /// A message is given to its sender's interface, whole.
    fn made(&mut self, at: Nanos, message: Seen);
    /// A frame leaves the sender's queue; its time on the link begins.
    fn leaves(&mut self, at: Nanos, frame: Seen);
    /// A frame is with the receiving program.
    fn arrives(&mut self, at: Nanos, frame: Seen);
    /// A frame finds no room and is lost.
    fn lost(&mut self, at: Nanos, frame: Seen);
}

/// Nobody.
impl Observer for () {
    const LISTENS: bool = false;
    #[inline]
    fn made(&mut self, _: Nanos, _: Seen) {}
    #[inline]
    fn leaves(&mut self, _: Nanos, _: Seen) {}
    #[inline]
    fn arrives(&mut self, _: Nanos, _: Seen) {}
    #[inline]
    fn lost(&mut self, _: Nanos, _: Seen) {}
}
