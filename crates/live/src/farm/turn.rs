//! The loop of an agent: waits for sockets, timers and the computing thread, and lets the station act. One thread, and no
//! call in it waits for anybody but in [`linux::wait`].
//!
//! Everything that has come is taken in before anything is written, so that many small tasks cost one call each way.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use crosswind_policy::farm::Event;

use crate::diary::Diary;
use crate::door::Door;
use crate::error::LiveError;
use crate::farm::executor::{ComputeThread, Maker, Noop, Trying};
use crate::farm::link::{Broken, Heard, Link};
use crate::farm::payload::no_space;
use crate::farm::root::Desk;
use crate::farm::station::{ASKED_TOO_MUCH, Processor, Station, Up};
use crate::linux::{self, Bell, now_ns};
use crosswind_agent::emulated::EmulatedProcessor;
use crosswind_agent::frame::Frame;
use crosswind_agent::record::Happening;
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_schema::units::Quantity;

/// The longest that the loop sleeps, ns.
const NAP_NS: u64 = 200_000_000;
/// How long an agent that must end tries to say why, and how often it looks, ns.
const LAST_WORDS_NS: u64 = 2_000_000_000;
const LOOK_NS: u64 = 10_000_000;
/// Pings in a row with which a child learns its parent's clock.
const FIRST_PINGS: u32 = 8;

/// Something that happened: an agent ended, and not since its run did.
pub(crate) const AGENT_FAILED: &str = "agent-failed";

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Children are waited for.
    Gathering,
    /// All are here; the start is waited for (not at the root).
    Ready,
    /// Time has begun.
    Running,
    /// No more tasks: reports are gathered.
    Finishing,
    /// All is told.
    Reported,
}

/// How a loop ended.
#[derive(Debug)]
pub(crate) enum End {
    /// As it should.
    Bye,
    /// The parent is gone.
    ParentLost(String),
}

/// A piece of an agent's report.
#[derive(Debug)]
pub(crate) struct Piece {
    pub node: u32,
    pub part: u8,
    pub bytes: Vec<u8>,
}

/// Bytes that a piece takes beyond its own.
const PIECE_BYTES: usize = size_of::<Piece>();

/// The loop.
pub(crate) struct Turn<'a> {
    pub station: Station,
    pub door: Option<&'a mut Door>,
    pub bell: Arc<Bell>,
    pub phase: Phase,
    pub diary: &'a mut Diary,
    pub code: Arc<Vec<u8>>,
    pub watch_input: bool,
    /// Where a byte asks this agent to leave.
    pub leave: Option<RawFd>,
    /// Whether it was asked to.
    draining: bool,
    /// At the root.
    pub desk: Option<&'a mut dyn Desk>,
    pub pieces: Vec<Piece>,
    /// Tasks that each node computed and that were delivered; at the root.
    pub computed: HashMap<u32, u64>,
    /// What nodes are called; at the root.
    pub names: HashMap<u32, Arc<str>>,
    /// Most tasks that the children hold; at the root.
    pub wanted: u64,
    /// Whether time 0 was over when this agent came.
    pub joins_late: bool,
    pub began_ns: u64,
    pub supply_over: bool,
    pub last_result_ns: u64,
    pub finishing_ns: u64,
    next_ping_ns: u64,
    pings: u32,
    last_turn_ns: u64,
    heard: Vec<Heard>,
}

/// Makes what computes.
pub(crate) fn processor(
    run: &RunSettings,
    place: u32,
    children: &[u32],
    maker: Option<Maker>,
    bell: &Arc<Bell>,
) -> Result<Processor, LiveError> {
    Ok(match (&run.work, maker) {
        (Work::Emulated { time_scale, .. }, _) => {
            let own = &run.platform.nodes[place as usize];
            let ir_send = children.iter().map(|&c| run.platform.nodes[c as usize].ir_send_s_per_mb.get()).collect();
            let (compute, ir_receive) = (own.compute_per_s.get(), own.ir_receive_s_per_mb.get());
            Processor::Emulated(EmulatedProcessor::new(compute, ir_receive, ir_send, *time_scale))
        }
        (Work::Noop, _) => Processor::Immediate(Box::new(Noop)),
        (_, Some(maker)) => {
            let starting = LiveError::system("starting the computing thread");
            Processor::Thread(ComputeThread::start(maker, run.retries, Arc::clone(bell)).map_err(starting)?)
        }
        (work, None) => return Err(LiveError::Setup(format!("nobody here can do {work:?}"))),
    })
}

