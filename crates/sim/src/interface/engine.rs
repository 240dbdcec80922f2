//! Event loop of one measurement: the streams and jobs present, and the next event.

use std::collections::{BTreeMap, VecDeque};

use crosswind_policy::queue::{CreditSettings, Discipline, DoubleQueue, QueueSettings};
use crosswind_schema::Class;
use crosswind_schema::experiment::streams::{StreamsExperiment, Transport};
use crosswind_schema::units::Quantity;

use super::credits::Credits;
use super::flow::Flow;
use super::input::Input;
use super::job::{Job, Progress};
use super::observer::{Observed, Observer};
use super::output::Output;
use super::pace::Pace;
use super::port::Port;
use super::processor::{Costs, Processor, Task};
use super::slab::Slab;
use super::slots::Slots;
use super::traffic::{Measured, Operation, StreamState};
use crate::error::SimError;
use crate::time::{NEVER, Nanos, nanos};

pub(super) const NONE: u32 = u32::MAX;
/// Events between two calls of the caller's callback.
const EVENTS_PER_CALL: u64 = 1 << 20;
/// Messages in flight beyond which the run is treated as overloaded: about a gigabyte of memory.
const MOST_MESSAGES: usize = 1 << 24;

/// The streams and jobs that are present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    All,
    /// Only the stream with this index.
    Stream(usize),
    /// Only the job with this index.
    Job(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Stream(u32),
    Job(u32),
}

/// Path of the messages of a stream or a job from one host to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub from: u32,
    pub to: u32,
    pub class: Class,
    pub owner: Owner,
    /// The route of the answers, or [`NONE`].
    pub back: u32,
    /// The receiving process of the job, or [`NONE`].
    pub process: u32,
    pub connection: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub route: u32,
    pub to: u32,
    pub class: Class,
    /// For a stream, the operation. For a job, the superstep.
    pub operation: u32,
    /// Frames not yet delivered to the receiving program (`left`), and frames not yet at its interface (`coming`).
    pub left: u32,
    pub coming: u32,
    /// Bytes not yet put into frames.
    pub unsent: u32,
    /// Length of the answer, bytes. 0 means no answer.
    pub answer: u32,
}

pub(super) struct Settings {
    pub frame_bytes: u32,
    pub latency: Nanos,
    pub host_ns: Nanos,
    pub buffer: u32,
    /// A frame that finds a full buffer is lost. Otherwise it waits.
    pub lossy: bool,
    /// Flows are limited by a window.
    pub flows: bool,
    /// Processor time per message. `None` means that messages need no processor.
    pub processor: Option<Costs>,
    pub one_queue: bool,
    /// Arriving frames reach the receiving program at once, so they need no event each.
    pub plain: bool,
}

/// Numbering of the timer slots: each host's output, port, input, receiving program, credits and processor; then the
/// slots that exist once; then streams; then processes.
pub(super) struct Layout {
    shift: u32,
}

impl Layout {
    fn at(&self, kind: usize, number: u32) -> usize {
        (kind << self.shift) + number as usize
    }
    pub fn port(&self, host: u32) -> usize {
        self.at(1, host)
    }
    pub fn arrival(&self, host: u32) -> usize {
        self.at(2, host)
    }
    pub fn service(&self, host: u32) -> usize {
        self.at(3, host)
    }
    pub fn idle(&self, host: u32) -> usize {
        self.at(4, host)
    }
    pub fn processor(&self, host: u32) -> usize {
        self.at(5, host)
    }
    pub fn grant(&self) -> usize {
        self.at(6, 0)
    }
    pub fn acknowledgement(&self) -> usize {
        self.at(6, 1)
    }
    pub fn loss(&self) -> usize {
        self.at(6, 2)
    }
    pub fn stream(&self, stream: u32) -> usize {
        self.at(6, 3 + stream)
    }
}

/// The timers, and the numbering of their slots.
pub(super) struct Agenda {
    pub slots: Slots,
    pub layout: Layout,
}

/// Both sides of each host's interface, and its port of the switch.
pub(super) struct Hosts {
    pub outputs: Vec<Output>,
    pub ports: Vec<Port>,
    pub inputs: Vec<Input>,
    /// Empty if messages need no processor.
    pub processors: Vec<Processor>,
    pub full_ports: u32,
}

