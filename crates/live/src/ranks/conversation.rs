//! The rank's side of its conversation with the conductor: frames received, the report at the end, and lost ranks.

use std::io;

use crosswind_program::Rank;

use super::condition::Waiting;
use super::rank::{LOOK_NS, RankRuntime};
use super::wire::{State, Wire};
use crate::error::LiveError;
use crosswind_linux::{self as linux, now_ns, watch};

/// How long the conductor may take to end a run that has lost a rank, ns.
const VERDICT_NS: u64 = 15_000_000_000;
/// Size of the pieces in which a rank sends its result, bytes.
const PIECE: usize = 1 << 20;

impl<R: Rank> RankRuntime<R> {
    pub(super) fn send_to_conductor(&mut self, what: &Wire) -> Result<(), LiveError> {
        self.conductor.send_wire(what, 0).map_err(|error| conductor_lost(&error))
    }

    pub(super) fn report_stores(&mut self) -> Result<(), LiveError> {
        self.one_way_reported = self.one_way_handled;
        let (sent, handled) = (self.one_way_sent, self.one_way_handled);
        self.send_to_conductor(&Wire::Enter { meeting: self.meetings, stores: true, sent, handled })
    }

    fn next_of_conductor(&mut self) -> Result<Option<Wire>, LiveError> {
        if let Some(frame) = self.conductor.next().map_err(|error| conductor_lost(&error))? {
            return Ok(Some(frame));
        }
        self.conductor.flush().and_then(|()| self.conductor.fill()).map_err(|error| conductor_lost(&error))?;
        self.conductor.next().map_err(|error| conductor_lost(&error))
    }

    /// Handles the frames that the conductor has sent meanwhile.
    pub(super) fn on_conductor(&mut self) -> Result<(), LiveError> {
        while let Some(frame) = self.next_of_conductor()? {
            self.execute(frame)?;
        }
        Ok(())
    }

    fn execute(&mut self, frame: Wire) -> Result<(), LiveError> {
        match frame {
            Wire::Probe { wave } => {
                let state = match self.waiting {
                    _ if self.busy.is_some() => State::Moving,
                    Waiting::Nothing => State::Moving,
                    Waiting::Finish => State::Done,
                    _ => State::Waiting,
                };
                let what = self.busy.map_or_else(|| self.waits_for(), str::to_owned);
                self.send_to_conductor(&Wire::Status { wave, state, sent: self.sent, handled: self.handled, what })
            }
            Wire::Start { zero_ns } => {
                self.zero_ns = Some(zero_ns);
                Ok(())
            }
            Wire::Release => {
                self.meetings += 1;
                self.released = true;
                Ok(())
            }
            Wire::Finish => {
                self.finishing = true;
                Ok(())
            }
            Wire::Abort { why } => Err(LiveError::Lost(format!("the run was ended: {why}"))),
            _ => Err(LiveError::Lost("the conductor says what it may not".into())),
        }
    }

    /// Reports a lost rank to the conductor, and waits until the conductor ends the run.
    pub(super) fn lost(&mut self, rank: u32, error: &io::Error) -> Result<(), LiveError> {
        self.links[rank as usize] = None;
        self.send_to_conductor(&Wire::Lost { rank, why: error.to_string() })?;
        let until = now_ns() + VERDICT_NS;
        while now_ns() < until {
            match self.next_of_conductor()? {
                // Probes are answered meanwhile.
                Some(frame) => self.execute(frame)?,
                None => self.rest(LOOK_NS)?,
            }
        }
        Err(LiveError::Lost(format!("the connection with rank {rank} broke: {error}")))
    }

    /// Sends the result and the report, and stays connected until all ranks have done so.
    pub(super) fn account(&mut self) -> Result<(), LiveError> {
        let held: Vec<u8> = self.rank.result().iter().flat_map(|word| word.to_be_bytes()).collect();
        for piece in held.chunks(PIECE) {
            self.send_to_conductor(&Wire::Held { piece: piece.to_vec() })?;
            while self.conductor.is_full() {
                self.rest(LOOK_NS)?;
                self.conductor.flush().map_err(|error| conductor_lost(&error))?;
            }
        }
        let report = serde_json::to_vec(&self.report).map_err(|error| LiveError::Setup(error.to_string()))?;
        self.send_to_conductor(&Wire::Report { report })?;
        // The conductor closes the connection after all reports. No connection may break before.
        loop {
            let mut watched = [watch(self.conductor.fd(), true, self.conductor.is_full())];
            linux::wait(&mut watched, Some(LOOK_NS)).map_err(LiveError::system("waiting"))?;
            self.look_at_input()?;
            let heard = self.conductor.flush().and_then(|()| self.conductor.fill());
            while let Ok(Some(frame)) = self.conductor.next() {
                self.execute(frame)?;
            }
            if heard.is_err() {
                return Ok(());
            }
        }
    }
}

fn conductor_lost(error: &io::Error) -> LiveError {
    LiveError::Lost(format!("the conductor is gone: {error}"))
}
