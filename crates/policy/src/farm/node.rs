//! The farm node: the one thing that the simulator and the agents share.

use crosswind_schema::plan::Ports;

use super::event::{Child, Command, Event, TaskId};
use super::ledger::Ledger;
use super::multi::MultiPort;
use super::queue::Queue;
use super::settings::Settings;
use super::single::SinglePort;
use super::waiting::{ChildState, Transfer, Waiting};

/// What one node of a farm does next. It holds task numbers, never their bytes.
///
/// Its own processor comes first when it is idle; other tasks go to the children who asked, in the order's preference.
/// Below the root, a place is free, and asked for again, when its task starts to compute or has left for a child.
///
/// Deterministic: the same events give the same commands. Memory grows with the tasks held, not with those handled.
///
/// # Examples
/// ```
/// use crosswind_policy::farm::{ChildSettings, Command, Event, Mean, Node, Settings, Wishes};
/// use crosswind_schema::experiment::Policy;
///
/// let wishes = Wishes::of(&Policy::default(), Mean { size_mb: 2.0, work: 5.0 });
/// let mut root = Node::new(Settings::of_a_lone_node(true, &wishes));
/// let mut commands = Vec::new();
/// root.handle(Event::Given { first: 0, tasks: 3 }, &mut commands);
/// assert_eq!(commands, [Command::Compute { task: 0 }]);
///
/// commands.clear();
/// let child = ChildSettings { key: Some(1.0), receive_limit_mb_per_s: 10.0, pace_mb_per_s: 10.0 };
/// root.handle(Event::Joined { child }, &mut commands);
/// root.handle(Event::Asked { child: 0, tasks: 2 }, &mut commands);
/// assert_eq!(commands, [Command::Send { child: 0, task: 1, limit_mb_per_s: None }]);
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    root: bool,
    computes: bool,
    returns: bool,
    draining: bool,
    ports: Ports,
    places: u64,
    /// Tasks asked for and not yet here.
    asked: u64,
    /// Sends begun and not over.
    pub(crate) sending: u64,
    computing: Option<TaskId>,
    pub(crate) single: SinglePort,
    pub(crate) ready: Queue,
    pub(crate) waiting: Waiting,
    pub(crate) children: Vec<ChildState>,
    pub(crate) multi: MultiPort,
    ledger: Option<Box<Ledger>>,
}

impl Node {
    /// A node to which nothing has happened yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            root: settings.root,
            computes: settings.computes,
            returns: settings.returns,
            draining: false,
            ports: settings.ports,
            places: settings.places,
            asked: 0,
            sending: 0,
            computing: None,
            single: SinglePort::default(),
            ready: Queue::default(),
            waiting: Waiting::by(settings.rule),
            children: settings.children.into_iter().map(ChildState::new).collect(),
            multi: MultiPort::new(settings.send_limit_mb_per_s),
            ledger: settings.recovers.then(Box::default),
        }
    }

    /// Takes in an event; adds what to do to `commands`, in the order in which it is to be done.
    ///
    /// Events about children that it does not know, or who left, change nothing.
    #[inline]
    pub fn handle(&mut self, event: Event, commands: &mut Vec<Command>) {
        match event {
            Event::Arrived { task } => {
                self.asked = self.asked.saturating_sub(1);
                // The short way of a task that the own processor is waiting for.
                if self.computes && self.computing.is_none() && self.ready.is_empty() {
                    self.compute(task, commands);
                    self.ask(commands);
                    return;
                }
                self.ready.push(task);
            }
            Event::Asked { child, tasks } => self.waiting.ask(&mut self.children, child, tasks),
            Event::Sent { child, task } => self.sent(child, task),
            Event::Computed { task } => self.computed(task, commands),
            Event::Held { child } => {
                if self.knows(child) {
                    self.pause(child);
                }
            }
            Event::Returned { task, .. } => self.returned(task, commands),
            Event::Started => {}
            Event::Known { child, settings } => self.waiting.know(&mut self.children, child, settings),
            Event::Places { .. } if self.draining => {}
            Event::Places { tasks } => self.places = tasks,
            Event::Given { first, tasks } => self.ready.give(first, tasks),
            Event::Joined { child } => self.children.push(ChildState::new(child)),
            Event::Left { child } => self.left(child),
            Event::Draining { child } => {
                if self.knows(child) {
                    self.waiting.forget(&mut self.children, child);
                }
            }
            Event::HandedBack { task, .. } => {
                if self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    self.ready.put_back(task);
                }
            }
            Event::Drain => self.drain(),
        }
        self.go_on(commands);
    }

    /// How many tasks wait here, neither being computed nor being sent.
    #[must_use]
    pub fn ready(&self) -> u64 {
        self.ready.len()
    }

    /// The task that is being computed.
    #[must_use]
    pub fn computing(&self) -> Option<TaskId> {
        self.computing
    }

    /// The tasks that are out, where they are remembered.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    #[inline]
    fn go_on(&mut self, commands: &mut Vec<Command>) {
        if self.computes
            && self.computing.is_none()
            && let Some(task) = self.ready.pop()
        {
            self.compute(task, commands);
        }
        if self.draining {
            commands.extend(std::iter::from_fn(|| self.ready.pop()).map(|task| Command::HandBack { task }));
        }
        if !self.children.is_empty() {
            match self.ports {
                Ports::Single => self.serve_single(commands),
                Ports::Multi => self.serve_multi(commands),
            }
        }
        self.ask(commands);
    }

    #[inline]
    fn compute(&mut self, task: TaskId, commands: &mut Vec<Command>) {
        self.computing = Some(task);
        commands.push(Command::Compute { task });
    }

    /// Asks for what it has places for, where it or somebody below could compute it.
    #[inline]
    fn ask(&mut self, commands: &mut Vec<Command>) {
        if self.root || !(self.computes || self.children.iter().any(|child| child.served)) {
            return;
        }
        let held = self.asked + self.ready.len() + self.sending;
        if held < self.places {
            let tasks = self.places - held;
            self.asked += tasks;
            commands.push(Command::Ask { tasks });
        }
    }

    #[inline]
    fn computed(&mut self, task: TaskId, commands: &mut Vec<Command>) {
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

    fn returned(&mut self, task: TaskId, commands: &mut Vec<Command>) {
        let first = self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task));
        if first {
            commands.push(Command::Return { task });
        }
    }

    fn left(&mut self, child: Child) {
        if !self.knows(child) {
            return;
        }
        self.waiting.forget(&mut self.children, child);
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
            self.waiting.forget(&mut self.children, child as Child);
        }
    }

    fn knows(&self, child: Child) -> bool {
        (child as usize) < self.children.len()
    }

    #[inline]
    pub(crate) fn lend(&mut self, task: TaskId, child: Child) {
        if let Some(ledger) = &mut self.ledger {
            ledger.lend(task, child);
        }
    }
}
