//! A node whose tasks are served by a policy of the user's own.

use std::collections::VecDeque;
use std::sync::Arc;

use crosswind_schema::{Platform, Tree};

use super::super::decide::Decide;
use super::super::event::{Child, Command, Commands, Event, TaskId};
use super::super::ledger::Ledger;
use super::super::settings::Settings;
use super::policy::{Choice, OwnPolicy};
use super::state::{OwnChild, OwnState};

/// State machine of one node, with the events and commands of [`Node`](super::super::Node).
#[derive(Clone, Debug)]
pub struct OwnNode<P> {
    policy: P,
    state: OwnState,
    started: bool,
    /// Maximum number of tasks requested or waiting beyond the one that it computes.
    places: u64,
    /// Tasks requested and not yet received.
    requested: u64,
    returns: bool,
    ledger: Option<Ledger>,
    /// Platform index of the child that joins next.
    joins: Option<u32>,
    failure: Option<String>,
}

/// What the policy is asked about.
#[derive(Clone, Copy)]
enum About {
    Ask(Child),
    Arrival(TaskId),
    Done(TaskId),
    Other,
}

impl<P: OwnPolicy> OwnNode<P> {
    /// Creates the node `node` of a platform in its initial state; `policy` gets the state that it will see.
    pub fn new(
        platform: &Platform,
        tree: &Tree,
        node: u32,
        settings: &Settings,
        policy: impl FnOnce(&OwnState) -> P,
    ) -> Self {
        let state = OwnState::new(platform, tree, node, settings.ports);
        Self {
            policy: policy(&state),
            state,
            started: false,
            places: settings.places,
            requested: 0,
            returns: settings.returns,
            ledger: settings.recovers.then(Ledger::default),
            joins: None,
            failure: None,
        }
    }

    #[must_use]
    pub fn state(&self) -> &OwnState {
        &self.state
    }

    fn waiting_mut(&mut self) -> &mut VecDeque<TaskId> {
        Arc::make_mut(&mut self.state.waiting)
    }

    fn child(&mut self, child: Child) -> Option<&mut OwnChild> {
        self.state.children.get_mut(child as usize)
    }

