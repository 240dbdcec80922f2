//! The way of a run: gathering, start, tasks and results at the root, finish, reports; and who is let in meanwhile.

use std::sync::Arc;

use crosswind_access::Transport;
use crosswind_policy::farm::Event;
use crosswind_schema::Node;

use crate::door::{Caller, refuse};
use crate::error::LiveError;
use crate::farm::link::Link;
use crate::farm::root::{Delivery, NewTask, Supply};
use crate::farm::station::{Finished, Stored, Up};
use crate::farm::turn::{AGENT_FAILED, Phase, Piece, Turn};
use crate::linux::now_ns;
use crosswind_agent::frame::Frame;
use crosswind_agent::record::Happening;
use crosswind_agent::settings::{Admission, GUESTS, RunSettings};

/// Parts of a report.
pub(crate) const TOTALS: u8 = 0;
pub(crate) const ROWS: u8 = 1;
pub(crate) const LOG: u8 = 2;
/// Bytes of a report in one frame.
const PIECE: usize = 1 << 20;
/// Bytes of code in one frame.
const CODE_PIECE: usize = 1 << 20;
/// Agents that the platform does not know, and that may join one node.
const MOST_GUESTS: usize = 10_000;
/// Bytes of such an agent's name.
const LONGEST_NAME: usize = 255;
/// Tasks that wait at the root beyond those that all children may ask for.
const AHEAD: u64 = 64;
/// Bytes in memory that may wait at the root.
const AHEAD_BYTES: u64 = 256 << 20;
/// How long reports are waited for once all tasks are done, ns.
const REPORT_PATIENCE_NS: u64 = 20_000_000_000;
/// How long an agent that joins a run waits for children that may have followed it, ns.
const REJOIN_PATIENCE_NS: u64 = 2_000_000_000;
/// The share of the patience before time 0 after which an inner node goes ahead without those who are missing.
const INNER_SHARE: f64 = 0.8;