/// What limits senders: credits, windows and losses.
#[derive(Default)]
pub(super) struct Control {
    pub credits: Option<Credits>,
    /// One per route. Empty if flows have no window.
    pub flows: Vec<Flow>,
    pub acknowledgements: VecDeque<(Nanos, u32)>,
    pub losses: VecDeque<(Nanos, super::flow::Loss)>,
}

#[derive(Default)]
pub(super) struct Counts {
    /// Streams and jobs whose timed part is not complete.
    pub unfinished: u32,
    pub frames: u64,
    pub dropped: u64,
}

pub(super) struct Engine<'a, O> {
    pub now: Nanos,
    pub agenda: Agenda,
    pub pace: Pace,
    pub settings: Settings,
    pub hosts: Hosts,
    pub messages: Slab<Message>,
    pub routes: Vec<Route>,
    pub control: Control,
    pub operations: Slab<Operation>,
    pub streams: Vec<StreamState>,
    jobs: &'a [Job],
    progress: Vec<Progress>,
    /// Job and process of each slot behind the streams.
    processes: Vec<(u32, u32)>,
    first_process: Vec<u32>,
    job_routes: Vec<BTreeMap<(u32, u32), u32>>,
    pub counts: Counts,
    /// Time without timed progress after which the measurement is abandoned.
    patience: Nanos,
    deadline: Nanos,
    overrun: bool,
    pub observer: &'a mut O,
}

impl<'a, O: Observer> Engine<'a, O> {
    pub fn new(
        experiment: &StreamsExperiment,
        jobs: &'a [Job],
        present: Present,
        queued: bool,
        patience: Nanos,
        observer: &'a mut O,
    ) -> Self {
        let links = experiment.network.links();
        let frame_bytes = links.frame_bytes.get() as u32;
        let queues = if queued {
            QueueSettings::from_policy(&experiment.policy, frame_bytes, links.pad)
        } else {
            QueueSettings::fifo(frame_bytes)
        };
        let granted = if queued { CreditSettings::from_policy(&experiment.policy) } else { None };
        let (host_ns, lossy) = (nanos(links.host_s_per_frame.get()), links.transport != Transport::Reliable);
        let processor = links.processor.as_ref().map(Costs::new);
        let window = links.window_frames();
        let flows = lossy || window.is_some();
        let hosts = experiment.workload.hosts.get() as u32;
        let shift = hosts.next_power_of_two().trailing_zeros();
        let streams = &experiment.workload.streams;
        let mut engine = Self {
            now: 0,
            agenda: Agenda { slots: Slots::new(0), layout: Layout { shift } },
            pace: Pace::new(&links),
            settings: Settings {
                frame_bytes,
                latency: nanos(links.latency_s.get()),
                host_ns,
                buffer: links.buffer_frames.get() as u32,
                lossy,
                flows,
                processor,
                one_queue: queues.discipline == Discipline::Fifo,
                plain: host_ns == 0 && !flows && granted.is_none(),
            },
            hosts: Hosts {
                outputs: (0..hosts).map(|_| Output::new(DoubleQueue::new(queues))).collect(),
                ports: (0..hosts).map(|_| Port::default()).collect(),
                inputs: (0..hosts).map(|_| Input::new(DoubleQueue::new(queues))).collect(),
                processors: processor
                    .map(|costs| (0..hosts).map(|_| Processor::new(&costs, queues)).collect())
                    .unwrap_or_default(),
                full_ports: 0,
            },
            messages: Slab::new(),
            routes: Vec::new(),
            control: Control::default(),
            operations: Slab::new(),
            streams: streams
                .iter()
                .enumerate()
                .map(|(at, stream)| StreamState::new(stream, at, experiment.seed))
                .collect(),
            jobs,
            progress: jobs.iter().map(Progress::new).collect(),
            processes: Vec::new(),
            first_process: Vec::new(),
            job_routes: vec![BTreeMap::new(); jobs.len()],
            counts: Counts::default(),
            patience,
            deadline: patience,
            overrun: false,
            observer,
        };
        for (at, job) in (0..).zip(jobs) {
            engine.first_process.push(engine.processes.len() as u32);
            engine.processes.extend((0..job.hosts.len() as u32).map(|process| (at, process)));
        }
        let others = streams.len() + engine.processes.len();
        engine.agenda.slots = Slots::new(engine.agenda.layout.stream(others as u32) + 1);
        engine.make_routes(experiment, present);
        if flows {
            engine.control.flows = engine.routes.iter().map(|_| Flow::new(links.transport, window)).collect();
        }
        if let Some(granted) = granted {
            engine.control.credits = Some(Credits::new(granted, &mut engine.routes, hosts));
        }
        engine.start(present);
        engine
    }

