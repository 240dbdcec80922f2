//! A process: an agent with its links and processor, and the event loop that drives it, as in `crosswind-live`.

use std::collections::VecDeque;

use crosswind_agent::Agent;
use crosswind_agent::action::{Action, End, Peer, Trying, Worked};
use crosswind_agent::limits::SPLIT;
use crosswind_agent::phases::{AGENT_FAILED, Phase};
use crosswind_agent::task_store::Finished;

use super::{RootEnd, What, World};
use crate::bytes::{self, Bytes};
use crate::schedule::{Deed, MS};

/// Maximum time between two rounds of an event loop, ns.
const NAP_NS: u64 = 200 * MS;
/// Time until a process that failed restarts, ns.
const RESTART_NS: u64 = 300 * MS;

/// A task waiting for the processor.
#[derive(Debug)]
struct Job {
    task: u64,
    input: Bytes,
}

/// The task on the processor.
#[derive(Debug)]
struct Doing {
    job: Job,
    number: u64,
    began_ns: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    pub life: u64,
    pub agent: Option<Agent<Bytes>>,
    /// Connections to children, by child number.
    pub children: Vec<Option<usize>>,
    pub parent: Option<usize>,
    pub token: u64,
    jobs: VecDeque<Job>,
    doing: Option<Doing>,
    /// At the root: whether each task has been taken from the user, by task number.
    taken: Vec<bool>,
    user_is_done: bool,
}

impl Process {
    pub fn connect(&mut self, child: u32, connection: usize) {
        let places = self.children.len().max(child as usize + 1);
        self.children.resize(places, None);
        self.children[child as usize] = Some(connection);
    }

    /// Drops the agent with its work and connections.
    fn forget(&mut self) {
        (self.agent, self.doing, self.parent) = (None, None, None);
        self.jobs.clear();
        self.children.clear();
        self.token += 1;
    }
}