impl<'a> Turn<'a> {
    pub fn new(
        station: Station,
        door: Option<&'a mut Door>,
        bell: Arc<Bell>,
        diary: &'a mut Diary,
        code: Arc<Vec<u8>>,
    ) -> Self {
        let now = now_ns();
        Self {
            station,
            door,
            bell,
            phase: Phase::Gathering,
            diary,
            code,
            watch_input: false,
            leave: None,
            draining: false,
            desk: None,
            pieces: Vec::new(),
            computed: HashMap::new(),
            names: HashMap::new(),
            wanted: 0,
            joins_late: false,
            began_ns: now,
            supply_over: false,
            last_result_ns: now,
            finishing_ns: 0,
            next_ping_ns: 0,
            pings: 0,
            last_turn_ns: now,
            heard: Vec::new(),
        }
    }

    /// Runs until the end.
    pub fn run(&mut self) -> Result<End, LiveError> {
        linux::exact_timers();
        loop {
            let once = self.once();
            if let Err(error) = &once {
                self.tell_why(error);
            }
            match once? {
                // Who was to leave anyway does not knock again.
                Some(End::ParentLost(_)) if self.draining => return Ok(End::Bye),
                Some(end) => return Ok(end),
                None => {}
            }
        }
    }

    fn once(&mut self) -> Result<Option<End>, LiveError> {
        let now = now_ns();
        let mut due = self.station.pass_time(now);
        self.worked()?;
        due = earliest(due, self.end_if_over_time(now)?);
        self.supply()?;
        match self.progress(now).and_then(|()| self.flush(now)) {
            Ok(next) => due = earliest(due, next),
            Err(LiveError::Lost(why)) if self.desk.is_none() => return Ok(Some(End::ParentLost(why))),
            Err(error) => return Err(error),
        }
        self.deliver();
        if self.desk.is_some() && self.phase == Phase::Reported {
            return Ok(Some(End::Bye));
        }
        // What happened meanwhile may have made something due.
        due = earliest(due, self.station.pass_time(now));
        self.wait_and_read(due)
    }

    fn worked(&mut self) -> Result<(), LiveError> {
        if let Processor::Thread(thread) = &self.station.processor {
            for worked in thread.take().map_err(LiveError::Setup)? {
                self.station.worked(worked);
            }
            self.station.settle();
        }
        Ok(())
    }

    /// When the task that is computed will be over its time. One that is, and that nothing but the end of this process
    /// ends, is told to the parent, which knows then that this agent was not lost.
    fn end_if_over_time(&mut self, now: u64) -> Result<Option<u64>, LiveError> {
        let (over, due) = self.station.over_time(now);
        let (Some(Trying { task, tried, .. }), Up::Parent(link)) = (over, &mut self.station.up) else { return Ok(due) };
        link.say(&Frame::OverTime { task, tried });
        self.speak_last();
        Err(LiveError::OverTime { task, timeout_s: self.station.run.task_limits.timeout_s.unwrap_or_default() })
    }

    /// Tells the parent what ends this agent, where that is not the parent's or the run's end.
    fn tell_why(&mut self, error: &LiveError) {
        if matches!(error, LiveError::Lost(_) | LiveError::OverTime { .. } | LiveError::Interrupted) {
            return;
        }
        let message = format!("{} ended: {error}", self.station.totals.name);
        self.station.happen(AGENT_FAILED, None, message);
        self.pass_on_happenings();
        self.speak_last();
    }

    /// Writes what is still to be written to the parent, while it takes any of it.
    fn speak_last(&mut self) {
        let Up::Parent(link) = &mut self.station.up else { return };
        let until = now_ns() + LAST_WORDS_NS;
        while now_ns() < until && link.flush(now_ns()).is_ok() && link.wants_room() {
            let mut watched = [linux::watch(link.fd(), false, true)];
            if linux::wait(&mut watched, Some(LOOK_NS)).is_err() {
                return;
            }
        }
    }

