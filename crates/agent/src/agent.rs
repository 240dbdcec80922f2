//! State machine of a farm's agent. It has no socket, thread or clock; a driver has them and calls [`Agent`].
//!
//! An agent turns the commands of its policy (`crosswind_policy::farm::Node`) into actions, and the outcomes of actions
//! into events for the policy. The code is the same at the root, at inner nodes and at leaves. A driver calls four kinds
//! of methods, each with the time on the agent's own monotonic clock, ns:
//!
//! - Inputs: a frame or a body arrived ([`Agent::on_inbound`]), a transfer ended or paused ([`Agent::transferred`]), a task was
//!   computed ([`Agent::worked`]), a link broke ([`Agent::lost`]).
//! - Time: [`Agent::pass_time`] handles what is due and returns when to call again. [`Agent::send_heartbeat`] sends heartbeats and
//!   drops silent peers. [`Agent::progress`] advances the phase of the run.
//! - Outputs: [`Agent::take_actions`] returns what to do, in order, and [`Agent::ended`] how the run ended.
//! - At the root: [`Agent::submit`] takes a user's task, and [`Agent::take_results`] returns results.
//!
//! The end of an emulated transfer or task counts from its due time, not from when the driver noticed it, so that delays
//! do not accumulate.

use std::collections::{BTreeMap, VecDeque};

use crosswind_policy::farm::estimate::Estimator;
use crosswind_policy::farm::{Command, Event, Node};
use crosswind_schema::experiment::PlacedChange;
use crosswind_schema::units::Quantity;

use crate::account::{Account, Passed};
use crate::action::{Action, Done, End, Kind, Outcome, Peer, Rate, TaskBytes, Worked};
use crate::children::{Child, Sending, latency};
use crate::clock::Clock;
use crate::emulation::EmulatedProcessor;
use crate::error::SettingsError;
use crate::frame::Frame;
use crate::input::Heartbeat;
use crate::late::Late;
use crate::layout::Layout;
use crate::phases::RunState;
use crate::printed::Printed;
use crate::recall::{Computing, News};
use crate::record::{Activity, NO_NODE};
use crate::settings::{RunSettings, Work, no_node};
use crate::task_store::{Finished, TaskStore};

/// Maximum delay in handling an emulated end that still counts from its due time, ns. A later one counts from this long
/// ago.
const FORGIVEN_NS: u64 = 20_000_000;
/// Marks a rate that the receiver has not been sent yet.
const UNREPORTED: f64 = -1.0;

#[derive(Debug)]
pub(crate) enum Processor {
    /// Exists only in the platform's file; this crate computes its timing.
    Emulated(EmulatedProcessor),
    /// The driver computes on a real processor.
    Real {
        /// Whether the work may end the process that runs it.
        may_end: bool,
    },
}

/// An agent's logic. `P` is the driver's representation of task and result bytes.
#[derive(Debug)]
pub struct Agent<P> {
    pub(crate) name: String,
    pub(crate) place: u32,
    pub(crate) number: u32,
    pub(crate) parent: u32,
    pub(crate) root: bool,
    pub(crate) run: RunSettings,
    pub(crate) layout: Layout,
    pub(crate) children: Vec<Child>,
    /// The last child with each name. Earlier ones of the name have left.
    pub(crate) by_name: BTreeMap<String, u32>,
    pub(crate) task_store: TaskStore<P>,
    pub(crate) account: Account,
    pub(crate) run_state: RunState,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) clock: Clock,
    pub(crate) processor: Processor,
    pub(crate) estimator: Estimator,
    pub(crate) changes: VecDeque<PlacedChange>,
    pub(crate) events: VecDeque<(Event, u64)>,
    /// Time 0 on the agent's own clock, ns. 0 before the start.
    pub(crate) zero_ns: u64,
    pub(crate) result_limit: f64,
    pub(crate) own_latency_ns: u64,
    late: Late<(Event, Option<Finished<P>>)>,
    policy: Node,
    commands: Vec<Command>,
    actions: Vec<Action<P>>,
    /// The task that this node computes.
    pub(crate) computing: Option<Computing>,
    /// At the root: news of tasks that the user has not collected.
    pub(crate) news: News,
    /// At the root: what tasks printed, which the user has not collected.
    pub(crate) printed: Vec<Printed>,
    /// At the root: results that the user has not collected.
    results: Vec<Finished<P>>,
    requested: u64,
    /// Rates of the emulated results on their way up, MB/s of the platform, in the order of sending.
    uplink: VecDeque<f64>,
    /// Time of the last call, ns.
    pub(crate) now_ns: u64,
}