impl Turn<'_> {
    /// The next phase, if it is time.
    pub fn progress(&mut self, now: u64) -> Result<(), LiveError> {
        self.pass_on_happenings();
        match self.phase {
            Phase::Gathering => self.gather(now),
            Phase::Running => {
                self.station.finish_the_drained();
                return if self.desk.is_some() { self.is_it_over(now) } else { self.is_it_of_use(now) };
            }
            Phase::Finishing => self.report(now),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn pass_on_happenings(&mut self) {
        if let Up::Parent(link) = &mut self.station.up {
            for event in self.station.happened.drain(..) {
                // A plain structure always has a text.
                if let Ok(event) = serde_json::to_string(&event) {
                    link.say(&Frame::Happened { event });
                }
            }
        }
    }

    fn gather(&mut self, now: u64) {
        let is_root = self.desk.is_some();
        let all = self.station.slots.iter().all(|slot| slot.left || (slot.link.is_some() && slot.ready.is_some()));
        let share = if is_root { 1.0 } else { INNER_SHARE };
        let mut patience = (self.station.run.start_s * share * 1e9) as u64;
        if self.joins_late {
            patience = patience.min(REJOIN_PATIENCE_NS);
        }
        if !all && now.saturating_sub(self.began_ns) < patience {
            return;
        }
        if is_root {
            self.start(now, now);
            return;
        }
        // It asks for those who are there, not for those who may come.
        self.go_without_the_missing(now);
        let tasks = self.station.first_request();
        let agents = self
            .station
            .slots
            .iter()
            .filter_map(|slot| slot.ready)
            .fold(0, |sum: u32, (agents, _)| sum.saturating_add(agents));
        if let Up::Parent(link) = &mut self.station.up {
            link.say(&Frame::Ready { agents: agents.saturating_add(1), tasks });
        }
        self.phase = Phase::Ready;
    }

    /// Time 0 is here, or was at `zero_ns`.
    pub fn start(&mut self, zero_ns: u64, now: u64) {
        if self.phase == Phase::Running {
            return;
        }
        self.station.zero_ns = zero_ns;
        self.phase = Phase::Running;
        self.began_ns = now;
        self.station.tell_of_memory();
        let root_ns = self.station.clock.root_ns(zero_ns);
        for slot in &mut self.station.slots {
            if let (Some(link), Some(_)) = (&mut slot.link, slot.ready) {
                link.say(&Frame::Start { root_ns });
            }
        }
        if self.desk.is_some() {
            if let Some(tasks) = self.station.run.tasks {
                self.station.tell(Event::ToCome { tasks }, now);
            }
            // The user's tasks are there before anybody asks.
            self.supply_now();
        }
        for child in 0..self.station.slots.len() {
            let slot = &self.station.slots[child];
            if let Some((_, tasks)) = slot.ready.filter(|_| slot.link.is_some()) {
                self.station.tell(Event::Asked { child: child as u32, tasks }, now);
            }
        }
        self.go_without_the_missing(now);
    }

    fn go_without_the_missing(&mut self, now: u64) {
        for child in 0..self.station.slots.len() {
            let slot = &self.station.slots[child];
            if slot.link.is_none() && !slot.left {
                self.diary.note(&format!("{} is not there; going ahead without it", slot.name));
                self.station.lose(child as u32, "it was not there at the start", now);
            }
        }
    }

    /// Takes tasks from the user, as many as are needed soon.
    pub fn supply(&mut self) -> Result<(), LiveError> {
        if let Some(failure) = self.desk.as_mut().and_then(|desk| desk.failure()) {
            return Err(failure);
        }
        if self.phase == Phase::Running {
            self.supply_now();
        }
        Ok(())
    }

    fn supply_now(&mut self) {
        let Some(desk) = self.desk.as_deref_mut() else { return };
        let wanted = AHEAD + self.wanted;
        let now = now_ns();
        while !self.supply_over && self.station.waiting() < wanted && desk.room() {
            if self.station.held_bytes > AHEAD_BYTES && self.station.waiting() > 1 {
                break;
            }
            match desk.next() {
                Supply::Task(NewTask { task, payload, work }) => {
                    self.station.hold(task, Stored { payload, work });
                    self.station.tell(Event::Arrived { task }, now);
                }
                Supply::Later => break,
                Supply::Over => {
                    self.supply_over = true;
                    self.station.tell(Event::ToCome { tasks: 0 }, now);
                }
            }
        }
    }

    /// Hands results to the user.
    pub fn deliver(&mut self) {
        let (Some(desk), Up::User(results)) = (self.desk.as_deref_mut(), &mut self.station.up) else { return };
        if results.is_empty() {
            return;
        }
        self.last_result_ns = now_ns();
        // Guests are known by what was said when they joined.
        let joined = self.station.happened.iter();
        for (number, name) in joined.filter_map(|event| Some((event.number?, event.node.as_deref()?))) {
            self.names.entry(number).or_insert_with(|| name.into());
        }
        let mut deliveries = Vec::with_capacity(results.len());
        for Finished { task, node, ok, payload } in results.drain(..) {
            *self.computed.entry(node).or_default() += 1;
            let node = self.names.entry(node).or_insert_with(|| "somebody".into());
            deliveries.push(Delivery { task, node: Arc::clone(node), ok, payload });
        }
        desk.deliver(&mut deliveries);
    }

    fn is_it_over(&mut self, now: u64) -> Result<(), LiveError> {
        if self.supply_over && self.station.tasks.is_empty() {
            if matches!(&self.station.up, Up::User(results) if results.is_empty()) {
                self.finish(now);
            }
            return Ok(());
        }
        // An agent may still join; but nobody waits for ever for one.
        if self.station.can_compute() {
            self.began_ns = now;
        } else if now.saturating_sub(self.began_ns) > (self.station.run.start_s * 1e9) as u64 {
            let left = self.station.tasks.len();
            let failed = self.station.happened.iter().rev().find(|event| event.code == AGENT_FAILED);
            let why =
                failed.map_or_else(String::new, |event| format!("; the last one that said why: {}", event.message));
            return Err(LiveError::Lost(format!("all agents are lost, and {left} tasks are not done{why}")));
        }
        Ok(())
    }

    /// A node that computes nothing itself and has lost all below it gives its tasks back by leaving its parent, and knocks
    /// again; nobody else would ever do them.
    fn is_it_of_use(&mut self, now: u64) -> Result<(), LiveError> {
        if self.station.can_compute() || self.station.tasks.is_empty() {
            self.began_ns = now;
        } else if now.saturating_sub(self.began_ns) > (self.station.run.silence_s * 1e9) as u64 {
            return Err(LiveError::Lost("nobody is left below who computes, and it is left to others".into()));
        }
        Ok(())
    }

    /// No more tasks: everybody tells what it did.
    pub fn finish(&mut self, now: u64) {
        if matches!(self.phase, Phase::Finishing | Phase::Reported) {
            return;
        }
        self.phase = Phase::Finishing;
        self.finishing_ns = now;
        for slot in &mut self.station.slots {
            if let Some(link) = &mut slot.link {
                link.say(&Frame::Finish);
            }
        }
    }

    fn report(&mut self, now: u64) {
        let told = self.station.slots.iter().all(|slot| slot.link.is_none() || slot.reported);
        if !told && now.saturating_sub(self.finishing_ns) < REPORT_PATIENCE_NS {
            return;
        }
        self.station.note_what_was_seen();
        let node = self.station.number;
        let shift = self.station.clock.shift_ns();
        let mut rows = Vec::new();
        for row in self.station.rows.drain(..) {
            row.encode(shift, &mut rows);
        }
        let totals = serde_json::to_vec(&self.station.totals).unwrap_or_default();
        let log = self.station.log.take().map_or_else(Vec::new, |log| log.0.into_bytes());
        for (part, bytes) in [(TOTALS, totals), (ROWS, rows), (LOG, log)] {
            for piece in bytes.chunks(PIECE) {
                match &mut self.station.up {
                    Up::Parent(link) => link.say(&Frame::Report { node, part, piece: piece.to_vec() }),
                    Up::User(_) => self.pieces.push(Piece { node, part, bytes: piece.to_vec() }),
                }
            }
        }
        if let Up::Parent(link) = &mut self.station.up {
            link.say(&Frame::Reported);
        }
        self.phase = Phase::Reported;
    }

    /// Somebody at the door.
    pub fn attend(&mut self, now: u64) {
        let Some(door) = &mut self.door else { return };
        let mut complaints = Vec::new();
        let callers = door.attend(now, &mut |line| complaints.push(line.to_owned()));
        for line in complaints {
            self.diary.note_once(&line);
        }
        for caller in callers {
            let (peer, name) = (caller.peer.clone(), caller.name.clone());
            if let Err((stream, why)) = self.admit(caller, now) {
                self.diary.note_once(&format!("refused {name:?} from {peer}: {why}"));
                stream.into_iter().for_each(|stream| refuse(stream, &why));
            }
        }
    }

    /// Lets a caller in who knows the token, and is who it says; otherwise says why not.
    fn admit(&mut self, caller: Caller, now: u64) -> Result<(), (Option<Transport>, String)> {
        let Caller { stream, name, about, rest, proof, .. } = caller;
        let seat = stream.names(&name).and_then(|()| self.seat(&name, &about, now));
        let (run, place, number) = match seat {
            Ok(seat) => seat,
            Err(why) => return Err((Some(stream), why)),
        };
        let admission = Admission {
            run: run.clone(),
            number,
            parent: self.station.number,
            running: self.phase != Phase::Gathering,
            code: !self.code.is_empty(),
        };
        let Ok(settings) = serde_json::to_vec(&admission) else {
            return Err((Some(stream), "the run can't be described".into()));
        };
        let chunk = self.station.run.policy.chunk_kib.saturating_mul(1024);
        let limit = self.station.run.largest_task_bytes;
        let mut link = Link::new(stream, &rest, chunk, limit, now).map_err(|error| (None, error.to_string()))?;
        link.say(&Frame::Welcome { proof, settings });
        let pieces = self.code.chunks(CODE_PIECE).count();
        for (at, piece) in self.code.chunks(CODE_PIECE).enumerate() {
            link.say(&Frame::Code { last: at + 1 == pieces, piece: piece.to_vec() });
        }
        let seat = self.station.slots.iter_mut().find(|slot| slot.name == name && !slot.left && slot.link.is_none());
        if let (Some(slot), true) = (seat, self.phase == Phase::Gathering) {
            slot.link = Some(link);
            return Ok(());
        }
        let settings = run.of_child(place).map_err(|error| (None, error.to_string()))?;
        self.station.run.platform = run.platform;
        self.station.run.planned_tasks_per_s = run.planned_tasks_per_s;
        self.station.join(place, number, settings, link, now);
        if self.phase != Phase::Gathering {
            self.diary.note(&format!("{name} joined"));
        }
        let (root_ns, message) = (self.station.clock.root_ns(now), format!("{name} joined the run"));
        let (code, node, number) = ("agent-joined".into(), Some(name), Some(number));
        self.station.happened.push(Happening { root_ns, code, node, number, tasks: None, message });
        Ok(())
    }

    /// Whether there is a place for a child of that name: the run with it, its place in the platform, its number.
    fn seat(&mut self, name: &str, about: &str, now: u64) -> Result<(RunSettings, u32, u32), String> {
        let own = self.station.totals.name.clone();
        let there = self.station.slots.iter().position(|slot| slot.name == name && slot.link.is_some());
        if let Some(at) = there {
            let beats = (self.station.run.heartbeat_s * 2.5e9) as u64;
            let heard = self.station.slots[at].link.as_ref().map_or(0, |link| link.heard_ns);
            if now.saturating_sub(heard) < beats {
                return Err(format!("{name} is here already"));
            }
            self.lose(at as u32, "it came again on another connection", now);
        }
        let run = &self.station.run;
        if let Some(place) = run.place(name) {
            let node = &run.platform.nodes[place as usize];
            if node.parent.as_deref() != Some(&own) {
                let whose = node.parent.as_deref().unwrap_or("nobody");
                return Err(format!("{name} is a child of {whose}, not of {own}"));
            }
            let number = self.station.slots.iter().find(|slot| slot.name == name).map_or(place, |slot| slot.number);
            return Ok((run.clone(), place, number));
        }
        let slots = &self.station.slots;
        if slots.len() >= MOST_GUESTS && slots.iter().filter(|slot| slot.number >= GUESTS).count() >= MOST_GUESTS {
            return Err(format!("{MOST_GUESTS} agents that the platform does not know have joined; no more may"));
        }
        if name.len() > LONGEST_NAME {
            return Err(format!("its name has {} bytes; at most {LONGEST_NAME} are taken", name.len()));
        }
        if about.is_empty() {
            return Err(format!("the platform has no node {name:?}; give its rates, and it may join"));
        }
        let mut node: Node = serde_json::from_str(about).map_err(|error| format!("its rates: {error}"))?;
        (node.name, node.parent) = (name.into(), Some(own));
        let run = run.with_guest(node).map_err(|error| error.to_string())?;
        let place = (run.platform.nodes.len() - 1) as u32;
        // Numbers of guests must differ over the whole tree, and nobody counts them all.
        let random = crosswind_access::token::random().map_err(|error| error.to_string())?;
        Ok((run, place, GUESTS | u32::from_be_bytes(random)))
    }
}