    /// Writes to all links, and again where that made the policy say more.
    fn flush(&mut self, now: u64) -> Result<Option<u64>, LiveError> {
        let mut due = None;
        for _ in 0..64 {
            due = None;
            let mut more = false;
            let asked = self.station.take_asked();
            if asked > 0 && self.phase != Phase::Gathering {
                if let Up::Parent(link) = &mut self.station.up {
                    link.say(&Frame::Ask { tasks: asked });
                }
            }
            for child in 0..self.station.slots.len() {
                let Some(link) = &mut self.station.slots[child].link else { continue };
                match link.flush(now) {
                    Ok(next) => due = earliest(due, next),
                    Err(error) => {
                        // Its last words still count.
                        self.read_child(child as u32, now)?;
                        self.lose(child as u32, &error.to_string(), now);
                        more = true;
                        continue;
                    }
                }
                if !link.done.is_empty() {
                    self.station.collect(Some(child as u32));
                    more = true;
                }
            }
            if let Up::Parent(link) = &mut self.station.up {
                due = earliest(due, link.flush(now).map_err(|error| LiveError::Lost(error.to_string()))?);
                if !link.done.is_empty() {
                    self.station.collect(None);
                    more = true;
                }
            }
            if !more {
                return Ok(due);
            }
            self.station.settle();
        }
        Ok(Some(due.unwrap_or(now).min(now)))
    }

    pub fn lose(&mut self, child: u32, why: &str, now: u64) {
        let name = self.station.slots[child as usize].name.clone();
        self.diary.note(&format!("{name} is lost: {why}"));
        self.station.lose(child, why, now);
    }

    fn wait_and_read(&mut self, due: Option<u64>) -> Result<Option<End>, LiveError> {
        let mut watched = vec![linux::watch(self.bell.fd(), true, false)];
        let mut children = Vec::with_capacity(self.station.slots.len());
        for (child, slot) in self.station.slots.iter().enumerate() {
            if let Some(link) = &slot.link {
                children.push(child as u32);
                watched.push(linux::watch(link.fd(), true, link.wants_room()));
            }
        }
        let parent = if let Up::Parent(link) = &self.station.up {
            watched.push(linux::watch(link.fd(), true, link.wants_room()));
            Some(watched.len() - 1)
        } else {
            None
        };
        // Who finishes what it has need not have anybody who started it any more.
        let input = (self.watch_input && !self.draining).then(|| {
            watched.push(linux::watch(0, true, false));
            watched.len() - 1
        });
        if let Some(fd) = self.leave {
            watched.push(linux::watch(fd, true, false));
        }
        let door = watched.len();
        let mut patience = None;
        if let Some(open) = &self.door {
            watched.extend(open.fds().map(|fd| linux::watch(fd, true, false)));
            patience = open.due();
        }
        let now = now_ns();
        // What a sealed connection has read and not handed out, no socket tells.
        let held = self.station.slots.iter().filter_map(|slot| slot.link.as_ref()).any(Link::holds)
            || matches!(&self.station.up, Up::Parent(link) if link.holds());
        let until = if held { now } else { earliest(earliest(due, patience), Some(now + NAP_NS)).unwrap_or(now) };
        linux::wait(&mut watched, Some(until.saturating_sub(now))).map_err(LiveError::system("waiting"))?;
        let now = now_ns();
        if linux::readable(&watched[0]) {
            self.bell.silence();
        }
        if input.is_some_and(|at| linux::readable(&watched[at])) && linux::input_ended() {
            self.diary.note("whoever started this is gone");
            return Ok(Some(End::Bye));
        }
        let asked = self.leave.map_or(0, linux::take_waiting);
        if asked > 0 && self.drain(asked, now) {
            return Ok(Some(End::Bye));
        }
        for (at, &child) in children.iter().enumerate() {
            let holds = self.station.slots[child as usize].link.as_ref().is_some_and(Link::holds);
            if holds || linux::readable(&watched[1 + at]) {
                self.read_child(child, now)?;
            }
        }
        let holds = matches!(&self.station.up, Up::Parent(link) if link.holds());
        if parent.is_some_and(|at| holds || linux::readable(&watched[at])) {
            if let Some(end) = self.read_parent(now)? {
                return Ok(Some(end));
            }
        }
        if watched[door..].iter().any(linux::readable) || patience.is_some_and(|due| due <= now) {
            self.attend(now);
        }
        Ok(self.beat(now))
    }

