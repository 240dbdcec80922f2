//! The course of a run: gathering, start, tasks and results at the root, finish, reports; and what an agent does when it is
//! asked to leave.

use crosswind_policy::farm::{Event, gathering, giving_up, supplying};

use crate::account::Piece;
use crate::action::{Action, End, Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::record::{AgentEvent, LOG, ROWS, TOTALS};

/// Bytes of a report in one frame.
const PIECE: usize = 1 << 20;
/// How long reports are waited for once all tasks are done, ns.
const REPORT_PATIENCE_NS: u64 = 20_000_000_000;

/// Something that happened: an agent ended, and not since its run did.
pub const AGENT_FAILED: &str = "agent-failed";

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Gathering,
    /// All are here; the start is waited for (not at the root).
    Ready,
    Running,
    /// No more tasks: reports are gathered.
    Finishing,
    Reported,
}

/// How far an agent is in its run.
#[derive(Debug)]
pub(crate) struct Course {
    pub phase: Phase,
    /// Whether time 0 was over when this agent came.
    pub joins_late: bool,
    /// When the present wait began: for children, or for anything that computes.
    began_ns: u64,
    finishing_ns: u64,
    /// At the root: time 0 is here, and the user's first tasks are taken before any child is served.
    opening: bool,
    /// At the root: no more tasks come from the user.
    supply_over: bool,
    /// At the root: the most tasks that the children of the platform ask for.
    wanted: u64,
    /// Whether it was asked to leave.
    leaving: bool,
    pub end: Option<End>,
}

impl Course {
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

    /// Whether the parent hears requests: the first one comes with `Ready`.
    pub fn may_ask(&self) -> bool {
        self.phase != Phase::Gathering
    }
}

