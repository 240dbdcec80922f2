//! State machine of one node of a farm whose tasks have classes.

use std::collections::VecDeque;
use std::sync::Arc;

use crosswind_schema::plan::Ports;

use super::super::decide::Decide;
use super::super::event::{Child, Command, Commands, Event, TaskId};
use super::super::ledger::Ledger;
use super::super::order::Rule;
use super::super::settings::Settings;
use super::taste::Taste;

/// A child, and what it requested.
#[derive(Clone, Debug)]
struct ClassedChild {
    /// Index of its node in the platform.
    node: u32,
    /// Its key in the order of service; infinite: it is served last.
    key: f64,
    taste: Arc<Taste>,
    /// Tasks that it requested and that no send has begun for.
    requested: u64,
    /// Its turn among children that are served as they come.
    turn: u64,
    /// Tasks of each class that were sent to it and whose results have not arrived.
    out: Vec<u64>,
    sending: bool,
    gone: bool,
}

impl ClassedChild {
    fn takes(&self) -> bool {
        self.requested > 0 && !self.sending && !self.gone
    }
}

/// Decides what one node does next, with the events and commands of [`Node`](super::super::Node).
///
/// A node that is idle takes a task of the class in which it has the largest share of the platform's compute rate, and
/// of the others only when no such task waits. At the root it leaves the others to those that prefer them, where these
/// would be done sooner. A subtree gets the classes in proportion to the rates of the nodes in it that prefer them.
#[derive(Clone, Debug)]
pub struct ClassedNode {
    root: bool,
    started: bool,
    returns: bool,
    ports: Ports,
    /// Whether children are served in turn rather than by their keys.
    in_turn: bool,
    /// Whether it sends nothing.
    alone: bool,
    /// Maximum number of tasks requested or waiting beyond the one that it computes.
    places: u64,
    requested: u64,
    last_turn: u64,
    computing: Option<TaskId>,
    /// Class of each task.
    class_of: Arc<[u16]>,
    own: Arc<Taste>,
    /// Waiting tasks of each class.
    waiting: Vec<VecDeque<TaskId>>,
    children: Vec<ClassedChild>,
    ledger: Option<Ledger>,
    /// Platform index of the child that joins next.
    joins: Option<u32>,
}

impl ClassedNode {
    /// Creates a node in its initial state. `own` is its own taste; `children` has for each child the index of its node
    /// and the taste of its subtree. With `alone` it computes everything itself.
    #[must_use]
    pub fn new(
        settings: &Settings,
        class_of: Arc<[u16]>,
        own: Arc<Taste>,
        children: impl Iterator<Item = (u32, Arc<Taste>)>,
        alone: bool,
    ) -> Self {
        let classes = own.advantage.len();
        let child = |((node, taste), known): ((u32, Arc<Taste>), &super::super::ChildSettings)| ClassedChild {
            node,
            key: known.key.unwrap_or(f64::INFINITY),
            taste,
            requested: 0,
            turn: 0,
            out: vec![0; classes],
            sending: false,
            gone: false,
        };
        Self {
            root: settings.root,
            started: false,
            returns: settings.returns,
            ports: settings.ports,
            in_turn: settings.rule == Rule::Arrival,
            alone,
            places: settings.places,
            requested: 0,
            last_turn: 0,
            computing: None,
            class_of,
            own,
            waiting: vec![VecDeque::new(); classes],
            children: children.zip(&settings.children).map(child).collect(),
            ledger: settings.recovers.then(Ledger::default),
            joins: None,
        }
    }

    fn class(&self, task: TaskId) -> usize {
        usize::from(self.class_of[task as usize])
    }

    fn put_back(&mut self, task: TaskId) {
        let class = self.class(task);
        self.waiting[class].push_front(task);
    }

    fn push(&mut self, task: TaskId) {
        let class = self.class(task);
        self.waiting[class].push_back(task);
    }

    fn child(&mut self, child: Child) -> Option<&mut ClassedChild> {
        self.children.get_mut(child as usize)
    }

    fn settled(&mut self, child: Child, task: TaskId) {
        let class = self.class(task);
        if let Some(state) = self.child(child) {
            state.out[class] = state.out[class].saturating_sub(1);
        }
    }