impl World<'_> {
    pub(super) fn start(&mut self, node: usize) {
        if self.places[node].process.is_some() || self.ended.is_some() {
            return;
        }
        self.note(|| format!("n{node} starts"));
        self.places[node].lives += 1;
        let life = self.places[node].lives;
        let mut process = Process {
            life,
            agent: None,
            children: Vec::new(),
            parent: None,
            token: 0,
            jobs: VecDeque::new(),
            doing: None,
            taken: self.answered.iter().zip(&self.withdrawn).map(|((times, _), gone)| *times > 0 || *gone).collect(),
            user_is_done: false,
        };
        if self.schedule.nodes[node].parent.is_some() {
            self.places[node].process = Some(process);
            let at = self.now;
            self.at(at, What::Dial { node, life });
            return;
        }
        let local = self.local(node);
        match Agent::new(&format!("n{node}"), None, self.run.clone(), false, local) {
            Ok(agent) => process.agent = Some(agent),
            Err(error) => self.violations.push(format!("the root cannot start: {error}")),
        }
        self.places[node].process = Some(process);
        self.turn(node);
    }

    /// Runs one round of the event loop.
    pub(super) fn turn(&mut self, node: usize) {
        if self.places[node].stopped_until > self.now {
            return;
        }
        let local = self.local(node);
        let Some(agent) = self.agent(node) else { return };
        let mut due = agent.pass_time(local);
        match self.over_time(node) {
            Some(at) if at <= local => return self.end_over_time(node),
            at => due = due.into_iter().chain(at).min(),
        }
        due = due.into_iter().chain(self.supply(node)).min();
        let Some(agent) = self.agent(node) else { return };
        agent.progress(local);
        if agent.is_opening() {
            self.supply(node);
            let Some(agent) = self.agent(node) else { return };
            agent.open(local);
        }
        self.flush(node);
        let Some(agent) = self.agent(node) else { return };
        agent.send_heartbeat(local);
        self.flush(node);
        self.deliver(node);
        let Some(agent) = self.agent(node) else { return };
        if let Some(end) = agent.ended().cloned() {
            return self.is_over(node, end);
        }
        // Limit the sleep, so that the loop notices a clock that jumps or stands still.
        let sleep_ns = due.map_or(NAP_NS, |due| due.saturating_sub(local)).clamp(1, NAP_NS);
        if self.random.chance(150) {
            self.compare_books(node);
        }
        let at = self.now + sleep_ns;
        if let Some(process) = &mut self.places[node].process {
            process.token += 1;
            let (life, token) = (process.life, process.token);
            self.at(at, What::Wake { node, life, token });
        }
    }

    /// Executes an agent's queued actions.
    fn flush(&mut self, node: usize) {
        let Some(agent) = self.agent(node) else { return };
        agent.ask_parent();
        let mut actions = Vec::new();
        loop {
            let Some(agent) = self.agent(node) else { return };
            agent.take_actions(&mut actions);
            if actions.is_empty() {
                return;
            }
            for action in actions.drain(..) {
                self.act(node, action);
            }
            if let Some(agent) = self.agent(node) {
                agent.ask_parent();
            }
        }
    }

    /// Returns the connection to a peer and the direction, down (1) or up (0).
    fn way(&self, node: usize, to: Peer) -> Option<(usize, usize)> {
        let process = self.places[node].process.as_ref()?;
        match to {
            Peer::Parent => process.parent.map(|connection| (connection, 0)),
            Peer::Child(child) => {
                process.children.get(child as usize).copied().flatten().map(|connection| (connection, 1))
            }
        }
    }

    fn act(&mut self, node: usize, action: Action<Bytes>) {
        let local = self.local(node);
        match action {
            Action::SendFrame { to, frame } => {
                self.note(|| format!("n{node} to {to:?}: {frame:?}"));
                if let Some((connection, down)) = self.way(node, to) {
                    let mut out = Vec::new();
                    frame.encode(0, &mut out);
                    self.transmit(connection, down, out);
                }
            }
            Action::Send { to, task, kind, payload, .. } => {
                self.note(|| format!("n{node} to {to:?}: task {task}, {kind:?}"));
                if let Some((connection, down)) = self.way(node, to) {
                    let small = self.sender(connection, down).send(task, kind, payload, local);
                    match small {
                        Some(bytes) => self.transmit(connection, down, bytes),
                        None => self.pump(connection, down),
                    }
                    self.collect(connection, down);
                }
            }
            Action::GoOn { child, .. } => {
                if let Some((connection, down)) = self.way(node, Peer::Child(child)) {
                    self.sender(connection, down).go_on(local);
                    self.pump(connection, down);
                    self.collect(connection, down);
                }
            }
            Action::Hold { child, .. } => {
                if let Some((connection, down)) = self.way(node, Peer::Child(child)) {
                    self.sender(connection, down).hold();
                }
            }
            Action::Close { child, bye } => {
                self.has_closed = true;
                if let Some((connection, down)) = self.way(node, Peer::Child(child)) {
                    if bye {
                        let mut out = Vec::new();
                        crosswind_agent::frame::Frame::Bye.encode(0, &mut out);
                        self.transmit(connection, down, out);
                    }
                    self.close(connection, 0, true);
                }
                if let Some(place) =
                    self.places[node].process.as_mut().and_then(|process| process.children.get_mut(child as usize))
                {
                    *place = None;
                }
            }
            Action::Compute { task, input, .. } => {
                if let Some(process) = &mut self.places[node].process {
                    process.jobs.push_back(Job { task, input });
                }
                self.compute(node);
            }
            Action::Note(line) => self.note(|| format!("n{node}: {line}")),
            Action::Pace { .. } | Action::Free(_) | Action::NoteOnce(_) | Action::Begun => {}
        }
    }

    /// Starts the next task if the processor is idle.
    fn compute(&mut self, node: usize) {
        let local = self.local(node);
        let retries = self.schedule.retries;
        let number = self.next;
        let Some(process) = self.places[node].process.as_mut().filter(|process| process.doing.is_none()) else {
            return;
        };
        let (life, Some(job)) = (process.life, process.jobs.pop_front()) else { return };
        let task = job.task;
        process.doing = Some(Doing { job, number, began_ns: local });
        self.note(|| format!("n{node} computes task {task}"));
        // A node that was lost without knowing it may still have a task that was withdrawn elsewhere.
        if self.withdrawn[task as usize] && self.losses == 0 && !self.has_closed {
            self.violations.push(format!("n{node} computes task {task}, which is withdrawn"));
        }
        let is_batch = self.schedule.is_batch(task);
        if let Some(agent) = self.agent(node).filter(|_| is_batch) {
            agent.pass_partial(task, task.to_be_bytes().to_vec());
        }
        let Some(plan) = self.schedule.tasks.iter().find(|plan| plan.task == task) else { return };
        let tries = if let Deed::Fails(times) = plan.deed { u64::from(times.min(retries)) + 1 } else { 1 };
        if plan.deed != Deed::Hangs {
            let at = self.now + plan.takes_ns * tries;
            self.at(at, What::Worked { node, life, job: number });
        }
    }

    pub(super) fn worked(&mut self, node: usize, life: u64, job: u64) {
        let local = self.local(node);
        let retries = self.schedule.retries;
        let Some(process) = self.process(node, life) else { return };
        let Some(Doing { job, began_ns, .. }) = process.doing.take_if(|doing| doing.number == job) else { return };
        let Some(plan) = self.schedule.tasks.iter().find(|plan| plan.task == job.task) else { return };
        let (ok, tried) = match plan.deed {
            Deed::Kills => {
                self.note(|| format!("task {} kills n{node}", plan.task));
                return self.die(node, RESTART_NS, true);
            }
            Deed::Fails(times) => (times <= retries, times.min(retries) + 1),
            Deed::Works | Deed::Hangs => (true, 1),
        };
        let output = if ok { bytes::result(plan, &job.input) } else { Bytes::of(b"it failed".to_vec()) };
        if let Some(agent) = self.agent(node) {
            agent.worked(Worked { task: job.task, ok, output, began_ns, ended_ns: local, tried });
        }
        self.compute(node);
        self.turn(node);
    }

    /// When the current task exceeds its time limit, on the agent's own clock, ns. `None` if it does not.
    fn over_time(&self, node: usize) -> Option<u64> {
        let process = self.places[node].process.as_ref()?;
        let Doing { job, began_ns, .. } = process.doing.as_ref()?;
        // A root that computes enforces no time limits.
        process.parent?;
        process.agent.as_ref()?.over_time_at(Trying { task: job.task, tried: 1, began_ns: *began_ns })
    }

    fn end_over_time(&mut self, node: usize) {
        let Some(process) = &mut self.places[node].process else { return };
        let (Some(agent), Some(Doing { job, began_ns, .. })) = (&mut process.agent, &process.doing) else { return };
        let task = job.task;
        agent.end_over_time(Trying { task, tried: 1, began_ns: *began_ns });
        self.note(|| format!("n{node} ends, since task {task} is over its time"));
        self.over_time[task as usize] += 1;
        self.flush(node);
        self.die(node, RESTART_NS, true);
    }

    /// Ends an agent that cannot store what it received. It reports the reason first.
    pub(super) fn fail(&mut self, node: usize) {
        self.note(|| format!("n{node} ends: its disk is full"));
        if let Some(agent) = self.agent(node) {
            agent.record_event(AGENT_FAILED, None, format!("n{node} ended: no space left"));
            agent.forward_events();
        }
        self.flush(node);
        self.die(node, RESTART_NS, true);
    }

    /// Ends a process. It restarts after `again_ns` (0: never). `notified`: whether the other ends of its connections are
    /// notified.
    pub(super) fn die(&mut self, node: usize, again_ns: u64, notified: bool) {
        let Some(process) = self.places[node].process.take() else { return };
        self.losses += 1;
        if node == 0 {
            self.partial.fill(false); // the next root submits its tasks anew
        }
        for connection in process.children.into_iter().flatten() {
            self.close(connection, 0, notified);
        }
        if let Some(connection) = process.parent {
            self.close(connection, 1, notified);
        }
        self.places[node].stopped_until = 0;
        if again_ns > 0 {
            let at = self.now + again_ns;
            self.at(at, What::Start { node });
        }
    }

    /// Takes tasks from the user. Returns when to try again, on the root's own clock; `None` if no time is known.
    fn supply(&mut self, node: usize) -> Option<u64> {
        if self.schedule.nodes[node].parent.is_some() {
            return None;
        }
        let (now, local) = (self.now, self.local(node));
        let until = self.places[node].disk_slow_until;
        let Some(Process { agent: Some(agent), taken, user_is_done, .. }) = &mut self.places[node].process else {
            return None;
        };
        if until > now {
            return Some(local + (until - now));
        }
        for plan in &self.schedule.tasks {
            if taken[plan.task as usize] {
                continue;
            }
            if plan.at_ns > now {
                return Some(local + (plan.at_ns - now));
            }
            if !agent.wants_task() {
                return None;
            }
            taken[plan.task as usize] = true;
            if self.schedule.is_batch(plan.task) {
                agent.mark_batch(plan.task);
            }
            agent.submit(plan.task, bytes::input(plan), 1.0, local);
        }
        if !*user_is_done && agent.wants_task() {
            *user_is_done = true;
            agent.end_of_tasks(local);
        }
        None
    }

    /// Delivers results to the user, whose journal keeps them.
    fn deliver(&mut self, node: usize) {
        if self.schedule.nodes[node].parent.is_some() {
            return;
        }
        let Some(agent) = self.agent(node) else { return };
        let news = agent.take_news();
        for task in news.withdrawn {
            self.note(|| format!("task {task} is withdrawn"));
            self.withdrawn[task as usize] = true;
        }
        for (task, outcomes) in news.partial {
            let is_new = !std::mem::replace(&mut self.partial[task as usize], true);
            let is_right = self.schedule.is_batch(task) && outcomes == task.to_be_bytes();
            if !is_new || !is_right || self.answered[task as usize].0 > 0 {
                self.violations.push(format!("outcomes of task {task} came early that should not have"));
            }
        }
        let Some(agent) = self.agent(node) else { return };
        for Finished { task, ok, payload, .. } in agent.take_results() {
            self.note(|| format!("task {task} is answered, ok: {ok}"));
            let (times, answered_ok) = &mut self.answered[task as usize];
            (*times, *answered_ok) = (*times + 1, ok);
            if *times > 1 {
                self.violations.push(format!("task {task} is answered {times} times", times = *times));
            }
            let Some(plan) = self.schedule.tasks.iter().find(|plan| plan.task == task) else { continue };
            if ok && !self.payload_is_right(task, &payload) {
                self.violations.push(format!("task {task} has the result of another input"));
            }
            let fails = match plan.deed {
                Deed::Works => false,
                Deed::Fails(times) => times > self.schedule.retries,
                Deed::Hangs | Deed::Kills => true,
            };
            let is_split = self.schedule.is_batch(task) && payload.0.as_slice() == SPLIT.as_bytes();
            let is_excused = is_split || self.losses >= 5 || self.over_time[task as usize] > self.schedule.retries;
            if !ok && !fails && !is_excused {
                let why = String::from_utf8_lossy(&payload.0).into_owned();
                self.violations.push(format!("task {task} is given up without need: {why}"));
            }
        }
    }

    /// Withdraws a task that the root has taken from the user. One that it has not is withdrawn without it.
    pub(super) fn recall(&mut self, task: u64) {
        let local = self.local(0);
        self.note(|| format!("the user withdraws task {task}"));
        let answered = self.answered[task as usize].0 > 0;
        let Some(Process { agent: Some(agent), taken, .. }) = &mut self.places[0].process else { return };
        if taken[task as usize] {
            let known = agent.recall(task, local);
            if !known && !answered && !self.withdrawn[task as usize] {
                self.violations.push(format!("the root does not know task {task}"));
            }
        } else {
            taken[task as usize] = true;
            self.withdrawn[task as usize] = true;
        }
        self.turn(0);
    }

    /// Handles the end of an agent's run.
    fn is_over(&mut self, node: usize, end: End) {
        self.note(|| format!("n{node} is over: {end:?}"));
        let is_root = self.schedule.nodes[node].parent.is_none();
        if let Some(agent) = self.agent(node) {
            let ((_, bytes, results), tasks) = (agent.holds(), agent.wanted());
            let (holds, reported) = ((tasks, bytes, results), agent.phase() == Phase::Reported);
            if reported && holds != (0, 0, 0) && end == End::Bye {
                self.violations.push(format!("n{node} ends and holds {holds:?} (tasks, bytes, results)"));
            }
        }
        if end == End::Bye || is_root {
            if let Some(agent) = self.agent(node) {
                agent.send_goodbye();
            }
            self.flush(node);
        }
        match end {
            End::ParentLost(_) => {
                let at = self.now + self.random.between(0, 100) * MS;
                let Some(process) = &mut self.places[node].process else { return };
                let (life, parent) = (process.life, process.parent);
                let children: Vec<usize> = process.children.iter().copied().flatten().collect();
                process.forget();
                children.into_iter().for_each(|connection| self.close(connection, 0, true));
                parent.into_iter().for_each(|connection| self.close(connection, 1, true));
                self.losses += 1;
                self.at(at, What::Dial { node, life });
            }
            End::Bye | End::AllLost(_) => {
                if is_root {
                    self.ended = Some(if let End::AllLost(why) = end { RootEnd::AllLost(why) } else { RootEnd::Bye });
                }
                let again_ns = self.places[node].comes_again.take().unwrap_or(0);
                self.die(node, again_ns, true);
                self.losses -= 1;
            }
        }
    }
}