impl<P: TaskBytes> Agent<P> {
    /// How far the run is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.course.phase
    }

    /// Whether it was asked to leave.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.course.leaving
    }

    /// Whether time 0 has come at the root, and the children are served only once tasks were taken ([`Self::open`]).
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.course.opening
    }

    /// The run has ended here, and so.
    pub(crate) fn end(&mut self, end: End) {
        let end = match end {
            // What was to leave anyway does not begin again.
            End::ParentLost(_) if self.course.leaving => End::Bye,
            end => end,
        };
        self.course.end.get_or_insert(end);
    }

    /// The next phase, if it is time.
    pub fn progress(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.pass_on_happenings();
        match self.course.phase {
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

    /// Tells the parent what has happened.
    pub fn pass_on_happenings(&mut self) {
        if self.root {
            return;
        }
        for event in std::mem::take(&mut self.account.happened) {
            self.account.passed.note(&event);
            // A plain structure always has a text.
            if let Ok(event) = serde_json::to_string(&event) {
                self.say(Peer::Parent, Frame::Happened { event });
            }
        }
    }

    /// What has happened here, and at the root everywhere.
    #[must_use]
    pub fn happened(&self) -> &[AgentEvent] {
        &self.account.happened
    }

    /// At the root, at the end: what happened, and what all told of themselves.
    pub fn take_account(&mut self) -> (Vec<AgentEvent>, Vec<Piece>) {
        (std::mem::take(&mut self.account.happened), std::mem::take(&mut self.account.pieces))
    }

    fn gather(&mut self, now_ns: u64) {
        let all = self.children.iter().all(|child| child.left || (child.connected && child.ready.is_some()));
        let patience_s = gathering::patience_s(self.root, self.course.joins_late, self.run.patience.start_s);
        if !all && now_ns.saturating_sub(self.course.began_ns) < (patience_s * 1e9) as u64 {
            return;
        }
        if self.root {
            self.start(now_ns, now_ns);
            return;
        }
        // It asks for those that are there, not for those that may come.
        self.go_without_the_missing(now_ns);
        let tasks = self.first_request();
        let ready = self.children.iter().filter_map(|child| child.ready);
        let agents = ready.fold(0, |sum: u32, (agents, _)| sum.saturating_add(agents));
        self.say(Peer::Parent, Frame::Ready { agents: agents.saturating_add(1), tasks });
        self.course.phase = Phase::Ready;
    }

    /// Time 0 is here, or was at `zero_ns`.
    pub(crate) fn start(&mut self, zero_ns: u64, now_ns: u64) {
        if self.course.phase == Phase::Running {
            return;
        }
        self.zero_ns = zero_ns;
        self.course.phase = Phase::Running;
        self.course.began_ns = now_ns;
        self.act(Action::Begun);
        let root_ns = self.clock.root_ns(zero_ns);
        for child in 0..self.children.len() {
            if self.children[child].ready.is_some() {
                self.say(Peer::Child(child as u32), Frame::Start { root_ns });
            }
        }
        self.course.opening = true;
        if self.root {
            if let Some(tasks) = self.run.tasks {
                self.tell(Event::RemainingHint { tasks }, now_ns);
            }
        } else {
            self.open(now_ns);
        }
    }

    /// Serves the children that were ready at time 0. The user's first tasks are there before any of them asks.
    pub fn open(&mut self, now_ns: u64) {
        if !std::mem::take(&mut self.course.opening) {
            return;
        }
        for child in 0..self.children.len() {
            let state = &self.children[child];
            if let Some((_, tasks)) = state.ready.filter(|_| state.connected) {
                self.tell(Event::Asked { child: child as u32, tasks }, now_ns);
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

    /// At the root: whether a task of the user's is wanted now.
    #[must_use]
    pub fn wants_task(&self) -> bool {
        self.root
            && self.course.phase == Phase::Running
            && !self.course.supply_over
            && supplying::takes_another(self.waiting(), self.stock.held_bytes(), self.course.wanted)
    }

    /// At the root: a task of the user's.
    pub fn submit(&mut self, task: u64, payload: P, work: f64, now_ns: u64) {
        self.now_ns = now_ns;
        self.stock.hold(task, payload, work);
        self.tell(Event::Arrived { task }, now_ns);
    }

    /// At the root: there will be no more tasks.
    pub fn end_of_tasks(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.course.supply_over = true;
        self.tell(Event::RemainingHint { tasks: 0 }, now_ns);
    }

    /// At the root: whether all tasks are done; or, after a while without anything that computes, that they will not be.
    fn is_it_over(&mut self, now_ns: u64) {
        if self.course.supply_over && self.stock.is_empty() {
            if !self.has_results() {
                self.finish(now_ns);
            }
            return;
        }
        if !self.is_without_processors(now_ns) {
            return;
        }
        let left = self.stock.len();
        let failed = self.account.happened.iter().rev().find(|event| event.code == AGENT_FAILED);
        let why = failed.map_or_else(String::new, |event| format!("; the last one that said why: {}", event.message));
        self.end(End::AllLost(format!("all agents are lost, and {left} tasks are not done{why}")));
    }

    /// A node that computes nothing itself and has lost all below it gives its tasks back by leaving its parent, and dials
    /// again; no other node would ever do them.
    fn is_it_of_use(&mut self, now_ns: u64) {
        if self.stock.is_empty() {
            self.course.began_ns = now_ns;
        } else if self.is_without_processors(now_ns) {
            self.end(End::ParentLost("no compute-capable descendants; tasks returned to the parent".into()));
        }
    }

    /// Whether for long nothing has been here that computes. One may still join.
    fn is_without_processors(&mut self, now_ns: u64) -> bool {
        if self.can_compute() {
            self.course.began_ns = now_ns;
            return false;
        }
        let patience_s =
            giving_up::without_processors_s(self.root, self.run.patience.start_s, self.run.patience.silence_s);
        now_ns.saturating_sub(self.course.began_ns) > (patience_s * 1e9) as u64
    }

    /// No more tasks: all tell what they did.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        if matches!(self.course.phase, Phase::Finishing | Phase::Reported) {
            return;
        }
        self.course.phase = Phase::Finishing;
        self.course.finishing_ns = now_ns;
        for child in 0..self.children.len() {
            self.say(Peer::Child(child as u32), Frame::Finish);
        }
    }

    fn report(&mut self, now_ns: u64) {
        let told = self.children.iter().all(|child| !child.connected || child.reported);
        if !told && now_ns.saturating_sub(self.course.finishing_ns) < REPORT_PATIENCE_NS {
            return;
        }
        self.note_what_was_seen();
        let shift = self.clock.shift_ns();
        let mut rows = Vec::new();
        for row in self.account.rows.drain(..) {
            row.encode(shift, &mut rows);
        }
        let totals = serde_json::to_vec(&self.account.totals).unwrap_or_default();
        let log = self.account.log.take().map_or_else(Vec::new, |log| log.0.into_bytes());
        for (part, bytes) in [(TOTALS, totals), (ROWS, rows), (LOG, log)] {
            for piece in bytes.chunks(PIECE) {
                self.pass_on_report(self.number, part, piece.to_vec());
            }
        }
        self.say(Peer::Parent, Frame::Reported);
        self.course.phase = Phase::Reported;
        if self.root {
            self.end(End::Bye);
        }
    }

    /// A piece of a report goes up.
    pub(crate) fn pass_on_report(&mut self, node: u32, part: u8, piece: Vec<u8>) {
        if self.root {
            self.account.pieces.push(Piece { node, part, bytes: piece });
        } else {
            self.say(Peer::Parent, Frame::Report { node, part, piece });
        }
    }

    /// The agent is asked to leave, so many times: it hands back what waits, finishes the rest, and ends. A second time, or
    /// where nothing is here yet, it ends immediately.
    pub fn leave(&mut self, times: usize, now_ns: u64) {
        self.now_ns = now_ns;
        let again = times > 1 || self.course.leaving;
        self.course.leaving = true;
        match self.course.phase {
            Phase::Gathering | Phase::Ready => self.end(End::Bye),
            _ if again => self.end(End::Bye),
            // It ends anyway.
            Phase::Finishing | Phase::Reported => {}
            Phase::Running => {
                self.act(Action::Note("asked to leave: finishing what is here".into()));
                self.say(Peer::Parent, Frame::Draining);
                self.tell(Event::Drain, now_ns);
            }
        }
    }

    /// The agent is to end immediately: what started it is gone.
    pub fn stop(&mut self) {
        self.end(End::Bye);
    }

    /// The last words to all below: the run has ended.
    pub fn say_goodbye(&mut self) {
        for child in 0..self.children.len() {
            if std::mem::take(&mut self.children[child].connected) {
                self.act(Action::Close { child: child as u32, bye: true });
            }
        }
    }
}
