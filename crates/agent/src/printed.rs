//! What tasks print, which travels up to the user while they run.

use crate::action::{Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;

/// Maximum bytes of text in one frame.
pub const MOST_PRINTED: usize = 16 << 10;

/// Whole lines that a task printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The node that computes the task.
    pub node: u32,
    pub task: u64,
    /// The call of a batch that printed them, from 1. 0 for a task that is no batch, and where the call is not known.
    pub call: u32,
    /// Bytes before the text that were left out, because there were too many.
    pub left_out: u64,
    pub text: Vec<u8>,
}

impl<P: TaskBytes> Agent<P> {
    /// Passes on what a task of this node printed, if the run shows it.
    pub fn pass_printed(&mut self, task: u64, call: u32, left_out: u64, text: Vec<u8>) {
        if self.run.recording.printed {
            self.pass_on_printed(Printed { node: self.number, task, call, left_out, text });
        }
    }

    /// At the root: returns what tasks printed since the last call.
    pub fn take_printed(&mut self) -> Vec<Printed> {
        std::mem::take(&mut self.printed)
    }

    fn pass_on_printed(&mut self, printed: Printed) {
        if self.root {
            self.printed.push(printed);
        } else {
            let Printed { node, task, call, left_out, text } = printed;
            self.send_frame(Peer::Parent, Frame::Printed { node, task, call, left_out, text });
        }
    }

    /// Handles what a task in a child's subtree printed.
    pub(crate) fn on_printed(&mut self, printed: Printed) -> Result<(), &'static str> {
        if !self.run.recording.printed || printed.text.len() > MOST_PRINTED {
            return Err("it sent more of what tasks print than was asked for");
        }
        self.pass_on_printed(printed);
        Ok(())
    }
}