    /// Takes in an event; returns whether anything may begin because of it.
    fn take_in(&mut self, event: Event, commands: &mut impl Commands) -> bool {
        match event {
            Event::Started => self.started = true,
            Event::Given { first, tasks } => (first..first + tasks).for_each(|task| self.push(task)),
            Event::Arrived { task } => {
                self.requested = self.requested.saturating_sub(1);
                self.push(task);
            }
            Event::Requested { child, tasks } => {
                self.last_turn += 1;
                let turn = self.last_turn;
                let Some(state) = self.child(child).filter(|state| !state.gone) else { return false };
                if state.requested == 0 {
                    state.turn = turn;
                }
                state.requested += tasks;
                if self.places == 0 {
                    self.places = tasks; // nothing below was known to compute
                }
            }
            Event::Sent { child, .. } => {
                if let Some(state) = self.child(child) {
                    state.sending = false;
                }
            }
            Event::Computed { task } => {
                self.computing = None;
                if self.returns {
                    commands.push(Command::Return { task });
                }
            }
            Event::Returned { child, task } => {
                self.settled(child, task);
                if !self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    return false; // it was done elsewhere
                }
                commands.push(Command::Return { task });
            }
            Event::HandedBack { child, task } => {
                self.settled(child, task);
                if self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    self.put_back(task);
                }
            }
            Event::Left { child } => {
                let Some(state) = self.child(child) else { return false };
                (state.gone, state.sending, state.requested) = (true, false, 0);
                let lost = self.ledger.as_mut().map(|ledger| ledger.recall(child)).unwrap_or_default();
                lost.into_iter().rev().for_each(|task| self.put_back(task));
            }
            Event::Joined { .. } => {
                let known = self.joins.take().and_then(|node| self.children.iter().rfind(|child| child.node == node));
                if let Some(known) = known.cloned() {
                    let out = vec![0; known.out.len()];
                    self.children.push(ClassedChild { requested: 0, sending: false, gone: false, out, ..known });
                }
                return false;
            }
            // The rest concerns paces, hints and draining, which it does not have.
            Event::Held { .. }
            | Event::Known { .. }
            | Event::Places { .. }
            | Event::RemainingHint { .. }
            | Event::Draining { .. }
            | Event::Drain => return false,
        }
        true
    }

    /// Work units/s of those that prefer a class and are here.
    fn preferring(&self, class: usize) -> f64 {
        let here = self.children.iter().filter(|child| !child.gone);
        self.own.prefers[class] + here.map(|child| child.taste.prefers[class]).sum::<f64>()
    }

    /// Whether a node or subtree that prefers other classes is to take a task of this one: at the root, only if those
    /// that prefer it would need longer for all that waits.
    fn helps(&self, class: usize, taste: &Taste) -> bool {
        if !self.root {
            return true;
        }
        let preferring = self.preferring(class);
        preferring <= 0.0 || self.waiting[class].len() as f64 * taste.rate[class] > preferring
    }

    /// Returns the class of which a node or subtree is to get a task, given how many of each it has.
    fn class_for(&self, taste: &Taste, out: Option<&[u64]>) -> Option<usize> {
        let waiting = || (0..self.waiting.len()).filter(|&class| !self.waiting[class].is_empty());
        let has = |class: usize| out.map_or(0, |out| out[class]) as f64;
        let preferred = waiting().filter(|&class| taste.prefers[class] > 0.0);
        let share = |class: usize| (has(class) + 1.0) / taste.prefers[class];
        if let Some(class) = preferred.min_by(|&a, &b| share(a).total_cmp(&share(b))) {
            return Some(class);
        }
        let others = waiting().filter(|&class| taste.runs(class) && self.helps(class, taste));
        others.max_by(|&a, &b| taste.advantage[a].total_cmp(&taste.advantage[b]))
    }

    fn begin(&mut self, commands: &mut impl Commands) {
        if self.computing.is_none()
            && let Some(class) = self.class_for(&self.own, None)
            && let Some(task) = self.waiting[class].pop_front()
        {
            self.computing = Some(task);
            commands.push(Command::Compute { task });
        }
        while !self.alone
            && (self.ports == Ports::Multi || !self.children.iter().any(|child| child.sending))
            && let Some((child, class)) = self.next_child()
            && let Some(task) = self.waiting[class].pop_front()
        {
            self.last_turn += 1;
            let turn = self.last_turn;
            let state = &mut self.children[child];
            (state.requested, state.sending, state.turn) = (state.requested - 1, true, turn);
            state.out[class] += 1;
            let child = child as Child;
            if let Some(ledger) = &mut self.ledger {
                ledger.lend(task, child);
            }
            commands.push(Command::Send { child, task, limit_mb_per_s: None });
        }
    }

    /// Returns the child that is served next, and the class of its task.
    fn next_child(&self) -> Option<(usize, usize)> {
        if self.waiting.iter().all(VecDeque::is_empty) {
            return None;
        }
        let open = self.children.iter().enumerate().filter(|(_, child)| child.takes());
        let mut open: Vec<(f64, usize)> =
            open.map(|(at, child)| (if self.in_turn { child.turn as f64 } else { child.key }, at)).collect();
        open.sort_by(|a, b| a.0.total_cmp(&b.0));
        let class = |child: &ClassedChild| self.class_for(&child.taste, Some(&child.out));
        open.into_iter().find_map(|(_, at)| class(&self.children[at]).map(|class| (at, class)))
    }

    /// Requests tasks for all free places, if this node or one below could compute them.
    fn ask(&mut self, commands: &mut impl Commands) {
        let sending = self.children.iter().filter(|child| child.sending).count() as u64;
        let held = self.requested + <Self as Decide>::waiting(self) + sending;
        let runs = |taste: &Taste| taste.advantage.iter().any(|&one| one > 0.0);
        let can_place = runs(&self.own) || self.children.iter().any(|child| !child.gone && runs(&child.taste));
        if held < self.places && self.started && !self.root && can_place {
            let tasks = self.places - held;
            self.requested += tasks;
            commands.push(Command::Ask { tasks });
        }
    }
}

impl Decide for ClassedNode {
    const IS_OWN: bool = true;

    fn handle(&mut self, event: Event, commands: &mut impl Commands) {
        if self.take_in(event, commands) {
            self.begin(commands);
        }
        self.ask(commands);
    }

    fn joins(&mut self, node: u32) {
        self.joins = Some(node);
    }

    fn lent_to(&self, child: Child) -> usize {
        self.ledger.as_ref().map_or(0, |ledger| ledger.lent_to(child))
    }

    fn waiting(&self) -> u64 {
        self.waiting.iter().map(VecDeque::len).sum::<usize>() as u64
    }
}