    /// Takes in an event; returns what the policy is asked about, and the commands that need no decision.
    fn take_in(&mut self, event: Event, commands: &mut impl Commands) -> Option<About> {
        match event {
            Event::Started => self.started = true,
            Event::Given { first, tasks } => {
                self.waiting_mut().extend(first..first + tasks);
                return (tasks > 0).then_some(About::Arrival(first));
            }
            Event::Arrived { task } => {
                self.requested = self.requested.saturating_sub(1);
                self.waiting_mut().push_back(task);
                return Some(About::Arrival(task));
            }
            Event::Requested { child, tasks } => {
                let state = self.child(child).filter(|state| !state.gone)?;
                state.requested += tasks;
                if self.places == 0 {
                    self.places = tasks; // nothing below was known to compute
                }
                return Some(About::Ask(child));
            }
            Event::Sent { child, .. } => self.child(child)?.sending = false,
            Event::Computed { task } => {
                self.state.computing = None;
                if self.returns {
                    commands.push(Command::Return { task });
                }
                return Some(About::Done(task));
            }
            Event::Returned { child, task } => {
                self.settled(child);
                if !self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    return None; // it was done elsewhere
                }
                commands.push(Command::Return { task });
                return Some(About::Done(task));
            }
            Event::HandedBack { child, task } => {
                self.settled(child);
                if let Some(state) = self.child(child) {
                    state.requested = 0;
                }
                if self.ledger.as_mut().is_none_or(|ledger| ledger.settle(task)) {
                    self.waiting_mut().push_front(task);
                }
            }
            Event::Left { child } => {
                let state = self.child(child)?;
                (state.gone, state.sending, state.requested) = (true, false, 0);
                let lost = self.ledger.as_mut().map(|ledger| ledger.recall(child)).unwrap_or_default();
                for task in lost.into_iter().rev() {
                    self.waiting_mut().push_front(task);
                }
            }
            Event::Joined { .. } => {
                let node = self.joins.take()?;
                let known = self.state.children.iter().rfind(|child| child.node == node)?.anew();
                self.state.children.push(known);
                return None;
            }
            // The rest concerns paces, hints and draining, which a policy of the user's own does not have.
            Event::Held { .. }
            | Event::Known { .. }
            | Event::Places { .. }
            | Event::RemainingHint { .. }
            | Event::Draining { .. }
            | Event::Drain => return None,
        }
        Some(About::Other)
    }

    fn settled(&mut self, child: Child) {
        if let Some(state) = self.child(child) {
            state.out = state.out.saturating_sub(1);
        }
    }

    /// Asks the policy until it waits or nothing more can begin.
    fn decide(&mut self, about: About, commands: &mut impl Commands) {
        self.compute_first(commands);
        let (mut method, mut choice) = match about {
            About::Ask(child) => ("on_ask", self.policy.on_ask(&self.state, child)),
            About::Arrival(task) => ("on_arrival", self.policy.on_arrival(&self.state, task)),
            About::Done(task) => ("on_done", self.policy.on_done(&self.state, task)),
            About::Other if self.state.can_begin() => ("choose", self.policy.choose(&self.state)),
            About::Other => return,
        };
        loop {
            self.failure = self.policy.failure();
            if self.failure.is_some() || choice == Choice::Wait {
                return;
            }
            if let Err(why) = self.carry_out(choice, commands) {
                self.failure = Some(format!("{method} {why}"));
                return;
            }
            self.compute_first(commands);
            if !self.state.can_begin() {
                return;
            }
            (method, choice) = ("choose", self.policy.choose(&self.state));
        }
    }

    fn compute_first(&mut self, commands: &mut impl Commands) {
        if self.state.is_idle()
            && self.policy.own_first()
            && let Some(task) = self.waiting_mut().pop_front()
        {
            self.compute(task, commands);
        }
    }

    fn compute(&mut self, task: TaskId, commands: &mut impl Commands) {
        self.state.computing = Some(task);
        commands.push(Command::Compute { task });
    }

    fn carry_out(&mut self, choice: Choice, commands: &mut impl Commands) -> Result<(), String> {
        match choice {
            Choice::Wait => {}
            Choice::Compute(task) => {
                if self.state.compute_per_s <= 0.0 {
                    return Err("chose to compute here, but the node computes nothing".into());
                }
                if let Some(other) = self.state.computing {
                    return Err(format!("chose to compute here, but the processor computes task {other}"));
                }
                let task = self.take(task)?;
                self.compute(task, commands);
            }
            Choice::Send { child, task } => {
                let count = self.state.children.len();
                let Some(state) = self.state.children.get(child as usize) else {
                    return Err(format!("chose child {child}, but the node has {count} children"));
                };
                let name = &state.name;
                if state.gone {
                    return Err(format!("chose child {name:?}, which has left"));
                }
                if state.requested == 0 {
                    return Err(format!("chose child {name:?}, which has requested no task"));
                }
                if state.sending {
                    return Err(format!("chose child {name:?}, to which a task is under way"));
                }
                if !self.state.is_port_free() {
                    let other = self.state.children.iter().find(|child| child.sending);
                    let other = other.map_or("", |other| other.name.as_str());
                    return Err(format!("chose child {name:?}, but the single port sends to {other:?}"));
                }
                let task = self.take(task)?;
                let state = &mut self.state.children[child as usize];
                (state.requested, state.out, state.sending) = (state.requested - 1, state.out + 1, true);
                if let Some(ledger) = &mut self.ledger {
                    ledger.lend(task, child);
                }
                commands.push(Command::Send { child, task, limit_mb_per_s: None });
            }
        }
        Ok(())
    }

    /// Takes a task out of those that wait: the one named, or the one that has waited longest.
    fn take(&mut self, task: Option<TaskId>) -> Result<TaskId, String> {
        let waiting = self.waiting_mut();
        match task {
            None => waiting.pop_front().ok_or_else(|| "chose a task, but none waits here".into()),
            Some(task) => match waiting.iter().position(|&known| known == task) {
                Some(place) => waiting.remove(place).ok_or_else(String::new),
                None => Err(format!("chose task {task}, which does not wait here")),
            },
        }
    }

    /// Requests tasks for all free places, if this node or one below could compute them.
    fn ask(&mut self, commands: &mut impl Commands) {
        let sending = self.state.children.iter().filter(|child| child.sending).count() as u64;
        let held = self.requested + self.state.waiting.len() as u64 + sending;
        let can_place = self.state.compute_per_s > 0.0 || self.state.children.iter().any(|child| !child.gone);
        if held < self.places && self.started && !self.state.is_root && can_place {
            let tasks = self.places - held;
            self.requested += tasks;
            commands.push(Command::Ask { tasks });
        }
    }
}

impl<P: OwnPolicy> Decide for OwnNode<P> {
    const IS_OWN: bool = true;

    fn handle(&mut self, event: Event, commands: &mut impl Commands) {
        if self.failure.is_some() {
            return;
        }
        if let Some(about) = self.take_in(event, commands) {
            self.decide(about, commands);
        }
        self.ask(commands);
    }

    fn set_time(&mut self, now_s: f64) {
        self.state.now_s = now_s;
    }

    fn joins(&mut self, node: u32) {
        self.joins = Some(node);
    }

    fn lent_to(&self, child: Child) -> usize {
        self.ledger.as_ref().map_or(0, |ledger| ledger.lent_to(child))
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.clone()
    }

    fn waiting(&self) -> u64 {
        self.state.waiting.len() as u64
    }
}