    fn make_routes(&mut self, experiment: &StreamsExperiment, present: Present) {
        for (at, stream) in experiment.workload.streams.iter().enumerate() {
            if present != Present::All && present != Present::Stream(at) {
                continue;
            }
            for &to in stream.to.hosts() {
                let (owner, class) = (Owner::Stream(at as u32), stream.class);
                let there = Route { from: stream.from, to, class, owner, back: NONE, process: NONE, connection: NONE };
                let number = self.routes.len() as u32;
                self.streams[at].routes.push(number);
                if stream.answer_bytes.is_some() {
                    self.routes.push(Route { back: number + 1, ..there });
                    self.routes.push(Route { from: to, to: stream.from, ..there });
                } else {
                    self.routes.push(there);
                }
            }
        }
        for (at, job) in self.jobs.iter().enumerate() {
            if present != Present::All && present != Present::Job(at) {
                continue;
            }
            for superstep in 0..job.compute_ns.len() as u32 {
                for from in 0..job.hosts.len() as u32 {
                    for &(to, _) in &job.messages[job.sent(superstep, from)] {
                        let routes = &mut self.routes;
                        self.job_routes[at].entry((from, to)).or_insert_with(|| {
                            routes.push(Route {
                                from: job.hosts[from as usize],
                                to: job.hosts[to as usize],
                                class: Class::Parallel,
                                owner: Owner::Job(at as u32),
                                back: NONE,
                                process: to,
                                connection: NONE,
                            });
                            routes.len() as u32 - 1
                        });
                    }
                }
            }
        }
    }

    fn start(&mut self, present: Present) {
        let streams = self.streams.len();
        let is_there = |one: Present| present == Present::All || present == one;
        self.counts.unfinished = (0..streams).filter(|&at| is_there(Present::Stream(at))).count() as u32;
        for job in (0..self.jobs.len()).filter(|&at| is_there(Present::Job(at))) {
            if self.jobs[job].compute_ns.is_empty() || self.jobs[job].hosts.is_empty() {
                self.progress[job].ended = Some(0);
                continue;
            }
            self.counts.unfinished += 1;
            for process in 0..self.jobs[job].hosts.len() as u32 {
                self.compute(job as u32, process, self.jobs[job].compute_ns[0]);
            }
        }
        for stream in (0..streams).filter(|&at| is_there(Present::Stream(at))) {
            let at_once = self.streams[stream].at_once.unwrap_or(1);
            for _ in 0..at_once {
                if self.overrun {
                    break;
                }
                self.begin(stream as u32);
            }
        }
    }

    /// Runs until everything timed has completed or the measurement is abandoned. Returns whether it completed.
    pub fn run(&mut self, frames_before: u64, watch: &mut dyn FnMut(u64) -> bool) -> Result<bool, SimError> {
        let (shift, mask) = (self.agenda.layout.shift, (1 << self.agenda.layout.shift) - 1);
        let mut events = 0;
        while self.counts.unfinished > 0 {
            let (at, slot) = self.agenda.slots.first();
            if at > self.deadline {
                if self.overrun {
                    let messages = self.messages.len();
                    return Err(SimError::Overrun { messages, time_s: self.now as f64 * 1e-9 });
                }
                return Ok(false);
            }
            self.now = at;
            let host = (slot & mask) as u32;
            match slot >> shift {
                0 => self.on_output(host),
                1 => self.on_port(host),
                2 => self.on_arrival(host),
                3 => self.on_service(host),
                4 => self.on_idle(host),
                5 => self.on_processor(host),
                _ => self.on_other(slot),
            }
            events += 1;
            if events == EVENTS_PER_CALL {
                events = 0;
                if !watch(frames_before + self.counts.frames) {
                    return Err(SimError::Interrupted);
                }
            }
        }
        Ok(true)
    }

    fn on_other(&mut self, slot: usize) {
        let first = self.agenda.layout.stream(0);
        if slot < first {
            match slot {
                _ if slot == self.agenda.layout.grant() => self.on_grant(),
                _ if slot == self.agenda.layout.acknowledgement() => self.on_acknowledgement(),
                _ => self.on_loss(),
            }
            return;
        }
        let number = slot - first;
        match number.checked_sub(self.streams.len()) {
            None => self.on_stream(number as u32),
            Some(process) => {
                let (job, process) = self.processes[process];
                self.agenda.slots.clear(slot);
                self.on_process(job, process);
            }
        }
    }

