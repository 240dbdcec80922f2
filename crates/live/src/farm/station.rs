//! A node of a live farm: what the policy says, done with links and a processor; what they do, told to the policy.
//!
//! The same at the root, at inner nodes and at leaves. It never waits: [`crate::farm::turn`] waits for it. Times are those of the
//! own monotonic clock. An emulated end of a transfer or of work counts from when it was due, not from when this process was
//! woken, so that lateness does not add up. How fast links go: `sharing`, `changing`; who the children are: `slot`; what is found out: `estimating`;
//! what a task may take: `limits`.

mod allowance;
mod changing;
mod estimating;
mod limits;
mod sharing;
mod slot;

use std::collections::{HashMap, VecDeque};
use std::io;

use crosswind_policy::farm::estimate::Estimator;
use crosswind_policy::farm::{Command, Event, Node, Settings};
use crosswind_schema::experiment::PlacedChange;
use crosswind_schema::units::Quantity;

pub(crate) use self::slot::Slot;
use self::slot::{latency, slot};
use crate::error::LiveError;
use crate::farm::executor::{Answer, ComputeThread, Executor, Job, Worked, work};
use crate::farm::link::{Done, Heard, Link, Outcome};
use crate::farm::payload::{Payload, Spool};
use crate::farm::transfer::{Kind, Pace};
use crate::linux::now_ns;
use crosswind_agent::clock::Clock;
use crosswind_agent::emulated::EmulatedProcessor;
use crosswind_agent::frame::Frame;
use crosswind_agent::late::Late;
use crosswind_agent::record::{Activity, Happening, Log, NOBODY, Row, Totals};
use crosswind_agent::settings::{RunSettings, Work};

/// How late an emulated end may be handled and still count from when it was due, ns.
const FORGIVEN_NS: u64 = 20_000_000;

/// After so many lost agents a task is not tried again.
const MOST_LOST: u32 = 5;
/// Why a child is lost that asks for more tasks than any tree holds.
pub(crate) const ASKED_TOO_MUCH: &str = "it asked for more tasks than it can hold";
/// A pace that the receiver has not been told yet.
const UNTOLD: f64 = -1.0;

/// What computes.
pub(crate) enum Processor {
    /// Nobody, really.
    Emulated(EmulatedProcessor),
    /// The loop's own thread.
    Immediate(Box<dyn Executor>),
    /// A thread of its own.
    Thread(ComputeThread),
}

/// A task that is here, or out under a child.
pub(crate) struct Stored {
    pub payload: Payload,
    pub work: f64,
}

impl Stored {
    fn in_memory(&self) -> u64 {
        if matches!(self.payload, Payload::Bytes(_)) { self.payload.len() } else { 0 }
    }
}

/// A result on its way up.
pub(crate) struct Finished {
    pub task: u64,
    pub node: u32,
    pub ok: bool,
    pub payload: Payload,
}

/// Where results go.
pub(crate) enum Up {
    Parent(Box<Link>),
    /// This is the root: results wait to be delivered.
    User(Vec<Finished>),
}

/// The node.
pub(crate) struct Station {
    pub number: u32,
    pub parent: u32,
    pub run: RunSettings,
    pub slots: Vec<Slot>,
    pub up: Up,
    pub tasks: HashMap<u64, Stored>,
    /// Bytes of their inputs in memory.
    pub held_bytes: u64,
    pub spool: Spool,
    pub clock: Clock,
    pub totals: Totals,
    pub rows: Vec<Row>,
    pub log: Option<Log>,
    pub happened: Vec<Happening>,
    pub processor: Processor,
    /// Own clock at time 0.
    pub zero_ns: u64,
    policy: Node,
    estimator: Estimator,
    /// Changes that are still to come.
    changes: VecDeque<PlacedChange>,
    commands: Vec<Command>,
    events: VecDeque<(Event, u64)>,
    finished: HashMap<u64, Finished>,
    asked: u64,
    pub late: Late<(Event, Option<Finished>)>,
    own_latency_ns: u64,
    result_limit: f64,
    /// How often a child was lost while a task was the one that it computed.
    lost_with: HashMap<u64, u32>,
    /// Tries of a task that ended their agents because they were over their time.
    over_time: HashMap<u64, u32>,
}

