//! What a rank waits for: the condition, and its description for a run that is stuck.

use crosswind_program::Rank;

use super::channel::Channel;
use super::rank::RankRuntime;
use crate::error::LiveError;
use crosswind_linux::now_ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    Credit {
        to: u32,
    },
    Room {
        to: u32,
    },
    Answers,
    Stored {
        bytes: u64,
    },
    /// Until more than this number of messages and answers are handled.
    More {
        than: u64,
    },
    StoreSync,
    Barrier,
    Receive {
        from: u32,
        tag: u32,
    },
    Finish,
}

impl<R: Rank> RankRuntime<R> {
    /// Handles messages until the condition is met.
    pub(super) fn wait(&mut self, what: Waiting) -> Result<(), LiveError> {
        if self.is_met(what) {
            return Ok(());
        }
        let begun = now_ns();
        self.waiting = what;
        let result = loop {
            if let Err(error) = self.attend(None) {
                break Err(error);
            }
            if self.is_met(what) {
                break Ok(());
            }
        };
        self.waiting = Waiting::Nothing;
        let waited_s = (now_ns() - begun) as f64 * 1e-9;
        match what {
            Waiting::Credit { .. } => self.report.stalled_s += waited_s,
            Waiting::Finish => {}
            _ => self.report.waited_s += waited_s,
        }
        result
    }

    fn is_met(&mut self, what: Waiting) -> bool {
        match what {
            Waiting::Nothing => true,
            Waiting::Credit { to } => {
                let running = self.processor.runs(to);
                self.credits.under_way(to) < self.credits.window(running)
            }
            Waiting::Room { to } => !self.links[to as usize].as_ref().is_some_and(Channel::is_full),
            Waiting::Answers => self.open == 0,
            Waiting::Stored { bytes } => self.stored_bytes >= bytes,
            Waiting::More { than } => self.events > than,
            Waiting::StoreSync | Waiting::Barrier => std::mem::take(&mut self.released),
            Waiting::Receive { from, tag } => {
                let mail = &mut self.mail[from as usize];
                mail.iter().position(|&known| known == tag).and_then(|at| mail.remove(at)).is_some()
            }
            Waiting::Finish => self.finishing,
        }
    }

    /// Describes what the rank waits for, to explain a run that is stuck.
    pub(super) fn waits_for(&self) -> String {
        match self.waiting {
            Waiting::Nothing => "goes on".into(),
            Waiting::Credit { to } => {
                format!("waits for a credit of rank {to} ({} packets are under way)", self.credits.under_way(to))
            }
            Waiting::Room { to } => format!("waits until rank {to} reads"),
            Waiting::Answers => format!("waits for {} answers (sync)", self.open),
            Waiting::Stored { bytes } => {
                format!("waits for {bytes} bytes of stores, of which {} have come", self.stored_bytes)
            }
            Waiting::More { .. } => "waits for anything".into(),
            Waiting::StoreSync => "waits until all one-way messages of all ranks are handled".into(),
            Waiting::Barrier => "waits at a barrier".into(),
            Waiting::Receive { from, tag } => format!("waits for a send of tag {tag} from rank {from}"),
            Waiting::Finish => "is done".into(),
        }
    }
}