    /// Hands a message to its sender's interface.
    #[inline]
    pub fn send(&mut self, route: u32, bytes: u32, operation: u32, answer: u32) {
        let Route { from, to, class, .. } = self.routes[route as usize];
        let frames = bytes.div_ceil(self.settings.frame_bytes);
        let made = Message { route, to, class, operation, left: frames, coming: frames, unsent: bytes, answer };
        let message = self.messages.add(made);
        if self.messages.len() > MOST_MESSAGES {
            (self.overrun, self.deadline) = (true, 0);
        }
        if O::LISTENS {
            self.observer.made(self.now, Observed { message, class, from, to, bytes });
        }
        if let Some(credits) = &mut self.control.credits {
            credits.announce(class, to);
        }
        if self.settings.flows {
            self.control.flows[route as usize].waiting.push_back(message);
            self.pump(route);
        } else {
            self.give(from, message);
        }
    }

    /// Handles a message that has reached the receiving program completely.
    #[inline]
    pub fn complete(&mut self, message: u32) {
        let Message { route, operation, answer, .. } = self.messages[message];
        self.messages.free(message);
        let Route { owner, back, process, .. } = self.routes[route as usize];
        match owner {
            Owner::Stream(_) if answer > 0 => self.send(back, answer, operation, 0),
            Owner::Stream(stream) => self.part_done(stream, operation),
            Owner::Job(job) => {
                let progress = &mut self.progress[job as usize];
                progress.left[operation as usize * progress.step.len() + process as usize] -= 1;
                self.go_on(job, process);
            }
        }
    }

    /// Extends the deadline: something timed has completed.
    #[inline]
    pub fn has_progressed(&mut self) {
        if !self.overrun {
            self.deadline = self.now.saturating_add(self.patience).min(NEVER - 1);
        }
    }

    fn process_slot(&self, job: u32, process: u32) -> usize {
        let place = self.first_process[job as usize] + process;
        self.agenda.layout.stream(self.streams.len() as u32 + place)
    }

    /// Starts a computation of `ns`, or submits it to the host's processor if processors are simulated.
    fn compute(&mut self, job: u32, process: u32, ns: Nanos) {
        if self.settings.processor.is_some() {
            let host = self.jobs[job as usize].hosts[process as usize];
            self.submit(host, Task::Compute { job, process, ns });
        } else {
            self.agenda.slots.set(self.process_slot(job, process), self.now.saturating_add(ns).min(NEVER));
        }
    }

    pub fn on_process(&mut self, job: u32, process: u32) {
        let of = &self.jobs[job as usize];
        let superstep = self.progress[job as usize].step[process as usize];
        for &(to, bytes) in &of.messages[of.sent(superstep, process)] {
            if let Some(&route) = self.job_routes[job as usize].get(&(process, to)) {
                self.send(route, bytes, superstep, 0);
            }
        }
        self.progress[job as usize].waits[process as usize] = true;
        self.go_on(job, process);
    }

    /// Starts a process's next superstep if it has received all messages of the current one.
    fn go_on(&mut self, job: u32, process: u32) {
        let progress = &mut self.progress[job as usize];
        if !progress.may_go_on(process) {
            return;
        }
        let of = &self.jobs[job as usize];
        progress.waits[process as usize] = false;
        progress.step[process as usize] += 1;
        if let Some(&compute) = of.compute_ns.get(progress.step[process as usize] as usize) {
            self.compute(job, process, compute);
        } else {
            progress.running -= 1;
            if progress.running == 0 {
                progress.ended = Some(self.now);
                self.counts.unfinished -= 1;
            }
        }
        self.has_progressed();
    }

    /// Returns the result of the measurement.
    pub fn measured(self, is_complete: bool) -> Measured {
        Measured {
            ended: self.now,
            is_complete,
            streams: self.streams.into_iter().map(StreamState::measured).collect(),
            jobs: self.progress.iter().map(|progress| progress.ended).collect(),
            frames: self.counts.frames,
            dropped: self.counts.dropped,
        }
    }

    /// Describes a frame to an observer.
    pub fn seen(&self, message: u32, bytes: u32) -> Observed {
        let Route { from, to, class, .. } = self.routes[self.messages[message].route as usize];
        Observed { message, class, from, to, bytes }
    }
}
