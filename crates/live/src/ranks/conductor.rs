//! The conductor connects the ranks of a program, acts as their control network, and detects whether the run is over or
//! stuck.
//!
//! It sees none of the program's messages. Barriers and store-syncs go through it (one message each way), as through the
//! control network of the papers' machine. It starts no processes: its caller does, and reports through [`Stop`] when one
//! has ended.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crosswind_access::Access;
use crosswind_agent::frame::Refusal;
use crosswind_program::Program;

use super::channel::Channel;
use super::mesh::{number, welcome};
use super::report::{Outcome, RankReport};
use super::settings::{Admission, RanksSettings};
use super::waves::{Answer, Verdict, Waves};
use super::wire::Wire;
use crate::error::LiveError;
use crate::listener::{AuthenticatedPeer, Listener, refuse};
use crate::log::Log;
use crosswind_linux::{self as linux, Waker, now_ns, watch};

/// Time from when all ranks are connected to time 0, ns. Each rank receives time 0 before it comes.
const AHEAD_NS: u64 = 20_000_000;
/// Delay before a rank's report of another lost rank ends the run, ns. The lost rank's own report may arrive meanwhile.
const HEARSAY_NS: u64 = 2_000_000_000;
/// Maximum size of a rank's result, bytes.
const MOST_HELD: usize = 1 << 30;

pub struct ConductorConfig {
    pub run: RanksSettings,
    /// HOST:PORT where ranks connect. Port 0 chooses a free one.
    pub listen: String,
    /// Credentials that the conductor and the ranks use to authenticate each other.
    pub access: Access,
    pub log: Log,
    /// Waits with time 0 until [`Stop::begin`] sets it, so that several programs start together.
    pub held: bool,
}

/// Handle that ends a run from another thread, and starts one that is held.
#[derive(Clone, Debug)]
pub struct Stop {
    why: Arc<Mutex<Option<Option<String>>>>,
    start: Arc<Start>,
    waker: Arc<Waker>,
}

#[derive(Debug, Default)]
struct Start {
    meshed: AtomicBool,
    zero_ns: OnceLock<u64>,
}

impl Stop {
    /// Ends the run because the user asked for it.
    pub fn interrupt(&self) {
        self.wake(None);
    }

    /// Ends the run because a process has ended.
    pub fn fail(&self, why: &str) {
        self.wake(Some(why.to_owned()));
    }

    /// Whether all ranks are connected with each other.
    #[must_use]
    pub fn is_meshed(&self) -> bool {
        self.start.meshed.load(Ordering::Acquire)
    }

    /// Sets time 0 of a run that is held, on the monotonic clock, ns. The first call counts.
    pub fn begin(&self, zero_ns: u64) {
        let _ = self.start.zero_ns.set(zero_ns);
        self.waker.wake();
    }

    fn wake(&self, why: Option<String>) {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.waker.wake();
    }

    fn check(&self) -> Result<(), LiveError> {
        match self.why.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            None => Ok(()),
            Some(None) => Err(LiveError::Interrupted),
            Some(Some(why)) => Err(LiveError::Lost(why)),
        }
    }
}

/// State of one rank, as the conductor knows it.
#[derive(Default)]
struct Slot {
    channel: Option<Channel>,
    address: String,
    meshed: bool,
    done_ns: Option<u64>,
    /// Set while the rank waits for all others: whether at a store-sync, then its one-way messages sent and handled.
    entered: Option<(bool, u64, u64)>,
    /// Proof for the welcome, from when the rank connects.
    proof: [u8; 32],
    /// The rank's result.
    held: Vec<u8>,
    report: Option<RankReport>,
}

/// A conductor whose listener is open.
pub struct Conductor {
    config: ConductorConfig,
    listener: Listener,
    stop: Stop,
    slots: Vec<Slot>,
    waves: Waves,
    /// When the current wave began or the last one ended, ns.
    wave_ns: u64,
    hearsay: Option<(u64, u32, String)>,
    /// Number of released barriers and store-syncs.
    meetings: u64,
    finishing: bool,
}

