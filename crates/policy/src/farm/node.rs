//! State machine of one node of a farm. [`Node::handle`] takes an [`Event`] and appends the [`Command`]s that follow.
//!
//! The simulator calls it in virtual time and agents call it in wall time, so that both make the same decisions. It has
//! no clock: rules that depend on rates or on the end of the run get their numbers in [`Settings`] and in events. It
//! sends nothing and computes nothing: its caller executes the commands and reports their ends as events.

use crosswind_schema::plan::Ports;

use super::ending::Ending;
use super::event::{Child, Command, Commands, Event, TaskId};
use super::in_time::InTime;
use super::ledger::Ledger;
use super::multi::MultiPort;
use super::order::Rule;
use super::queue::Queue;
use super::settings::{ChildSettings, Settings};
use super::single::SinglePort;
use super::waiting::{ChildState, Transfer, Waiting};

/// Decides what one node of a farm does next. It handles task numbers, never task bytes.
///
/// An idle own processor has priority. Other tasks go to the requesting children, in the order of preference. Below the
/// root, a place becomes free, and is requested again, when its task starts to compute or has left for a child.
///
/// Deterministic: the same events give the same commands. Memory grows with the number of tasks held, not with the
/// number handled.
///
/// # Examples
/// ```
/// use crosswind_policy::farm::{ChildSettings, Command, Event, FarmOptions, MeanTask, Node, Settings};
/// use crosswind_schema::experiment::Policy;
///
/// let options = FarmOptions::of(&Policy::default(), MeanTask { size_mb: 2.0, work: 5.0 });
/// let mut root = Node::new(Settings::of_a_lone_node(true, &options));
/// let mut commands = Vec::new();
/// root.handle(Event::Given { first: 0, tasks: 3 }, &mut commands);
/// assert_eq!(commands, [Command::Compute { task: 0 }]);
///
/// commands.clear();
/// let child = ChildSettings {
///     key: Some(1.0), receive_limit_mb_per_s: 10.0, pace_mb_per_s: 10.0, uses_tasks_per_s: 2.0, empties_tasks_per_s: 2.0,
///     send_s: 0.2,
/// };
/// root.handle(Event::Joined { child }, &mut commands);
/// root.handle(Event::Requested { child: 0, tasks: 2 }, &mut commands);
/// assert_eq!(commands, [Command::Send { child: 0, task: 1, limit_mb_per_s: None }]);
/// ```
// In this order because everything that each event reads then lies in the first cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Node {
    root: bool,
    computes: bool,
    returns: bool,
    /// Until then children may still turn out to be missing, and nothing is requested.
    started: bool,
    draining: bool,
    ports: Ports,
    places: u64,
    /// Tasks requested and not yet received.
    requested: u64,
    /// Sends begun and not finished.
    sending: u64,
    computing: Option<TaskId>,
    single: SinglePort,
    children: Vec<ChildState>,
    ready: Queue,
    waiting: Waiting,
    ending: Ending,
    ledger: Option<Box<Ledger>>,
    multi: MultiPort,
    in_time: InTime,
}