impl<P: TaskBytes> Agent<P> {
    /// Creates the agent of a node. `numbers` is `(number, parent)` as assigned by the parent; `None` at the root.
    ///
    /// # Errors
    /// If the platform has no such node, or the settings are invalid.
    pub fn new(
        name: &str,
        numbers: Option<(u32, u32)>,
        run: RunSettings,
        joins_late: bool,
        now_ns: u64,
    ) -> Result<Self, SettingsError> {
        let layout = Layout::of(&run)?;
        let place = layout.place(name).ok_or_else(|| no_node(name))?;
        let children = layout.children(place);
        let own = &run.platform.nodes[place as usize];
        let emulated = matches!(run.work, Work::Emulated { .. });
        let processor = if let Work::Emulated { time_scale, .. } = run.work {
            let ir_send = children.iter().map(|&c| run.platform.nodes[c as usize].ir_send_s_per_mb.get()).collect();
            let (compute, ir_receive) = (own.compute_per_s.get(), own.ir_receive_s_per_mb.get());
            Processor::Emulated(EmulatedProcessor::new(compute, ir_receive, ir_send, time_scale))
        } else {
            Processor::Real { may_end: !matches!(run.work, Work::Noop) }
        };
        let (number, parent) = numbers.unwrap_or((place, NO_NODE));
        let wanted = if numbers.is_none() { layout.wanted_below(place) } else { 0 };
        Ok(Self {
            name: name.into(),
            place,
            number,
            parent,
            root: numbers.is_none(),
            children: children.iter().map(|&child| Child::new(&run, child, run.number(child), now_ns)).collect(),
            by_name: (0..).zip(children).map(|(at, &c)| (run.platform.nodes[c as usize].name.clone(), at)).collect(),
            task_store: TaskStore::new(),
            account: Account::new(name, run.recording.log),
            run_state: RunState::new(joins_late, wanted, now_ns),
            heartbeat: Heartbeat::new(now_ns),
            clock: Clock::default(),
            processor,
            estimator: layout.estimator(&run, place),
            changes: run.placed_changes()?.into(),
            events: VecDeque::new(),
            zero_ns: 0,
            result_limit: own.link_mb_per_s().unwrap_or(f64::INFINITY),
            own_latency_ns: if emulated { latency(&run, place) } else { 0 },
            late: Late::default(),
            policy: Node::new(layout.settings(&run, place)),
            commands: Vec::new(),
            actions: Vec::new(),
            computing: None,
            news: News::default(),
            printed: Vec::new(),
            results: Vec::new(),
            requested: 0,
            uplink: VecDeque::new(),
            now_ns,
            layout,
            run,
        })
    }

    /// Time 0 on the agent's own clock, ns. 0 before the start.
    #[must_use]
    pub fn zero_ns(&self) -> u64 {
        self.zero_ns
    }

    /// Name of the node in the platform.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run's settings. The platform is the part that this node needs, and includes the agents that joined here later.
    #[must_use]
    pub fn run(&self) -> &RunSettings {
        &self.run
    }

    /// What this node forwarded to its parent. Empty at the root, which has no parent.
    #[must_use]
    pub fn passed(&self) -> &Passed {
        &self.account.passed
    }