impl Station {
    pub fn new(
        name: &str,
        (number, parent): (u32, u32),
        run: RunSettings,
        up: Up,
        processor: Processor,
        spool: Spool,
    ) -> Result<Self, LiveError> {
        let (place, settings, children) = run.of_node(name)?;
        let Settings { children: ref known, .. } = settings;
        let slots = children.iter().zip(known).map(|(&child, _)| slot(&run, child, child)).collect();
        let own = &run.platform.nodes[place as usize];
        let emulated = matches!(run.work, Work::Emulated { .. });
        let result_limit = own.receive_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get);
        let own_latency_ns = if emulated { latency(&run, place) } else { 0 };
        Ok(Self {
            number,
            parent,
            slots,
            up,
            tasks: HashMap::new(),
            held_bytes: 0,
            spool,
            clock: Clock::default(),
            totals: Totals { name: name.into(), ..Totals::default() },
            rows: Vec::new(),
            log: run.log.then(Log::default),
            happened: Vec::new(),
            processor,
            zero_ns: 0,
            policy: Node::new(settings),
            estimator: run.estimator(place)?,
            changes: run.placed_changes()?.into(),
            commands: Vec::new(),
            events: VecDeque::new(),
            finished: HashMap::new(),
            asked: 0,
            late: Late::default(),
            own_latency_ns,
            result_limit,
            lost_with: HashMap::new(),
            over_time: HashMap::new(),
            run,
        })
    }

    pub fn is_emulated(&self) -> bool {
        matches!(self.processor, Processor::Emulated(_))
    }

    fn scale(&self) -> f64 {
        if let Work::Emulated { time_scale, .. } = self.run.work { time_scale } else { 1.0 }
    }

    /// Keeps a task until its result is back.
    pub fn hold(&mut self, task: u64, stored: Stored) {
        self.held_bytes += stored.in_memory();
        if let Some(before) = self.tasks.insert(task, stored) {
            self.held_bytes -= before.in_memory();
        }
    }

    /// Tasks that wait here.
    pub fn waiting(&self) -> u64 {
        self.policy.ready()
    }

    /// Whether anything is left that could compute.
    pub fn can_compute(&self) -> bool {
        self.slots.iter().any(|slot| slot.link.is_some())
            || self
                .run
                .place(&self.totals.name)
                .is_some_and(|n| self.run.platform.nodes[n as usize].compute_per_s.get() > 0.0)
    }

    /// The policy's first request, before time 0.
    pub fn first_request(&mut self) -> u64 {
        self.tell(Event::Started, self.zero_ns);
        std::mem::take(&mut self.asked)
    }

    /// Tells the policy, and does what it says, and what follows from that.
    pub fn tell(&mut self, event: Event, at_ns: u64) {
        self.events.push_back((event, at_ns));
        self.settle();
    }

    /// Tells the policy of all that waits to be told.
    pub fn settle(&mut self) {
        while let Some((event, at_ns)) = self.events.pop_front() {
            let mut commands = std::mem::take(&mut self.commands);
            let noted = self.log.is_some().then(|| event.clone());
            self.policy.handle(event, &mut commands);
            if let (Some(log), Some(event)) = (&mut self.log, noted) {
                log.note(at_ns.saturating_sub(self.zero_ns), &event, &commands);
            }
            for command in commands.drain(..) {
                self.obey(command, at_ns);
            }
            self.commands = commands;
        }
    }

    fn obey(&mut self, command: Command, at_ns: u64) {
        match command {
            Command::Send { child, task, limit_mb_per_s } => self.send(child, task, limit_mb_per_s, at_ns),
            Command::Foretell { child, tasks } => {
                if let Some(link) = self.link(child) {
                    link.say(&Frame::ToCome { tasks });
                }
            }
            Command::Hold { child } => {
                if let Some(transfer) = self.link(child).and_then(Link::current) {
                    transfer.hold(at_ns);
                }
            }
            Command::Limit { child, limit_mb_per_s } => {
                self.slots[child as usize].limit = limit_mb_per_s;
                self.estimate(at_ns, |estimator, now_s, _| estimator.limits(child, limit_mb_per_s, now_s));
                self.turn(child, at_ns);
            }
            Command::Compute { task } => self.compute(task, at_ns),
            Command::Ask { tasks } => self.asked += tasks,
            Command::Return { task } => self.give_back(task, at_ns),
            Command::HandBack { task } => self.hand_back(task),
        }
    }

    fn link(&mut self, child: u32) -> Option<&mut Link> {
        self.slots.get_mut(child as usize)?.link.as_mut()
    }

    /// A child's limit without emulation, as a pace.
    fn real_pace(limit: Option<f64>, at_ns: u64) -> Option<Pace> {
        limit.map(|limit| Pace::new(limit * 1e-3, 0.0, at_ns))
    }

    fn send(&mut self, child: u32, task: u64, limit: Option<f64>, at_ns: u64) {
        let emulated = self.is_emulated();
        if let Some((code, why)) = self.unfit(task) {
            // As if the child had failed at it at once: it keeps its place for another task.
            self.give_up(task, code, why);
            let events =
                [Event::Sent { child, task }, Event::Returned { child, task }, Event::Asked { child, tasks: 1 }];
            self.events.extend(events.map(|event| (event, at_ns)));
            return;
        }
        let Some(stored) = self.tasks.get(&task) else { return };
        let (payload, work) = (stored.payload.clone(), stored.work);
        let Some(slot) = self.slots.get_mut(child as usize) else { return };
        slot.limit = limit;
        let Some(link) = &mut slot.link else { return };
        let goes_on = link.current().is_some_and(|transfer| transfer.task == task && transfer.paused);
        if goes_on {
            if let Some(transfer) = link.current() {
                let pace = if emulated { Some((0.0, UNTOLD)) } else { limit.map(|limit| (limit * 1e-3, 0.0)) };
                transfer.go_on(pace, at_ns);
            }
        } else {
            // Emulated paces are set below, when it is known how many share the port.
            let pace = if emulated && slot.receive_limit.is_finite() {
                Some(Pace::new(0.0, UNTOLD, at_ns))
            } else {
                Self::real_pace(limit, at_ns)
            };
            slot.sent.push_back(task);
            slot.allowance.had_one();
            link.send(task, Kind::Task { work }, payload, pace, at_ns);
        }
        self.estimate(at_ns, |estimator, now_s, _| estimator.sends(child, limit, now_s));
        if emulated {
            self.share(at_ns);
        }
        self.collect(Some(child));
    }

    fn own(&self) -> &crosswind_schema::Node {
        let place = self.run.place(&self.totals.name).unwrap_or(0);
        &self.run.platform.nodes[place as usize]
    }

    /// Why a task is tried no more: it has perhaps ended several agents, each of which computed it when it was lost; or
    /// its input is gone, which is no fault of the child that would get it.
    fn unfit(&self, task: u64) -> Option<(&'static str, String)> {
        if self.lost_with.get(&task).is_some_and(|lost| *lost >= MOST_LOST) {
            let why =
                format!("task {task} was being computed {MOST_LOST} times when an agent was lost, and is given up");
            return Some(("task-given-up", why));
        }
        if let Some(why) = self.tried_in_vain(task) {
            return Some(("task-given-up", why));
        }
        let error = self.tasks.get(&task)?.payload.missing()?;
        Some(("input-lost", format!("the input of task {task} cannot be read any more: {error}")))
    }

    fn give_up(&mut self, task: u64, code: &str, why: String) {
        self.happen(code, Some(1), why.clone());
        let payload = Payload::bytes(why.into_bytes());
        self.finished.insert(task, Finished { task, node: self.number, ok: false, payload });
    }

    fn compute(&mut self, task: u64, at_ns: u64) {
        if let Some((code, why)) = self.unfit(task) {
            self.give_up(task, code, why);
            self.events.push_back((Event::Computed { task }, at_ns));
            return;
        }
        let Some(stored) = self.tasks.get(&task) else { return };
        let job = Job { task, work: stored.work, input: stored.payload.clone() };
        self.tell_computing(task);
        match &mut self.processor {
            Processor::Emulated(processor) => {
                processor.begin(task, job.work, at_ns);
                self.estimate(at_ns, |estimator, now_s, _| estimator.computes(now_s));
            }
            Processor::Thread(thread) => thread.give(job),
            Processor::Immediate(executor) => {
                let worked = work(executor.as_mut(), &job, self.run.retries, &|_| {});
                self.worked(worked);
            }
        }
    }

    /// Tells the parent which of its tasks is computed here and not below, before it can end this process.
    fn tell_computing(&mut self, task: u64) {
        let Up::Parent(link) = &mut self.up else { return };
        if !self.slots.is_empty() && matches!(self.processor, Processor::Thread(_)) {
            link.say(&Frame::Computing { task });
            // What can't be written now is written, or told, in the turn.
            let _ = link.flush(now_ns());
        }
    }

    /// A task was worked on.
    pub fn worked(&mut self, worked: Worked) {
        let Worked { task, answer: Answer { ok, output }, began_ns, ended_ns, tried } = worked;
        self.totals.tasks += 1;
        self.totals.busy_ns += ended_ns.saturating_sub(began_ns);
        self.totals.tried_again += u64::from(tried - 1);
        if ok && tried == 1 {
            self.estimate_computed(task, began_ns, ended_ns);
        }
        if tried > 1 {
            let outcome = if ok { "and succeeded" } else { "and failed again" };
            self.happen("task-tried-again", Some(1), format!("task {task} failed, was tried {tried} times {outcome}"));
        }
        if self.run.trace {
            let work = self.tasks.get(&task).map_or(0.0, |stored| stored.work);
            self.row(Activity::Compute, NOBODY, task, (began_ns, ended_ns), 0, work);
        }
        self.finished.insert(task, Finished { task, node: self.number, ok, payload: output });
        self.events.push_back((Event::Computed { task }, ended_ns));
    }

    fn row(
        &mut self,
        activity: Activity,
        child: u32,
        task: u64,
        (start_ns, end_ns): (u64, u64),
        bytes: u64,
        work: f64,
    ) {
        self.rows.push(Row { activity, node: self.number, child, task, start_ns, end_ns, bytes, work });
    }

    fn give_back(&mut self, task: u64, at_ns: u64) {
        let Some(finished) = self.finished.remove(&task) else { return };
        if !self.lost_with.is_empty() {
            self.lost_with.remove(&task);
        }
        self.over_time.remove(&task);
        if let Some(stored) = self.tasks.remove(&task) {
            self.held_bytes -= stored.in_memory();
            self.spool.recycle(stored.payload);
        }
        let scale = self.scale();
        let emulated = self.is_emulated();
        match &mut self.up {
            Up::User(results) => results.push(finished),
            Up::Parent(link) => {
                let Finished { node, ok, payload, .. } = finished;
                let limit = self.result_limit;
                let pace = (emulated && limit.is_finite() && !payload.is_empty())
                    .then(|| Pace::new(limit * 1e-3 * scale, limit, at_ns));
                link.send(task, Kind::Result { node, ok }, payload, pace, at_ns);
                self.collect(None);
            }
        }
    }

    fn hand_back(&mut self, task: u64) {
        if let Some(stored) = self.tasks.remove(&task) {
            self.held_bytes -= stored.in_memory();
            self.spool.recycle(stored.payload);
        }
        if let Up::Parent(link) = &mut self.up {
            link.say(&Frame::HandBack { task });
        }
    }

    /// Takes what became of a link's transfers: a child's, or the parent's (none).
    pub fn collect(&mut self, child: Option<u32>) {
        let done = match (child, &mut self.up) {
            (Some(child), _) => match self.link(child) {
                Some(link) => std::mem::take(&mut link.done),
                None => return,
            },
            (None, Up::Parent(link)) => std::mem::take(&mut link.done),
            (None, Up::User(_)) => return,
        };
        for done in done {
            self.transferred(child, done);
        }
        if child.is_none() {
            self.load_uplink(now_ns());
        }
    }

    fn transferred(&mut self, child: Option<u32>, done: Done) {
        let Done { task, kind, outcome, began_ns, bytes, .. } = done;
        let at_ns = done.at_ns.max(now_ns().saturating_sub(FORGIVEN_NS));
        let trace = self.run.trace && bytes > 0;
        match (child, kind) {
            (Some(child), Kind::Task { .. }) => {
                let number = self.slots[child as usize].number;
                if trace {
                    self.row(Activity::Send, number, task, (began_ns, at_ns), bytes, 0.0);
                }
                if self.is_emulated() {
                    if let (Outcome::Held, Some(link)) = (outcome, self.link(child)) {
                        link.say(&Frame::Pace { rate: 0.0 });
                    }
                    self.share(at_ns);
                }
                let event = match outcome {
                    Outcome::Sent => {
                        self.estimate_sent(child, task, at_ns);
                        Event::Sent { child, task }
                    }
                    Outcome::Held => {
                        self.estimate(at_ns, |estimator, now_s, _| estimator.held(child, now_s));
                        Event::Held { child }
                    }
                };
                self.events.push_back((event, at_ns));
            }
            (None, Kind::Result { .. }) => {
                let (node, child, activity) = (self.parent, self.number, Activity::Result);
                let row = Row { activity, node, child, task, start_ns: began_ns, end_ns: at_ns, bytes, work: 0.0 };
                self.rows.extend(trace.then_some(row));
            }
            _ => {}
        }
    }

    /// Takes what came from the parent; false for a frame that is none of a station's.
    pub fn hear_parent(&mut self, heard: Heard, at_ns: u64) -> Result<bool, io::Error> {
        match heard {
            Heard::Begun { rate } | Heard::Said(Frame::Pace { rate }) => {
                let stands = rate == 0.0 && self.is_emulated();
                self.estimate(at_ns, |estimator, now_s, _| {
                    if stands { estimator.receives_no_more(now_s) } else { estimator.receives(now_s) }
                });
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(rate, at_ns);
                }
            }
            Heard::Task { task, work, payload } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(0.0, at_ns);
                }
                self.totals.received_bytes += payload.len();
                let mb = payload.len() as f64 * 1e-6;
                self.estimate(at_ns, |estimator, now_s, _| estimator.received(mb, now_s));
                self.hold(task, Stored { payload, work });
                self.later(self.own_latency_ns, Event::Arrived { task }, None, at_ns);
            }
            Heard::Said(Frame::Places { tasks }) => {
                self.later(self.own_latency_ns, Event::Places { tasks }, None, at_ns);
            }
            Heard::Said(Frame::ToCome { tasks }) => {
                self.later(self.own_latency_ns, Event::ToCome { tasks }, None, at_ns);
            }
            Heard::Said(_) | Heard::Result { .. } => return Ok(false),
        }
        Ok(true)
    }

    /// Takes what came from a child while the run is on.
    ///
    /// # Errors
    /// What no child does, so that it is to be dropped.
    pub fn hear_child(&mut self, child: u32, heard: Heard, at_ns: u64) -> Result<(), &'static str> {
        let slot = &mut self.slots[child as usize];
        let latency = slot.latency_ns;
        match heard {
            Heard::Said(Frame::Ask { tasks }) => {
                if !slot.allowance.asks(tasks) {
                    return Err(ASKED_TOO_MUCH);
                }
                self.later(latency, Event::Asked { child, tasks }, None, at_ns);
            }
            Heard::Said(Frame::Computing { task }) => slot.computing = Some(task),
            Heard::Said(Frame::Subtree(subtree)) => {
                self.estimate(at_ns, |estimator, _, revisions| estimator.told(child, subtree, revisions));
                self.settle();
            }
            Heard::Said(Frame::Sending { rate }) => {
                slot.sends = rate;
                self.share(at_ns);
            }
            Heard::Result { task, node, ok, payload } => {
                // The ledger would take it for the result of whichever child has the task.
                if !slot.had(task) {
                    return Err("it sent a result of a task that it does not have");
                }
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.result_from(child as usize, 0.0, at_ns);
                }
                let finished = Finished { task, node, ok, payload };
                self.later(latency, Event::Returned { child, task }, Some(finished), at_ns);
            }
            Heard::Said(Frame::HandBack { task }) => {
                if !slot.had(task) {
                    return Err("it gave back a task that it does not have");
                }
                if let Some(draining) = &mut slot.draining {
                    draining.handed_back += 1;
                }
                self.later(latency, Event::HandedBack { child, task }, None, at_ns);
            }
            Heard::Begun { rate } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.result_from(child as usize, rate, at_ns);
                }
            }
            _ => return Err("unexpected frame from a child"),
        }
        Ok(())
    }

    fn later(&mut self, latency_ns: u64, event: Event, finished: Option<Finished>, at_ns: u64) {
        if latency_ns > 0 && self.is_emulated() {
            self.late.put(at_ns + latency_ns, (event, finished));
        } else {
            self.arrive(event, finished, at_ns);
        }
    }

    fn arrive(&mut self, event: Event, finished: Option<Finished>, at_ns: u64) {
        if let Some(finished) = finished {
            let task = finished.task;
            // Of a task that is not out under this child any more, nothing is wanted.
            if !self.tasks.contains_key(&task) {
                return;
            }
            self.finished.insert(task, finished);
        }
        self.tell(event, at_ns);
    }

    /// Does what has become due by now; when the next thing will be.
    pub fn pass_time(&mut self, now_ns: u64) -> Option<u64> {
        let change = self.take_up_changes(now_ns);
        while let Some((due, (event, finished))) = self.late.take(now_ns) {
            self.arrive(event, finished, due);
        }
        let result_bytes = if let Work::Emulated { result_bytes, .. } = self.run.work { result_bytes } else { 0 };
        while let Processor::Emulated(processor) = &mut self.processor {
            let Some((task, began_ns, due)) = processor.done(now_ns) else { break };
            let ended_ns = due.max(now_ns.saturating_sub(FORGIVEN_NS));
            let answer = Answer::of(Payload::Blank(result_bytes));
            self.worked(Worked { task, answer, began_ns, ended_ns, tried: 1 });
            self.settle();
        }
        let work = if let Processor::Emulated(processor) = &self.processor { processor.due() } else { None };
        [work, self.late.due(), change].into_iter().flatten().min()
    }

    /// What is to be asked of the parent, once.
    pub fn take_asked(&mut self) -> u64 {
        std::mem::take(&mut self.asked)
    }

    /// Notes something that happened here.
    pub fn happen(&mut self, code: &str, tasks: Option<u64>, message: String) {
        let node = Some(self.totals.name.clone());
        let root_ns = self.clock.root_ns(now_ns());
        self.happened.push(Happening { root_ns, code: code.into(), node, number: None, tasks, message });
    }
}
