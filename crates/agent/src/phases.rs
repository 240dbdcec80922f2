//! The phases of a run: gathering, start, tasks and results at the root, finish, reports. Also what an agent does when
//! it is asked to leave.

use crosswind_policy::farm::{Event, gathering, giving_up, supplying};

use crate::account::Piece;
use crate::action::{Action, End, Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::record::{AgentEvent, LOG, ROWS, TOTALS};

/// Maximum size of a piece of a report, bytes.
const PIECE: usize = 1 << 20;
/// Time to wait for reports once all tasks are done, ns.
const REPORT_PATIENCE_NS: u64 = 20_000_000_000;

/// Event code: an agent ended before its run did.
pub const AGENT_FAILED: &str = "agent-failed";
/// Event code: the totals of an agent are missing from the summary, although it reported.
pub const REPORT_UNREADABLE: &str = "report-unreadable";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Gathering,
    /// Gathering is over; waiting for the start. Never at the root.
    Ready,
    Running,
    /// There are no more tasks; reports are gathered.
    Finishing,
    Reported,
}

#[derive(Debug)]
pub(crate) struct RunState {
    pub phase: Phase,
    /// Whether this agent joined after its parent had finished gathering.
    pub joins_late: bool,
    /// Start of the current wait, for children or for anything that computes, ns.
    began_ns: u64,
    finishing_ns: u64,
    /// Between time 0 and [`Agent::open`]: the root takes the user's first tasks before it serves any child.
    opening: bool,
    /// At the root: whether the user has no more tasks.
    supply_over: bool,
    /// At the root: maximum number of tasks that the platform's children request together.
    wanted: u64,
    leaving: bool,
    pub end: Option<End>,
}

impl RunState {
    pub fn new(joins_late: bool, wanted: u64, now_ns: u64) -> Self {
        Self {
            phase: Phase::Gathering,
            joins_late,
            began_ns: now_ns,
            finishing_ns: 0,
            opening: false,
            supply_over: false,
            wanted,
            leaving: false,
            end: None,
        }
    }

    /// Whether requests may be sent to the parent. The first one is part of `Ready`.
    pub fn may_ask(&self) -> bool {
        self.phase != Phase::Gathering
    }
}