    /// How the run ended here. `None` while it runs.
    #[must_use]
    pub fn ended(&self) -> Option<&End> {
        self.run_state.end.as_ref()
    }

    /// Appends the queued actions to `actions` and clears the queue.
    pub fn take_actions(&mut self, actions: &mut Vec<Action<P>>) {
        actions.append(&mut self.actions);
    }

    #[must_use]
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Requests from the parent the tasks that the policy asked for since the last call, in one frame.
    pub fn ask_parent(&mut self) {
        if self.requested > 0 && self.run_state.may_ask() && self.has_use_for_tasks() {
            let tasks = std::mem::take(&mut self.requested);
            self.send_frame(Peer::Parent, Frame::Ask { tasks });
        }
    }

    /// At the root: returns the results for the user, each once.
    pub fn take_results(&mut self) -> Vec<Finished<P>> {
        std::mem::take(&mut self.results)
    }

    /// Whether results are waiting for the user.
    pub(crate) fn has_results(&self) -> bool {
        !self.results.is_empty()
    }

    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.policy.ready()
    }

    /// Number of tasks that a child's subtree has not returned.
    #[must_use]
    pub fn out_under(&self, child: u32) -> u64 {
        self.policy.ledger().map_or(0, |ledger| ledger.lent_to(child) as u64)
    }

    /// Returns the number of tasks whose result has not been passed on, the bytes of their inputs in memory, and the
    /// number of waiting results.
    #[must_use]
    pub fn holds(&self) -> (usize, u64, usize) {
        (self.task_store.len(), self.task_store.held_bytes(), self.task_store.finished() + self.results.len())
    }

    pub(crate) fn act(&mut self, action: Action<P>) {
        self.actions.push(action);
    }

    /// Sends a frame to a connected child, or to the parent unless this is the root. Does nothing otherwise.
    pub(crate) fn send_frame(&mut self, to: Peer, frame: Frame) {
        let there = match to {
            Peer::Parent => !self.root,
            Peer::Child(child) => self.children.get(child as usize).is_some_and(|child| child.connected),
        };
        if there {
            self.actions.push(Action::SendFrame { to, frame });
        }
    }

    pub(crate) fn is_emulated(&self) -> bool {
        matches!(self.processor, Processor::Emulated(_))
    }

    pub(crate) fn scale(&self) -> f64 {
        if let Work::Emulated { time_scale, .. } = self.run.work { time_scale } else { 1.0 }
    }

    pub(crate) fn own(&self) -> &crosswind_schema::Node {
        &self.run.platform.nodes[self.place as usize]
    }

    /// Whether this node, or a child that the policy serves, may still compute tasks.
    pub(crate) fn can_compute(&self) -> bool {
        let mut children = (0..).zip(&self.children);
        self.own().compute_per_s.get() > 0.0 || children.any(|(at, child)| child.may_compute(self.policy.serves(at)))
    }

    /// Starts the policy and returns the number of tasks in its first request, before time 0.
    pub(crate) fn first_request(&mut self) -> u64 {
        self.handle_event(Event::Started, self.zero_ns);
        if self.has_use_for_tasks() { std::mem::take(&mut self.requested) } else { 0 }
    }

    /// Whether this node computes, or a child has shown that its subtree does by requesting or holding tasks. Without
    /// this check a node that cannot compute would take tasks and hand them back in a loop, and its parent would count
    /// on it.
    fn has_use_for_tasks(&self) -> bool {
        let mut children = self.children.iter();
        self.own().compute_per_s.get() > 0.0 || children.any(|child| child.may_compute(true))
    }

    /// Passes an event to the policy and executes its commands, and all events that follow from them.
    pub(crate) fn handle_event(&mut self, event: Event, at_ns: u64) {
        self.events.push_back((event, at_ns));
        self.settle();
    }

    pub(crate) fn settle(&mut self) {
        while let Some((event, at_ns)) = self.events.pop_front() {
            let mut commands = std::mem::take(&mut self.commands);
            let noted = self.account.log.is_some().then(|| event.clone());
            self.policy.handle(event, &mut commands);
            if let (Some(log), Some(event)) = (&mut self.account.log, noted) {
                log.note(at_ns.saturating_sub(self.zero_ns), &event, &commands);
            }
            for command in commands.drain(..) {
                self.execute(command, at_ns);
            }
            self.commands = commands;
        }
    }

    fn execute(&mut self, command: Command, at_ns: u64) {
        match command {
            Command::Send { child, task, limit_mb_per_s } => self.send(child, task, limit_mb_per_s, at_ns),
            Command::HintRemaining { child, tasks } => {
                self.send_frame(Peer::Child(child), Frame::RemainingHint { tasks })
            }
            Command::Hold { child } => {
                if self.children.get(child as usize).is_some_and(|child| child.out.sending.is_some()) {
                    self.act(Action::Hold { child, at_ns });
                }
            }
            Command::Limit { child, limit_mb_per_s } => {
                self.children[child as usize].link.limit = limit_mb_per_s;
                self.estimate(at_ns, |estimator, now_s, _| estimator.limits(child, limit_mb_per_s, now_s));
                self.change_pace(child, at_ns);
            }
            Command::Compute { task } => self.compute(task, at_ns),
            Command::Ask { tasks } => self.requested += tasks,
            Command::Return { task } => self.give_back(task, at_ns),
            Command::HandBack { task } => self.hand_back(task),
        }
    }

    fn send(&mut self, child: u32, task: u64, limit: Option<f64>, at_ns: u64) {
        let sending = self.children.get(child as usize).and_then(|child| child.out.sending);
        let goes_on = sending.is_some_and(|sending| sending.task == task && sending.paused);
        if !goes_on && self.is_answered_here(task) {
            // Report the task as sent to the child and failed there, with a new request, so that the child keeps its
            // place.
            let events =
                [Event::Sent { child, task }, Event::Returned { child, task }, Event::Requested { child, tasks: 1 }];
            self.events.extend(events.map(|event| (event, at_ns)));
            return;
        }
        let emulated = self.is_emulated();
        let Some(stored) = self.task_store.get(task) else { return };
        let (payload, work) = (stored.payload.clone(), stored.work);
        let Some(state) = self.children.get_mut(child as usize) else { return };
        state.link.limit = limit;
        if !state.connected {
            return;
        }
        // `share` sets emulated rates below, when the number of transfers that share the port is known.
        let unreported = emulated && (goes_on || state.link.receive_limit.is_finite());
        let rate = if unreported {
            Some(Rate { bytes_per_ns: 0.0, reported: UNREPORTED })
        } else {
            limit.map(|limit| Rate { bytes_per_ns: limit * 1e-3, reported: 0.0 })
        };
        state.out.sending = Some(Sending { task, paused: false, reported: rate.map(|rate| rate.reported) });
        if goes_on {
            self.act(Action::GoOn { child, rate, at_ns });
        } else {
            state.out.sent.push(task);
            state.quota.had_one();
            if self.task_store.is_batch(task) {
                self.send_frame(Peer::Child(child), Frame::Batch { task });
            }
            if let Some(name) = self.task_store.name_of(task) {
                self.send_frame(Peer::Child(child), Frame::Name { task, name: name.to_vec() });
            }
            self.act(Action::Send { to: Peer::Child(child), task, kind: Kind::Task { work }, payload, rate, at_ns });
        }
        self.estimate(at_ns, |estimator, now_s, _| estimator.sends(child, limit, now_s));
        if emulated {
            self.share(at_ns);
        }
    }

    fn compute(&mut self, task: u64, at_ns: u64) {
        if self.is_answered_here(task) {
            self.events.push_back((Event::Computed { task }, at_ns));
            return;
        }
        let Some(stored) = self.task_store.get(task) else { return };
        let (input, work) = (stored.payload.clone(), stored.work);
        self.computing = Some(Computing { task, began_ns: at_ns, reported: false });
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.begin(task, work, at_ns);
            self.estimate(at_ns, |estimator, now_s, _| estimator.computes(now_s));
            return;
        }
        // Notify the parent which task this node computes itself before the work starts, because the work may end this
        // process.
        if !self.children.is_empty() && matches!(self.processor, Processor::Real { may_end: true }) {
            self.send_frame(Peer::Parent, Frame::Computing { task });
        }
        let (name, is_batch) = (self.task_store.name_of(task), self.task_store.is_batch(task));
        self.act(Action::Compute { task, work, input, name, is_batch });
    }

    /// Handles the outcome of computing a task.
    pub fn worked(&mut self, worked: Worked<P>) {
        let due_ns = worked.ended_ns;
        self.note_work(worked, due_ns);
        self.settle();
    }

    /// `due_ns`: when emulated work ended, however late this process noticed.
    fn note_work(&mut self, worked: Worked<P>, due_ns: u64) {
        let Worked { task, ok, output, began_ns, ended_ns, tried } = worked;
        self.computing = None;
        self.account.totals.tasks += 1;
        self.account.totals.busy_ns += ended_ns.saturating_sub(began_ns);
        self.account.totals.tried_again += u64::from(tried - 1);
        if ok && tried == 1 {
            self.estimate_computed(task, began_ns, self.seen_ns(due_ns, ended_ns));
        }
        if tried > 1 {
            let outcome = if ok { "and succeeded" } else { "and failed again" };
            self.record_event(
                "task-tried-again",
                Some(1),
                format!("task {task} failed, was tried {tried} times {outcome}"),
            );
        }
        if self.run.recording.trace {
            let work = self.task_store.work(task);
            self.account.row(Activity::Compute, (self.number, NO_NODE), task, (began_ns, ended_ns), (0, work));
        }
        self.task_store.finish(Finished { task, node: self.number, ok, payload: output });
        self.events.push_back((Event::Computed { task }, ended_ns));
    }

    fn give_back(&mut self, task: u64, at_ns: u64) {
        let Some(finished) = self.task_store.take_finished(task) else { return };
        let withdrawn = self.task_store.is_withdrawn(task);
        let bytes = self.task_store.drop_task(task);
        self.actions.extend(bytes.map(Action::Free));
        if self.root {
            if !withdrawn {
                self.results.push(finished);
            }
            return;
        }
        let Finished { node, ok, payload, .. } = finished;
        *self.account.passed.results.entry(node).or_default() += 1;
        let limit = self.result_limit;
        let paced = self.is_emulated() && limit.is_finite() && payload.bytes() > 0;
        let rate = paced.then(|| Rate { bytes_per_ns: limit * 1e-3 * self.scale(), reported: limit });
        if self.is_emulated() {
            self.uplink.push_back(rate.map_or(0.0, |rate| rate.reported));
            self.load_uplink(at_ns);
        }
        self.act(Action::Send { to: Peer::Parent, task, kind: Kind::Result { node, ok }, payload, rate, at_ns });
    }

    fn hand_back(&mut self, task: u64) {
        let bytes = self.task_store.drop_task(task);
        self.actions.extend(bytes.map(Action::Free));
        self.send_frame(Peer::Parent, Frame::HandBack { task });
    }

    /// Handles the outcome of a transfer.
    pub fn transferred(&mut self, to: Peer, done: Done, now_ns: u64) {
        self.now_ns = now_ns;
        let Done { task, outcome, began_ns, bytes, .. } = done;
        let at_ns = done.at_ns.max(now_ns.saturating_sub(FORGIVEN_NS));
        match to {
            Peer::Child(child) => self.transferred_down(child, done, at_ns),
            Peer::Parent => {
                if self.run.recording.trace && bytes > 0 {
                    let (nodes, times) = ((self.parent, self.number), (began_ns, at_ns));
                    self.account.row(Activity::Result, nodes, task, times, (bytes, 0.0));
                }
                if outcome == Outcome::Sent && self.uplink.pop_front().is_some() {
                    self.load_uplink(now_ns);
                }
            }
        }
    }

    fn transferred_down(&mut self, child: u32, done: Done, at_ns: u64) {
        let Done { task, outcome, began_ns, bytes, .. } = done;
        let Some(state) = self.children.get_mut(child as usize) else { return };
        if state.left {
            return; // the transfer belonged to a child that was lost
        }
        if self.run.recording.trace && bytes > 0 {
            let nodes = (self.number, state.number);
            self.account.row(Activity::Send, nodes, task, (began_ns, at_ns), (bytes, 0.0));
        }
        match (outcome, &mut state.out.sending) {
            (Outcome::Held, Some(sending)) => {
                (sending.paused, sending.reported) = (true, sending.reported.map(|_| 0.0))
            }
            (_, sending) => *sending = None,
        }
        if self.is_emulated() {
            if outcome == Outcome::Held {
                self.send_frame(Peer::Child(child), Frame::Pace { rate: 0.0 });
            }
            self.share(at_ns);
        }
        let seen_ns = self.seen_ns(done.at_ns, at_ns);
        let event = match outcome {
            Outcome::Sent => {
                self.estimate_sent(child, task, done.waited, seen_ns);
                if self.task_store.is_recalling(task) {
                    self.send_frame(Peer::Child(child), Frame::Recall { task });
                }
                Event::Sent { child, task }
            }
            Outcome::Held => {
                self.estimate(seen_ns, |estimator, now_s, _| estimator.held(child, now_s));
                Event::Held { child }
            }
        };
        self.events.push_back((event, at_ns));
        self.settle();
    }

    /// Updates the load that results put on the emulated processor and on the link to the parent.
    fn load_uplink(&mut self, at_ns: u64) {
        if let Processor::Emulated(processor) = &mut self.processor {
            processor.result_up(self.uplink.front().copied().unwrap_or(0.0), at_ns);
        }
    }

    /// Handles an event after the latency of an emulated link, or at once if there is none.
    pub(crate) fn later(&mut self, latency_ns: u64, event: Event, finished: Option<Finished<P>>, at_ns: u64) {
        if latency_ns > 0 && self.is_emulated() {
            self.late.put(at_ns + latency_ns, (event, finished));
        } else {
            self.arrive(event, finished, at_ns);
        }
    }

    fn arrive(&mut self, event: Event, finished: Option<Finished<P>>, at_ns: u64) {
        if let Some(finished) = finished {
            // Ignore the result of a task that was handed back or returned meanwhile.
            if self.task_store.get(finished.task).is_none() {
                return;
            }
            self.task_store.finish(finished);
        }
        self.handle_event(event, at_ns);
    }

    /// Handles everything due by now. Returns when the next thing is due, `None` if nothing is.
    pub fn pass_time(&mut self, now_ns: u64) -> Option<u64> {
        self.now_ns = now_ns;
        let change = self.take_up_changes(now_ns);
        while let Some((due, (event, finished))) = self.late.take(now_ns) {
            self.arrive(event, finished, due);
        }
        let result_bytes = if let Work::Emulated { result_bytes, .. } = self.run.work { result_bytes } else { 0 };
        while let Processor::Emulated(processor) = &mut self.processor {
            let Some((task, began_ns, due)) = processor.done(now_ns) else { break };
            let ended_ns = due.max(now_ns.saturating_sub(FORGIVEN_NS));
            let output = P::blank(result_bytes);
            self.note_work(Worked { task, ok: true, output, began_ns, ended_ns, tried: 1 }, due);
            self.settle();
        }
        let work = if let Processor::Emulated(processor) = &self.processor { processor.due() } else { None };
        let reported = self.report_computing(now_ns);
        [work, self.late.due(), change, reported].into_iter().flatten().min()
    }
}