impl Node {
    /// Creates a node in its initial state.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut ending = Ending::new(&settings);
        let children: Vec<ChildState> = settings.children.into_iter().map(ChildState::new).collect();
        children.iter().for_each(|child| ending.count(child, true));
        Self {
            root: settings.root,
            computes: settings.computes,
            returns: settings.returns,
            started: false,
            draining: false,
            ports: settings.ports,
            places: settings.places,
            requested: 0,
            sending: 0,
            computing: None,
            single: SinglePort::default(),
            ready: Queue::default(),
            waiting: Waiting::by(settings.rule, settings.ports),
            children,
            multi: MultiPort::new(settings.send_limit_mb_per_s),
            ledger: settings.recovers.then(Box::default),
            ending,
            in_time: InTime::default(),
        }
    }

    /// Handles an event and appends commands, in the order in which they must be executed.
    ///
    /// Events about children that are unknown or have left change nothing.
    // Inlined so that only the code for one event remains where the event is known.
    #[inline(always)]
    pub fn handle(&mut self, event: Event, commands: &mut impl Commands) {
        match event {
            Event::Arrived { task } => {
                self.requested = self.requested.saturating_sub(1);
                self.ending.came(1);
                // Fast path for a task that the own processor is waiting for.
                if self.computes && self.computing.is_none() && self.ready.is_empty() && self.ending.left(1).is_none() {
                    self.compute(task, commands);
                    self.ask(commands);
                    return;
                }
                self.ready.push(task);
            }
            Event::Requested { child, tasks } => {
                let wakes = self.wake(child);
                self.waiting.ask(&mut self.children, child, tasks);
                self.refresh(child);
                // Nothing below was known to compute, and now a node that does has joined there.
                if self.places == 0 && !self.draining {
                    self.places = tasks;
                } else if !wakes && !self.may_begin() {
                    return; // what this node requests has not changed
                }
            }
            Event::Sent { child, task } => self.sent(child, task),
            Event::Computed { task } => self.computed(task, commands),
            Event::Returned { child, task } => {
                self.returned(child, task, commands);
                // Before the end of a run a result does not change what can begin. But if tasks wait at a node that
                // computes nothing, it may be the last result that this child returns.
                let waits = !self.computes && !self.root && !self.ready.is_empty();
                if self.ports == Ports::Single && !waits && self.ending.left(self.ready.len()).is_none() {
                    return;
                }
            }
            rare => self.handle_rare(rare),
        }
        self.go_on(commands);
    }

    #[inline(never)]
    fn handle_rare(&mut self, event: Event) {
        match event {
            Event::Arrived { .. }
            | Event::Requested { .. }
            | Event::Sent { .. }
            | Event::Computed { .. }
            | Event::Returned { .. } => {}
            Event::Held { child } => {
                if self.knows(child) {
                    self.multi.pause(&mut self.children, child);
                }
            }
            Event::Started => self.started = true,
            Event::Known { child, settings } => self.know(child, settings),
            Event::Places { .. } if self.draining => {}
            Event::Places { tasks } => self.places = tasks,
            Event::Given { first, tasks } => {
                self.ending.came(tasks);
                self.ready.give(first, tasks);
            }
            Event::RemainingHint { tasks } => self.ending.expect(tasks),
            Event::Joined { child } => {
                let child = ChildState::new(child);
                self.ending.count(&child, true);
                self.children.push(child);
                self.in_time.clear();
            }
            Event::Left { child } => self.left(child),
            Event::Draining { child } => {
                if self.knows(child) {
                    self.forget(child);
                }
            }
            Event::HandedBack { child, task } => {
                self.settled(child);
                if self.knows(child) {
                    self.suspend(child);
                }
                if self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    self.ready.put_back(task);
                }
            }
            Event::Drain => self.drain(),
        }
    }

    /// Number of waiting tasks, neither being computed nor being sent.
    #[must_use]
    pub fn ready(&self) -> u64 {
        self.ready.len()
    }

    /// Whether the child is served when it requests tasks.
    #[must_use]
    pub fn serves(&self, child: Child) -> bool {
        self.children.get(child as usize).is_some_and(|child| child.served)
    }

    /// The task that is being computed.
    #[must_use]
    pub fn computing(&self) -> Option<TaskId> {
        self.computing
    }

    /// The outstanding tasks. `None` if the node keeps no ledger.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    #[inline(always)]
    fn go_on(&mut self, commands: &mut impl Commands) {
        if self.may_begin() {
            self.begin(commands);
        }
        self.ask(commands);
    }

    /// Whether anything can begin. That takes a waiting task, except where a held send may resume and at the end of a
    /// run.
    #[inline(always)]
    fn may_begin(&self) -> bool {
        let may_resume = self.ports == Ports::Multi && self.waiting.rule != Rule::Arrival;
        !self.ready.is_empty() || may_resume || self.ending.left(0).is_some()
    }

    #[inline]
    fn begin(&mut self, commands: &mut impl Commands) {
        if self.computes
            && self.computing.is_none()
            && self.is_own_in_time()
            && let Some(task) = self.ready.pop()
        {
            self.compute(task, commands);
        }
        if !self.computes && !self.root && !self.ready.is_empty() {
            self.place_or_hand_back(commands);
        }
        if !self.children.is_empty() {
            match self.ports {
                Ports::Single => self.serve_single(commands),
                Ports::Multi => self.serve_multi(commands),
            }
            self.hint_the_end(commands);
        }
    }

    /// Whether an arriving task could be computed here or sent on.
    #[inline]
    fn can_place(&self) -> bool {
        self.computes || self.root || self.children.iter().any(ChildState::is_open)
    }

    /// Hands back the waiting tasks unless a child will take them.
    ///
    /// A child below which a node computes has tasks or has requested some. A child with neither is idle until it
    /// requests a task: it only forwards tasks, and nothing below it computes any more. It holds no task whose return
    /// would reveal this.
    #[inline]
    fn place_or_hand_back(&mut self, commands: &mut impl Commands) {
        if self.children.iter().any(ChildState::is_awaited) {
            return;
        }
        if self.returns {
            (0..self.children.len()).for_each(|child| self.suspend(child as Child));
        }
        if !self.can_place() {
            self.hand_back(commands);
        }
    }

    /// Stops sending to a child until it requests a task.
    #[cold]
    fn suspend(&mut self, child: Child) {
        self.ending.count(&self.children[child as usize], false);
        self.waiting.suspend(&mut self.children, child);
        self.refresh(child);
    }

    /// Hands the waiting tasks back to the parent, which cancels this node's requests.
    #[cold]
    fn hand_back(&mut self, commands: &mut impl Commands) {
        while let Some(task) = self.ready.pop() {
            self.requested = 0;
            commands.push(Command::HandBack { task });
        }
    }

    /// Handles a request of a child that may have been idle. Returns whether it was.
    #[inline]
    fn wake(&mut self, child: Child) -> bool {
        let wakes = self.children.get_mut(child as usize).is_some_and(ChildState::wakes);
        if wakes {
            self.ending.count(&self.children[child as usize], true);
        }
        wakes
    }

    /// Begins the next send of a single port.
    #[inline]
    fn serve_single(&mut self, commands: &mut impl Commands) {
        if !self.single.is_free() || self.ready.is_empty() {
            return;
        }
        let Some((_, child)) = self.next_child() else { return };
        self.waiting.take(&mut self.children, child);
        self.hint_remaining(child, commands);
        let Some(task) = self.ready.pop() else { return };
        self.lend(task, child);
        self.single.begin(child, task);
        self.sending += 1;
        commands.push(Command::Send { child, task, limit_mb_per_s: None });
    }

    /// Distributes the send limit of a port with several concurrent sends.
    fn serve_multi(&mut self, commands: &mut impl Commands) {
        if self.waiting.rule == Rule::Arrival {
            while !self.ready.is_empty()
                && let Some(first) = self.waiting.first()
            {
                self.begin_multi(first, f64::INFINITY, commands);
            }
            return;
        }
        self.multi.raise_last(&mut self.children, commands);
        loop {
            let fresh = if self.ready.is_empty() { None } else { self.next_child() };
            let Some((first, is_paused)) = self.multi.first(fresh) else { return };
            let mut share = self.multi.take_free(&self.children, first.1);
            if !self.ending.left(self.ready.len()).is_some_and(|left| self.ending.is_close(left)) {
                share = self.multi.take_over(&mut self.children, first, share, commands);
            }
            if share <= 0.0 {
                return;
            }
            if is_paused {
                self.multi.resume(&mut self.children, first.1, share, commands);
            } else {
                self.begin_multi(first, share, commands);
            }
        }
    }

    fn begin_multi(&mut self, first: (f64, Child), share: f64, commands: &mut impl Commands) {
        self.hint_remaining(first.1, commands);
        let Some(task) = self.ready.pop() else { return };
        self.waiting.take_out(&mut self.children, first.1);
        self.lend(task, first.1);
        self.sending += 1;
        self.multi.begin(&mut self.children, first, task, share, commands);
        self.refresh(first.1);
    }

    /// Ends a send. The child waits again if it has further requests.
    fn end_multi(&mut self, child: Child) {
        self.multi.end(&mut self.children, child);
        self.waiting.wait_again(&self.children, child);
        self.refresh(child);
    }

    /// Whether the own processor would finish a task by the time that all tasks can be finished.
    #[inline]
    fn is_own_in_time(&mut self) -> bool {
        let Some(left) = self.ending.left(self.ready.len()) else { return true };
        self.ending.own_s() <= self.ending.horizon_s(left, false) || self.ending.own_s() <= self.earliest_s()
    }

    /// The requesting child that is served next, with its key.
    #[inline]
    fn next_child(&mut self) -> Option<(f64, Child)> {
        let Some(left) = self.ending.left(self.ready.len()) else { return self.waiting.first() };
        let earliest_s = self.earliest_s();
        let within_s = self.ending.horizon_s(left, self.computing.is_some());
        self.in_time.first(within_s).or_else(|| self.in_time.first(earliest_s))
    }

    /// The earliest time at which a processor that takes tasks (its own or a child's subtree) would finish one more, s.
    fn earliest_s(&mut self) -> f64 {
        if !self.in_time.is_built() {
            self.in_time.build(self.children.iter().map(|child| self.waiting.entry(child)));
        }
        let own_s = if self.computes {
            (1.0 + f64::from(u8::from(self.computing.is_some()))) * self.ending.own_s()
        } else {
            f64::INFINITY
        };
        own_s.min(self.in_time.earliest_s())
    }

    /// Near the end, updates the entry of a child.
    #[inline]
    fn refresh(&mut self, child: Child) {
        if self.in_time.is_built()
            && let Some(state) = self.children.get(child as usize)
        {
            self.in_time.put(child, self.waiting.entry(state));
        }
    }

    /// Near the end, sends the child that is served next its share of the remaining tasks, including the next one.
    #[inline]
    fn hint_remaining(&mut self, child: Child, commands: &mut impl Commands) {
        if let Some(left) = self.ending.left(self.ready.len()) {
            let tasks = self.ending.share(left - 1, &self.children[child as usize]).saturating_add(1);
            commands.push(Command::HintRemaining { child, tasks });
        }
    }

    /// Informs all children that nothing is to come except what is in transit.
    #[inline]
    fn hint_the_end(&mut self, commands: &mut impl Commands) {
        if self.ending.is_announced || self.ending.left(self.ready.len()) != Some(0) {
            return;
        }
        self.ending.is_announced = true;
        for (child, state) in (0..).zip(&self.children) {
            if state.is_counted() {
                let on_its_way = self.single.is_sending_to(child) || state.transfer != Transfer::None;
                commands.push(Command::HintRemaining { child, tasks: u64::from(on_its_way) });
            }
        }
    }

    #[inline]
    fn compute(&mut self, task: TaskId, commands: &mut impl Commands) {
        self.computing = Some(task);
        commands.push(Command::Compute { task });
    }

    /// Requests tasks for all free places, if this node or one below could compute them.
    #[inline(always)]
    fn ask(&mut self, commands: &mut impl Commands) {
        let held = self.requested + self.ready.len() + self.sending;
        if held >= self.places || !self.started || self.root {
            return;
        }
        if self.can_place() {
            let tasks = self.places - held;
            self.requested += tasks;
            commands.push(Command::Ask { tasks });
        }
    }

    #[inline]
    fn computed(&mut self, task: TaskId, commands: &mut impl Commands) {
        if self.computing == Some(task) {
            self.computing = None;
            if self.returns {
                commands.push(Command::Return { task });
            }
        }
    }

    #[inline]
    fn sent(&mut self, child: Child, task: TaskId) {
        match self.ports {
            Ports::Single => {
                if self.single.sent(child, task) {
                    self.sending -= 1;
                }
            }
            Ports::Multi => {
                if self.knows(child) && self.children[child as usize].transfer != Transfer::None {
                    self.sending -= 1;
                    self.end_multi(child);
                }
            }
        }
    }

    fn returned(&mut self, child: Child, task: TaskId, commands: &mut impl Commands) {
        self.settled(child);
        let first = self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task));
        if first {
            commands.push(Command::Return { task });
        }
    }

    fn left(&mut self, child: Child) {
        if !self.knows(child) {
            return;
        }
        self.forget(child);
        let abandoned = match self.ports {
            Ports::Single => self.single.abandon(child).is_some(),
            Ports::Multi => {
                let was_sending = self.children[child as usize].transfer != Transfer::None;
                self.end_multi(child);
                was_sending
            }
        };
        self.sending -= u64::from(abandoned);
        if let Some(ledger) = &mut self.ledger {
            for task in ledger.recall(child).into_iter().rev() {
                self.ready.put_back(task);
            }
        }
    }

    fn drain(&mut self) {
        if self.root {
            return;
        }
        (self.draining, self.computes, self.places) = (true, false, 0);
        for child in 0..self.children.len() {
            self.forget(child as Child);
        }
    }

    /// Stops sending to a child for good.
    fn forget(&mut self, child: Child) {
        self.ending.count(&self.children[child as usize], false);
        self.waiting.forget(&mut self.children, child);
        self.refresh(child);
    }

    fn know(&mut self, child: Child, settings: ChildSettings) {
        if self.knows(child) {
            self.ending.count(&self.children[child as usize], false);
            self.waiting.know(&mut self.children, child, settings);
            self.ending.count(&self.children[child as usize], true);
            self.refresh(child);
        }
    }

    /// A child has returned a task, as a result or handed back.
    #[inline]
    fn settled(&mut self, child: Child) {
        if let Some(state) = self.children.get_mut(child as usize) {
            self.ending.settled(state);
            self.refresh(child);
        }
    }

    fn knows(&self, child: Child) -> bool {
        (child as usize) < self.children.len()
    }

    #[inline]
    fn lend(&mut self, task: TaskId, child: Child) {
        self.ending.lent(&mut self.children[child as usize]);
        self.refresh(child);
        if let Some(ledger) = &mut self.ledger {
            ledger.lend(task, child);
        }
    }
}
