//! Recorded parallel programs: which rank is slow, which ranks only wait for it, and what that costs.
//!
//! Bytes are handed in, and a verdict is handed out: no files, clocks or threads. Times are integer nanoseconds.
//!
//! | question | module |
//! |---|---|
//! | what did one rank do? | [`trace`] |
//! | how is a file read, a part at a time? | [`read`] |
//! | which events of different ranks are of one operation? | `groups` |
//! | do they fit together, and what follows? | [`matching`] |
//! | which ranks do those of a scan wait for? | `prefix` |
//! | which operations move only while a rank is in a call? | `progress` |
//! | how far apart are the clocks of the ranks? | [`clocks`] |
//! | when does the program end if a rank computes faster? | [`graph`] |
//! | the same, of thousands of replays in which a few ranks differ | [`folded`] |
//! | which rank is slow, and what does it cost? | [`judge`] |
//! | what did each rank do when, and which rank caused its waits? | [`timeline`] |
//! | can the recorded program be run again, and how long does it take then? | [`recording`] |
//! | the same program for a simulated network | [`program`], collective operations as messages: `collectives` |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod clocks;
mod collectives;
pub mod folded;
pub mod graph;
mod groups;
pub mod judge;
pub mod matching;
mod prefix;
pub mod program;
mod progress;
pub mod read;
pub mod recording;
pub mod timeline;
pub mod trace;

pub use judge::{Verdict, judge, judge_with_timeline};
pub use read::{ReadError, Reader};
pub use recording::Recording;
pub use timeline::Timeline;
pub use trace::Trace;