impl<P: TaskBytes> Agent<P> {
    /// Current phase of the run.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.run_state.phase
    }

    /// Whether the agent was asked to leave.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.run_state.leaving
    }

    /// Whether the root has reached time 0 but does not serve its children yet ([`Self::open`]).
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.run_state.opening
    }

    /// Records how the run ended. Only the first end counts.
    pub(crate) fn end(&mut self, end: End) {
        let end = match end {
            // An agent that was about to leave does not reconnect.
            End::ParentLost(_) if self.run_state.leaving => End::Bye,
            end => end,
        };
        self.run_state.end.get_or_insert(end);
    }

    /// Advances the run to the next phase if its conditions are met.
    pub fn progress(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.forward_events();
        match self.run_state.phase {
            Phase::Gathering => self.gather(now_ns),
            Phase::Running => {
                self.finish_the_drained();
                if self.root {
                    self.is_it_over(now_ns);
                } else {
                    self.is_it_of_use(now_ns);
                }
            }
            Phase::Finishing => self.report(now_ns),
            Phase::Ready | Phase::Reported => {}
        }
    }

    /// Forwards new events to the parent.
    pub fn forward_events(&mut self) {
        if self.root {
            return;
        }
        for event in std::mem::take(&mut self.account.agent_events) {
            self.account.passed.note(&event);
            // Serializing a plain struct cannot fail.
            if let Ok(event) = serde_json::to_string(&event) {
                self.send_frame(Peer::Parent, Frame::Event { event });
            }
        }
    }

    /// Events not forwarded yet. At the root, all events of the run.
    #[must_use]
    pub fn agent_events(&self) -> &[AgentEvent] {
        &self.account.agent_events
    }

    /// At the root, at the end: takes all events and the pieces of all reports.
    pub fn take_account(&mut self) -> (Vec<AgentEvent>, Vec<Piece>) {
        (std::mem::take(&mut self.account.agent_events), std::mem::take(&mut self.account.pieces))
    }

    fn gather(&mut self, now_ns: u64) {
        let all = self.children.iter().all(|child| child.left || (child.connected && child.ready.is_some()));
        let patience_s = gathering::patience_s(self.root, self.run_state.joins_late, self.run.patience.start_s);
        if !all && now_ns.saturating_sub(self.run_state.began_ns) < (patience_s * 1e9) as u64 {
            return;
        }
        if self.root {
            self.start(now_ns, now_ns);
            return;
        }
        // Request tasks only for the children that are connected.
        self.go_without_the_missing(now_ns);
        let tasks = self.first_request();
        let ready = self.children.iter().filter_map(|child| child.ready);
        let agents = ready.fold(0, |sum: u32, (agents, _)| sum.saturating_add(agents));
        self.send_frame(Peer::Parent, Frame::Ready { agents: agents.saturating_add(1), tasks });
        self.run_state.phase = Phase::Ready;
    }

    /// Starts the run. `zero_ns` is time 0, which may be in the past.
    pub(crate) fn start(&mut self, zero_ns: u64, now_ns: u64) {
        if self.run_state.phase == Phase::Running {
            return;
        }
        self.zero_ns = zero_ns;
        self.run_state.phase = Phase::Running;
        self.run_state.began_ns = now_ns;
        self.act(Action::Begun);
        let root_ns = self.clock.root_ns(zero_ns);
        for child in 0..self.children.len() {
            if self.children[child].ready.is_some() {
                self.send_frame(Peer::Child(child as u32), Frame::Start { root_ns });
            }
        }
        self.run_state.opening = true;
        if self.root {
            if let Some(tasks) = self.run.tasks {
                self.handle_event(Event::RemainingHint { tasks }, now_ns);
            }
        } else {
            self.open(now_ns);
        }
    }

    /// Serves the children that were ready at time 0. At the root, call it after the user's first tasks were submitted.
    pub fn open(&mut self, now_ns: u64) {
        if !std::mem::take(&mut self.run_state.opening) {
            return;
        }
        for child in 0..self.children.len() {
            let state = &self.children[child];
            if let Some((_, tasks)) = state.ready.filter(|_| state.connected) {
                self.handle_event(Event::Requested { child: child as u32, tasks }, now_ns);
            }
        }
        self.go_without_the_missing(now_ns);
    }

    fn go_without_the_missing(&mut self, now_ns: u64) {
        for child in 0..self.children.len() {
            let state = &self.children[child];
            if !state.connected && !state.left {
                self.lose(child as u32, "it was not there at the start", now_ns);
            }
        }
    }

    /// At the root: whether to take another task from the user now.
    #[must_use]
    pub fn wants_task(&self) -> bool {
        self.root
            && self.run_state.phase == Phase::Running
            && !self.run_state.supply_over
            && supplying::takes_another(self.waiting(), self.task_store.held_bytes(), self.run_state.wanted)
    }

    /// At the root: names a task that the user is about to submit.
    pub fn name_task(&mut self, task: u64, name: Vec<u8>) {
        if !name.is_empty() {
            self.task_store.name(task, name.into());
        }
    }

    /// At the root: marks a task that the user is about to submit as a batch of calls.
    pub fn mark_batch(&mut self, task: u64) {
        self.task_store.mark_batch(task);
    }

    /// At the root: adds a task of the user.
    pub fn submit(&mut self, task: u64, payload: P, work: f64, now_ns: u64) {
        self.now_ns = now_ns;
        self.task_store.hold(task, payload, work);
        self.handle_event(Event::Arrived { task }, now_ns);
    }

    /// At the root: marks the end of the user's tasks.
    pub fn end_of_tasks(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.run_state.supply_over = true;
        self.handle_event(Event::RemainingHint { tasks: 0 }, now_ns);
    }

    /// At the root: finishes once all tasks are done. Gives up if nothing has been able to compute them for too long.
    fn is_it_over(&mut self, now_ns: u64) {
        if self.run_state.supply_over && self.task_store.wanted() == 0 {
            if !self.has_results() {
                self.finish(now_ns);
            }
            return;
        }
        if !self.is_without_processors(now_ns) {
            return;
        }
        let left = self.task_store.len();
        let failed = self.account.agent_events.iter().rev().find(|event| event.code == AGENT_FAILED);
        let why = failed.map_or_else(String::new, |event| format!("; the last reason given: {}", event.message));
        let more = if self.run_state.supply_over { "" } else { "at least " }; // of a source that is taken as there is room
        self.end(End::AllLost(format!("all agents are lost, and {more}{left} tasks are not done{why}")));
    }

    /// Leaves the parent and reconnects if this node holds tasks, computes nothing itself and has lost everything below
    /// it. Leaving returns the tasks, which nothing else would ever compute.
    fn is_it_of_use(&mut self, now_ns: u64) {
        if self.task_store.is_empty() {
            self.run_state.began_ns = now_ns;
        } else if self.is_without_processors(now_ns) {
            self.end(End::ParentLost("no compute-capable descendants; tasks returned to the parent".into()));
        }
    }

    /// Whether nothing here has been able to compute for longer than the patience, during which an agent may join.
    fn is_without_processors(&mut self, now_ns: u64) -> bool {
        if self.can_compute() {
            self.run_state.began_ns = now_ns;
            return false;
        }
        let patience_s =
            giving_up::without_processors_s(self.root, self.run.patience.start_s, self.run.patience.silence_s);
        now_ns.saturating_sub(self.run_state.began_ns) > (patience_s * 1e9) as u64
    }

    /// Ends the run: agents report what they did.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        if matches!(self.run_state.phase, Phase::Finishing | Phase::Reported) {
            return;
        }
        self.run_state.phase = Phase::Finishing;
        self.run_state.finishing_ns = now_ns;
        for child in 0..self.children.len() {
            self.send_frame(Peer::Child(child as u32), Frame::Finish);
        }
    }

    fn report(&mut self, now_ns: u64) {
        let told = self.children.iter().all(|child| !child.connected || child.reported);
        if !told && now_ns.saturating_sub(self.run_state.finishing_ns) < REPORT_PATIENCE_NS {
            return;
        }
        self.note_what_was_seen();
        let shift = self.clock.shift_ns();
        let mut rows = Vec::new();
        for row in self.account.rows.drain(..) {
            row.encode(shift, &mut rows);
        }
        let totals = serde_json::to_vec(&self.account.totals).unwrap_or_else(|error| {
            self.record_event(REPORT_UNREADABLE, None, format!("{} cannot report its totals: {error}", self.name));
            Vec::new()
        });
        self.forward_events();
        let log = self.account.log.take().map_or_else(Vec::new, |log| log.0.into_bytes());
        for (part, bytes) in [(TOTALS, totals), (ROWS, rows), (LOG, log)] {
            for piece in bytes.chunks(PIECE) {
                self.pass_on_report(self.number, part, piece.to_vec());
            }
        }
        self.send_frame(Peer::Parent, Frame::Reported);
        self.run_state.phase = Phase::Reported;
        if self.root {
            self.end(End::Bye);
        }
    }

    /// Forwards a piece of a report to the parent. The root stores it.
    pub(crate) fn pass_on_report(&mut self, node: u32, part: u8, piece: Vec<u8>) {
        if self.root {
            self.account.pieces.push(Piece { node, part, bytes: piece });
        } else {
            self.send_frame(Peer::Parent, Frame::Report { node, part, piece });
        }
    }

    /// Handles `times` new requests to leave: the agent hands back waiting tasks, finishes the rest, and ends. If there
    /// was more than one in all, or before the run starts, it ends at once.
    pub fn leave(&mut self, times: usize, now_ns: u64) {
        self.now_ns = now_ns;
        let again = times > 1 || self.run_state.leaving;
        self.run_state.leaving = true;
        match self.run_state.phase {
            Phase::Gathering | Phase::Ready => self.end(End::Bye),
            _ if again => self.end(End::Bye),
            // The run ends anyway.
            Phase::Finishing | Phase::Reported => {}
            Phase::Running => {
                self.act(Action::Note("asked to leave: finishing what is here".into()));
                self.send_frame(Peer::Parent, Frame::Draining);
                self.handle_event(Event::Drain, now_ns);
            }
        }
    }

    /// Ends the agent at once, because the process that started it is gone.
    pub fn stop(&mut self) {
        self.end(End::Bye);
    }

    /// Closes the links to all children with a goodbye at the end of the run.
    pub fn send_goodbye(&mut self) {
        for child in 0..self.children.len() {
            if std::mem::take(&mut self.children[child].connected) {
                self.act(Action::Close { child: child as u32, bye: true });
            }
        }
    }
}