    fn read_child(&mut self, child: u32, now: u64) -> Result<(), LiveError> {
        let Station { slots, spool, .. } = &mut self.station;
        let Some(link) = &mut slots[child as usize].link else { return Ok(()) };
        let mut heard = std::mem::take(&mut self.heard);
        let result = link.read(spool, now, &mut heard);
        for heard in heard.drain(..) {
            self.hear_child(child, heard, now);
        }
        self.heard = heard;
        match result {
            Ok(_) => {}
            Err(Broken::Peer(error)) => self.lose(child, &error.to_string(), now),
            Err(Broken::Own(error)) => return Err(self.cannot_keep("a result", error)),
        }
        Ok(())
    }

    fn hear_child(&mut self, child: u32, heard: Heard, now: u64) {
        let at = child as usize;
        let slot = &mut self.station.slots[at];
        if slot.left {
            return; // it was dropped for what it said before
        }
        match heard {
            // An answer that waits behind so much would tell a wrong time, and more and more would wait.
            Heard::Said(Frame::Ping { .. }) if slot.link.as_ref().is_some_and(Link::is_behind) => {}
            Heard::Said(Frame::Ping { child_ns }) => {
                let root_ns = self.station.clock.root_ns(now_ns());
                self.say(child, &Frame::Pong { child_ns, root_ns });
            }
            Heard::Said(Frame::Ready { agents, tasks }) => {
                if slot.ready.is_some() {
                    return self.lose(child, "it said twice that it is ready", now);
                }
                if !slot.allowance.asks(tasks) {
                    return self.lose(child, ASKED_TOO_MUCH, now);
                }
                slot.ready = Some((agents, tasks));
                if self.phase == Phase::Running {
                    let root_ns = self.station.clock.root_ns(self.station.zero_ns);
                    self.say(child, &Frame::Start { root_ns });
                    self.station.tell(Event::Asked { child, tasks }, now);
                } else if self.phase == Phase::Finishing {
                    self.say(child, &Frame::Finish);
                }
            }
            Heard::Said(Frame::Report { node, part, piece }) => {
                if !matches!(self.phase, Phase::Finishing | Phase::Reported) && !slot.is_drained() {
                    return self.lose(child, "it reported before it was told to finish", now);
                }
                if !slot.allowance.reports(piece.len() + PIECE_BYTES) {
                    return self.lose(child, "its report is too long", now);
                }
                match &mut self.station.up {
                    Up::Parent(link) => link.say(&Frame::Report { node, part, piece }),
                    Up::User(_) => self.pieces.push(Piece { node, part, bytes: piece }),
                }
            }
            Heard::Said(Frame::Reported) => {
                self.station.slots[at].reported = true;
                if self.station.slots[at].draining.is_some() && self.phase == Phase::Running {
                    self.station.release(child, now);
                }
            }
            Heard::Said(Frame::Draining) => {
                self.diary.note(&format!("{} is to leave", self.station.slots[at].name));
                self.station.drain(child, now);
            }
            Heard::Said(Frame::OverTime { task, tried }) => {
                self.diary.note(&format!("{}: task {task} is over its time", self.station.slots[at].name));
                self.station.ends_over_time(child, task, tried, now);
            }
            Heard::Said(Frame::Happened { event }) if !slot.allowance.tells(event.len()) => {
                self.lose(child, "it told too many events", now);
            }
            Heard::Said(Frame::Happened { event }) => match serde_json::from_str(&event) {
                Ok(event) => {
                    let event: Happening = event;
                    let slot = &mut self.station.slots[at];
                    slot.failed |= event.code == AGENT_FAILED && event.node.as_ref() == Some(&slot.name);
                    self.station.happened.push(event);
                }
                Err(error) => self.diary.note_once(&format!("an event that can't be read: {error}")),
            },
            Heard::Said(Frame::Bye) => self.lose(child, "it said goodbye", now),
            heard => {
                if let Err(why) = self.station.hear_child(child, heard, now) {
                    self.lose(child, why, now);
                }
            }
        }
    }