impl Conductor {
    /// Opens the listener.
    ///
    /// # Errors
    /// When the settings are invalid, or the address cannot be bound.
    pub fn open(config: ConductorConfig) -> Result<Self, LiveError> {
        config.run.check()?;
        let listener = Listener::open(&config.listen, config.access.clone())?;
        let waker = Arc::new(Waker::new().map_err(LiveError::system("creating a waker"))?);
        let stop = Stop { why: Arc::new(Mutex::new(None)), start: Arc::default(), waker };
        let ranks = config.run.ranks as usize;
        let slots = (0..ranks).map(|_| Slot::default()).collect();
        Ok(Self {
            listener,
            stop,
            slots,
            waves: Waves::new(ranks),
            wave_ns: 0,
            hearsay: None,
            meetings: 0,
            finishing: false,
            config,
        })
    }

    /// Returns the HOST:PORT in use.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn address(&self) -> Result<String, LiveError> {
        self.listener.address().map_err(LiveError::system("listening"))
    }

    /// Returns a handle that ends the run from another thread.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Runs on this thread until all ranks are done. Calls `started` with time 0 on the monotonic clock, ns, shortly
    /// before it.
    ///
    /// # Errors
    /// When a rank is lost or does something invalid, the program is stuck, or its result is wrong.
    pub fn run<P: Program>(mut self, program: &P, started: &mut dyn FnMut(u64)) -> Result<Outcome, LiveError> {
        if program.ranks() != self.config.run.ranks {
            let why = format!("the program has {} ranks, the run {}", program.ranks(), self.config.run.ranks);
            return Err(LiveError::Setup(why));
        }
        let zero_ns = match self.conduct(started) {
            Ok(zero_ns) => zero_ns,
            Err(error) => {
                self.config.log.note(&format!("the run ends: {error}"));
                for channel in self.slots.iter_mut().filter_map(|slot| slot.channel.as_mut()) {
                    // If the rank is gone, the message is not needed.
                    let _ = channel.send_wire(&Wire::Abort { why: error.to_string() }, 0);
                }
                return Err(error);
            }
        };
        let last_ns = self.slots.iter().filter_map(|slot| slot.done_ns).max().unwrap_or(zero_ns);
        let results: Vec<Vec<u64>> = self.slots.iter().map(|slot| words(&slot.held)).collect();
        program.check(&results).map_err(LiveError::WrongResult)?;
        Ok(Outcome {
            makespan_s: last_ns.saturating_sub(zero_ns) as f64 * 1e-9,
            ranks: self.slots.iter_mut().filter_map(|slot| slot.report.take()).collect(),
        })
    }

    fn conduct(&mut self, started: &mut dyn FnMut(u64)) -> Result<u64, LiveError> {
        let begun = now_ns();
        let by = |s: f64| begun.saturating_add((s * 1e9) as u64);
        let start_by = by(self.config.run.start_s);
        self.until(start_by, "did not come", |slot| slot.channel.is_some())?;
        let peers: Vec<String> = self.slots.iter().map(|slot| slot.address.clone()).collect();
        let admission = Admission { run: self.config.run.clone(), peers };
        let settings = serde_json::to_vec(&admission).map_err(|error| LiveError::Setup(error.to_string()))?;
        for rank in 0..self.slots.len() {
            let proof = self.slots[rank].proof;
            self.with(rank, |channel| welcome(proof, channel, settings.clone()))?;
        }
        self.until(start_by, "is not connected with all others", |slot| slot.meshed)?;
        self.stop.start.meshed.store(true, Ordering::Release);
        let zero_ns = if self.config.held { self.held_until(start_by)? } else { now_ns() + AHEAD_NS };
        started(zero_ns);
        for rank in 0..self.slots.len() {
            self.send_wire(rank, &Wire::Start { zero_ns })?;
        }
        self.wave_ns = zero_ns;
        let limit = self.config.run.limit_s.map(|s| zero_ns.saturating_add((s * 1e9) as u64));
        while !self.slots.iter().all(|slot| slot.report.is_some()) {
            if limit.is_some_and(|limit| now_ns() > limit) {
                let limit_s = self.config.run.limit_s.unwrap_or_default();
                let waits = self.waves.waits(None);
                return Err(LiveError::Lost(format!("the run is not over after {limit_s} s: {waits}")));
            }
            self.look_after_waves()?;
            self.attend(self.next_ns(limit))?;
        }
        Ok(zero_ns)
    }

    /// Waits until [`Stop::begin`] has set time 0. Fails after `by_ns`.
    fn held_until(&mut self, by_ns: u64) -> Result<u64, LiveError> {
        loop {
            if let Some(zero_ns) = self.stop.start.zero_ns.get() {
                self.stop.waker.clear(); // the same waker ends the run
                self.stop.check()?;
                return Ok(*zero_ns);
            }
            if now_ns() > by_ns {
                let patience = self.config.run.start_s;
                return Err(LiveError::Lost(format!("the other programs were not ready within {patience} s")));
            }
            self.attend(by_ns)?;
        }
    }

    /// Handles events until `is` is true for all ranks. Fails after `by_ns`.
    fn until(&mut self, by_ns: u64, lacks: &str, is: impl Fn(&Slot) -> bool) -> Result<(), LiveError> {
        while let Some(rank) = self.slots.iter().position(|slot| !is(slot)) {
            if now_ns() > by_ns {
                let patience = self.config.run.start_s;
                return Err(LiveError::Lost(format!("rank {rank} {lacks} within {patience} s")));
            }
            self.attend(by_ns)?;
        }
        Ok(())
    }

    // Termination detection -------------------------------------------------------------------------------------------------

    fn next_ns(&self, limit: Option<u64>) -> u64 {
        let run = &self.config.run;
        let wave_s = if self.waves.is_open() { run.silence_s } else { run.quiet_s };
        let wave = self.wave_ns.saturating_add((wave_s * 1e9) as u64);
        wave.min(limit.unwrap_or(u64::MAX))
    }

    fn look_after_waves(&mut self) -> Result<(), LiveError> {
        let now = now_ns();
        if self.finishing {
            return match now.saturating_sub(self.wave_ns) as f64 * 1e-9 > self.config.run.silence_s {
                true => Err(LiveError::Lost("the ranks are done, and one did not report".into())),
                false => Ok(()),
            };
        }
        if let Some(rank) = self.waves.silent() {
            let silence_s = self.config.run.silence_s;
            if now.saturating_sub(self.wave_ns) as f64 * 1e-9 > silence_s {
                let others = self.waves.waits(Some(rank));
                return Err(LiveError::Lost(format!("rank {rank} has not answered for {silence_s} s; {others}")));
            }
            return Ok(());
        }
        let all_done = self.slots.iter().all(|slot| slot.done_ns.is_some());
        if all_done || now.saturating_sub(self.wave_ns) as f64 * 1e-9 > self.config.run.quiet_s {
            let wave = self.waves.begin();
            self.wave_ns = now;
            for rank in 0..self.slots.len() {
                self.send_wire(rank, &Wire::Probe { wave })?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, verdict: Verdict) -> Result<(), LiveError> {
        self.wave_ns = now_ns();
        match verdict {
            Verdict::Moving => Ok(()),
            Verdict::Stuck => Err(LiveError::Deadlock(self.waves.waits(None))),
            Verdict::Over => {
                self.finishing = true;
                (0..self.slots.len()).try_for_each(|rank| self.send_wire(rank, &Wire::Finish))
            }
        }
    }

    /// Releases the ranks if all of them wait, and at a store-sync if all one-way messages are handled.
    fn release(&mut self) -> Result<(), LiveError> {
        let Some(entered) = self.slots.iter().map(|slot| slot.entered).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let stores = entered[0].0;
        // If some wait at a barrier and others at a store-sync, none is released, and the waves detect a deadlock.
        let same = entered.iter().all(|one| one.0 == stores);
        let empty = entered.iter().map(|one| one.1).sum::<u64>() == entered.iter().map(|one| one.2).sum::<u64>();
        if !same || stores && !empty {
            return Ok(());
        }
        self.waves.stir();
        self.meetings += 1;
        self.slots.iter_mut().for_each(|slot| slot.entered = None);
        (0..self.slots.len()).try_for_each(|rank| self.send_wire(rank, &Wire::Release))
    }

    // Connections -----------------------------------------------------------------------------------------------------------

    fn with(&mut self, rank: usize, then: impl FnOnce(&mut Channel) -> io::Result<()>) -> Result<(), LiveError> {
        match self.slots[rank].channel.as_mut().map_or(Ok(()), then) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.gone(rank, &error)),
        }
    }

    fn send_wire(&mut self, rank: usize, what: &Wire) -> Result<(), LiveError> {
        self.with(rank, |channel| channel.send_wire(what, 0))
    }

    fn gone(&self, rank: usize, error: &io::Error) -> LiveError {
        let waits = self.waves.waits(None);
        let waits = if waits.is_empty() { waits } else { format!("; when last asked: {waits}") };
        LiveError::Lost(format!("rank {rank} is gone: {error}{waits}"))
    }

    /// Waits for an event until `by_ns`, and handles it.
    fn attend(&mut self, by_ns: u64) -> Result<(), LiveError> {
        let by_ns = self.hearsay.as_ref().map_or(by_ns, |(at, ..)| by_ns.min(at + HEARSAY_NS));
        let by_ns = self.listener.due().map_or(by_ns, |due| by_ns.min(due));
        let mut watched = vec![watch(self.stop.waker.fd(), true, false)];
        watched.extend(self.slots.iter().map(|slot| {
            slot.channel.as_ref().map_or_else(|| watch(-1, false, false), |link| watch(link.fd(), true, link.is_full()))
        }));
        watched.extend(self.listener.fds().map(|fd| watch(fd, true, false)));
        linux::wait(&mut watched, Some(by_ns.saturating_sub(now_ns()))).map_err(LiveError::system("waiting"))?;
        self.stop.check()?;
        self.let_in()?;
        for rank in 0..self.slots.len() {
            if watched[rank + 1].revents != 0 {
                self.on_frames(rank)?;
            }
        }
        match &self.hearsay {
            Some((at, rank, why)) if now_ns() > at + HEARSAY_NS => {
                Err(LiveError::Lost(format!("a connection with rank {rank} broke: {why}")))
            }
            _ => Ok(()),
        }
    }

    fn let_in(&mut self) -> Result<(), LiveError> {
        let log = &mut self.config.log;
        for peer in self.listener.attend(now_ns(), &mut |_, line| log.note_once(line)) {
            let AuthenticatedPeer { stream, rest, proof, name, about, .. } = peer;
            let slot = number(&name, self.config.run.ranks).map(|rank| &mut self.slots[rank as usize]);
            let Some(slot) = slot.filter(|slot| slot.address.is_empty()) else {
                refuse(stream, Refusal::Final, &format!("{name:?} is not waited for here"));
                continue;
            };
            let channel = Channel::new(stream, &rest).map_err(LiveError::system("talking to a rank"))?;
            (slot.channel, slot.address, slot.proof) = (Some(channel), about, proof);
        }
        Ok(())
    }

    fn on_frames(&mut self, rank: usize) -> Result<(), LiveError> {
        let Some(channel) = &mut self.slots[rank].channel else { return Ok(()) };
        let filled = channel.flush().and_then(|()| channel.fill());
        loop {
            let frame = match &mut self.slots[rank].channel {
                Some(channel) => channel.next(),
                None => return Ok(()),
            };
            match frame {
                Ok(Some(frame)) => self.take(rank, frame)?,
                Ok(None) => break,
                Err(error) => return Err(self.gone(rank, &error)),
            }
        }
        // A rank that has sent its report may disconnect.
        match filled {
            Err(error) if self.slots[rank].report.is_none() => Err(self.gone(rank, &error)),
            Err(_) => {
                self.slots[rank].channel = None;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn take(&mut self, rank: usize, frame: Wire) -> Result<(), LiveError> {
        let broken = |what: &str| Err(LiveError::Lost(format!("rank {rank} {what}")));
        let slot = &mut self.slots[rank];
        match frame {
            Wire::Meshed => slot.meshed = true,
            // A rank repeats its counts after handling more messages. By then the store-sync may be complete.
            Wire::Enter { meeting, .. } if meeting < self.meetings => {}
            Wire::Enter { stores, sent, handled, .. } => {
                slot.entered = Some((stores, sent, handled));
                return self.release();
            }
            Wire::Status { wave, state, sent, handled, what } => {
                if let Some(verdict) = self.waves.answer(rank, wave, Answer { state, sent, handled, what }) {
                    return self.judge(verdict);
                }
            }
            Wire::Done { at_ns } => slot.done_ns = Some(at_ns),
            Wire::Held { piece } => {
                if slot.held.len() + piece.len() > MOST_HELD {
                    return broken(&format!("holds more than {MOST_HELD} bytes at its end"));
                }
                slot.held.extend(piece);
            }
            Wire::Report { report } => match serde_json::from_slice(&report) {
                Ok(report) => slot.report = Some(report),
                Err(error) => return broken(&format!("sent an invalid report: {error}")),
            },
            Wire::Lost { rank: other, why } => {
                self.hearsay.get_or_insert((now_ns(), other, why));
            }
            // The reason may be a consequence of another rank's end.
            Wire::Abort { why } => return Err(LiveError::Lost(format!("rank {rank} gave up: {why}"))),
            _ => return broken("sent a frame that ranks do not send"),
        }
        Ok(())
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    super::wire::words(bytes).collect()
}