    /// Asked to leave, so many times; whether that is to be at once.
    fn drain(&mut self, asked: usize, now: u64) -> bool {
        let again = asked > 1 || self.draining;
        self.draining = true;
        match self.phase {
            _ if again => return true,
            // Nothing is here yet.
            Phase::Gathering | Phase::Ready => return true,
            // It ends anyway.
            Phase::Finishing | Phase::Reported => {}
            Phase::Running => {
                self.diary.note("asked to leave: finishing what is here");
                if let Up::Parent(link) = &mut self.station.up {
                    link.say(&Frame::Draining);
                }
                self.station.tell(Event::Drain, now);
            }
        }
        false
    }

    fn say(&mut self, child: u32, frame: &Frame) {
        if let Some(link) = &mut self.station.slots[child as usize].link {
            link.say(frame);
        }
    }

    fn read_parent(&mut self, now: u64) -> Result<Option<End>, LiveError> {
        let Station { up, spool, .. } = &mut self.station;
        let Up::Parent(link) = up else { return Ok(None) };
        let mut heard = std::mem::take(&mut self.heard);
        let result = link.read(spool, now, &mut heard);
        let mut end = None;
        for heard in heard.drain(..) {
            if end.is_none() {
                end = self.hear_parent(heard, now);
            }
        }
        self.heard = heard;
        match result {
            Err(Broken::Own(error)) => return Err(self.cannot_keep("a task", error)),
            Err(Broken::Peer(error)) if end.is_none() => end = Some(End::ParentLost(error.to_string())),
            _ => {}
        }
        Ok(end)
    }

    fn cannot_keep(&self, what: &str, error: std::io::Error) -> LiveError {
        let directory = self.station.spool.directory();
        let place = no_space(directory).unwrap_or_else(|| directory.display().to_string());
        LiveError::system(format!("{place}: keeping {what}"))(error)
    }

    fn hear_parent(&mut self, heard: Heard, now: u64) -> Option<End> {
        match heard {
            Heard::Said(Frame::Pong { child_ns, root_ns }) => {
                self.station.clock.pong(child_ns, root_ns, now_ns());
                self.pings += 1;
                if self.pings < FIRST_PINGS {
                    self.ping();
                }
            }
            Heard::Said(Frame::Start { root_ns }) => {
                let zero = self.station.clock.own_ns(root_ns);
                self.start(zero, now);
            }
            Heard::Said(Frame::Finish) => self.finish(now),
            Heard::Said(Frame::Bye) => return Some(End::Bye),
            heard => match self.station.hear_parent(heard, now) {
                Ok(true) => {}
                Ok(false) => return Some(End::ParentLost("it said what no parent says".into())),
                Err(error) => return Some(End::ParentLost(error.to_string())),
            },
        }
        None
    }

    pub fn ping(&mut self) {
        if let Up::Parent(link) = &mut self.station.up {
            link.say(&Frame::Ping { child_ns: now_ns() });
        }
    }

    /// Says that this lives, and looks whether the others do.
    fn beat(&mut self, now: u64) -> Option<End> {
        let silence = (self.station.run.silence_s * 1e9) as u64;
        // Who was stopped itself has not listened, and blames nobody.
        let asleep = now.saturating_sub(self.last_turn_ns) > silence / 4;
        self.last_turn_ns = now;
        let silent = |link: &mut Link| {
            if asleep {
                link.heard_ns = now;
            }
            now.saturating_sub(link.heard_ns) > silence
        };
        let mut lost = Vec::new();
        for (child, slot) in self.station.slots.iter_mut().enumerate() {
            if slot.link.as_mut().is_some_and(silent) {
                lost.push(child as u32);
            }
        }
        for child in lost {
            self.lose(child, &format!("it was silent for {} s", self.station.run.silence_s), now);
        }
        if let Up::Parent(link) = &mut self.station.up {
            if silent(link) {
                return Some(End::ParentLost(format!("it was silent for {} s", self.station.run.silence_s)));
            }
            if now >= self.next_ping_ns {
                self.next_ping_ns = now + (self.station.run.heartbeat_s * 1e9) as u64;
                self.ping();
            }
        }
        None
    }

    /// The last words to everybody below.
    pub fn bye(&mut self) {
        let now = now_ns();
        for slot in &mut self.station.slots {
            if let Some(link) = &mut slot.link {
                link.say_bye(now);
            }
        }
    }
}

pub(crate) fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}
