//! A simulated farm in virtual time: processes, connections, a user with tasks, and the faults of a schedule.
//!
//! Two parts of real agents are not simulated. There are no greetings and tokens: a child is registered as soon as it
//! dials. Links are not paced: the policy's limits are ignored, and a transfer takes the time that the link gives it.

mod connections;
mod injection;
mod process;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crosswind_agent::Agent;
use crosswind_agent::settings::{Admission, RunSettings};

use crate::bytes::Bytes;
use crate::random::Random;
use crate::schedule::{SECOND, Schedule};
use connections::Connection;
use process::Process;

/// Time limit of a run after the last scheduled event, ns.
const PATIENCE_NS: u64 = 400 * SECOND;
/// Time limit for all agents to end after the root has ended, ns.
const LAST_NS: u64 = 60 * SECOND;

/// An event in the simulation.
#[derive(Debug)]
enum What {
    /// A process's event loop runs.
    Wake {
        node: usize,
        life: u64,
        token: u64,
    },
    /// Bytes arrive at the parent's end (`down` = 0) or at the child's end (1) of a connection.
    Arrive {
        connection: usize,
        down: usize,
        bytes: Vec<u8>,
    },
    /// The sender of one direction of a connection may send again.
    Free {
        connection: usize,
        down: usize,
    },
    /// One end of a connection is notified that it is closed.
    Broken {
        connection: usize,
        end: usize,
    },
    /// A process dials its parent.
    Dial {
        node: usize,
        life: u64,
    },
    /// A process receives its admission.
    Welcomed {
        connection: usize,
        node: usize,
        life: u64,
        admission: Box<Admission>,
    },
    Start {
        node: usize,
    },
    /// The work on a task ends.
    Worked {
        node: usize,
        life: u64,
        job: u64,
    },
    Trouble(usize),
    /// The user withdraws a task.
    Recall(u64),
}

#[derive(Debug)]
struct Clock {
    shift_ns: u64,
    /// Total time for which it stood still before `stands`, ns.
    stood_ns: u64,
    stands: Option<(u64, u64)>,
}

impl Clock {
    fn local(&self, now: u64) -> u64 {
        let standing = self.stands.map_or(0, |(from, until)| now.min(until).saturating_sub(from));
        now + self.shift_ns - self.stood_ns - standing
    }
}

/// A node of the tree, whether or not a process runs there.
#[derive(Debug)]
struct Place {
    process: Option<Process>,
    lives: u64,
    stopped_until: u64,
    disk_full_until: u64,
    disk_slow_until: u64,
    slow: (u64, u64),
    clock: Clock,
    /// Delay until it restarts after leaving on request, ns. 0: never. `None`: it was not asked to leave.
    comes_again: Option<u64>,
}

/// How the run ended at the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootEnd {
    Bye,
    AllLost(String),
}

/// A farm in virtual time, with the outcome so far.
pub struct World<'a> {
    schedule: &'a Schedule,
    run: RunSettings,
    now: u64,
    next: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    whats: BTreeMap<u64, What>,
    random: Random,
    places: Vec<Place>,
    connections: Vec<Connection>,
    /// For each task, how often it was answered, and whether the last answer is a result.
    answered: Vec<(u32, bool)>,
    /// Whether each task was withdrawn on the user's request.
    withdrawn: Vec<bool>,
    /// Whether outcomes of each batch came early.
    partial: Vec<bool>,
    /// Number of processes and connections lost so far. Each may cost a task an attempt.
    losses: u32,
    /// Whether a parent has closed a connection: its child may not know that it is lost.
    has_closed: bool,
    over_time: Vec<u32>,
    /// How the run ended at the root. `None` while it runs.
    ended: Option<RootEnd>,
    violations: Vec<String>,
    trace: Option<Vec<String>>,
}

/// The outcome of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Violated invariants; empty if all hold.
    pub violations: Vec<String>,
    pub end: Option<RootEnd>,
    /// Virtual time at the end, ns.
    pub ended_ns: u64,
    /// Log of frames and events; empty unless requested.
    pub trace: Vec<String>,
}

#[must_use]
pub fn run(schedule: &Schedule, trace: bool) -> Outcome {
    let mut world = World::new(schedule, trace);
    // A panic in an agent is a finding, and is shrunk like others.
    let going = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.go()));
    if let Err(panic) = going {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
        world.violations.push(format!("panic: {}", why.unwrap_or_default()));
    }
    let (violations, end) = (world.violations, world.ended);
    Outcome { violations, end, ended_ns: world.now, trace: world.trace.unwrap_or_default() }
}

impl<'a> World<'a> {
    fn new(schedule: &'a Schedule, trace: bool) -> Self {
        let places = schedule.nodes.iter().map(|node| Place {
            process: None,
            lives: 0,
            stopped_until: 0,
            disk_full_until: 0,
            disk_slow_until: 0,
            slow: (1, 0),
            clock: Clock { shift_ns: node.clock_ns, stood_ns: 0, stands: None },
            comes_again: None,
        });
        let mut world = Self {
            schedule,
            run: settings(schedule),
            now: 0,
            next: 0,
            queue: BinaryHeap::new(),
            whats: BTreeMap::new(),
            random: Random::new(schedule.seed, 2),
            places: places.collect(),
            connections: Vec::new(),
            answered: vec![(0, false); schedule.tasks.iter().map(|task| task.task as usize + 1).max().unwrap_or(0)],
            withdrawn: vec![false; schedule.tasks.iter().map(|task| task.task as usize + 1).max().unwrap_or(0)],
            partial: vec![false; schedule.tasks.iter().map(|task| task.task as usize + 1).max().unwrap_or(0)],
            losses: 0,
            has_closed: false,
            over_time: vec![0; schedule.tasks.iter().map(|task| task.task as usize + 1).max().unwrap_or(0)],
            ended: None,
            violations: Vec::new(),
            trace: trace.then(Vec::new),
        };
        for (node, plan) in schedule.nodes.iter().enumerate() {
            world.at(plan.comes_ns, What::Start { node });
        }
        for (number, fault) in schedule.faults.iter().enumerate() {
            world.at(fault.at_ns, What::Trouble(number));
        }
        for &(at_ns, task) in &schedule.recalls {
            world.at(at_ns, What::Recall(task));
        }
        world
    }

    fn go(&mut self) {
        let mut until = self.schedule.last_ns() + PATIENCE_NS;
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > until || !self.violations.is_empty() {
                break;
            }
            self.now = at;
            if let Some(what) = self.whats.remove(&number) {
                self.record_event(what);
            }
            if self.ended.is_some() {
                until = until.min(self.now + LAST_NS).max(self.now);
                if self.places.iter().all(|place| place.process.as_ref().is_none_or(|process| process.agent.is_none()))
                {
                    break;
                }
            }
        }
        self.check_the_end();
    }

    fn at(&mut self, at: u64, what: What) {
        self.queue.push(Reverse((at, self.next)));
        self.whats.insert(self.next, what);
        self.next += 1;
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12.6} {}", now as f64 * 1e-9, line()));
        }
    }

    fn local(&self, node: usize) -> u64 {
        self.places[node].clock.local(self.now)
    }

    /// Returns until when the process concerned by an event is stopped. `None` if it is not.
    fn stopped(&self, what: &What) -> Option<u64> {
        let node = match what {
            What::Wake { node, .. }
            | What::Dial { node, .. }
            | What::Welcomed { node, .. }
            | What::Worked { node, .. } => *node,
            What::Arrive { connection, down, .. } => self.connections[*connection].ends[*down].node,
            What::Broken { connection, end } => self.connections[*connection].ends[*end].node,
            What::Free { connection, down } => self.connections[*connection].ends[1 - *down].node,
            What::Recall(_) => 0,
            What::Start { .. } | What::Trouble(_) => return None,
        };
        Some(self.places[node].stopped_until).filter(|until| *until > self.now)
    }

    fn record_event(&mut self, what: What) {
        if let Some(until) = self.stopped(&what) {
            self.at(until, what);
            return;
        }
        match what {
            What::Wake { node, life, token } => {
                if self.process(node, life).is_some_and(|process| process.token == token) {
                    self.turn(node);
                }
            }
            What::Arrive { connection, down, bytes } => self.arrive(connection, down, &bytes),
            What::Free { connection, down } => self.is_free(connection, down),
            What::Broken { connection, end } => self.is_broken(connection, end),
            What::Dial { node, life } => {
                if self.process(node, life).is_some_and(|process| process.agent.is_none()) {
                    self.dial(node, life);
                }
            }
            What::Welcomed { connection, node, life, admission } => self.welcomed(connection, node, life, *admission),
            What::Start { node } => self.start(node),
            What::Worked { node, life, job } => self.worked(node, life, job),
            What::Trouble(number) => self.trouble(number),
            What::Recall(task) => self.recall(task),
        }
    }

    /// Returns the process at a node if it is still the one numbered `life`.
    fn process(&mut self, node: usize, life: u64) -> Option<&mut Process> {
        self.places[node].process.as_mut().filter(|process| process.life == life)
    }

    fn agent(&mut self, node: usize) -> Option<&mut Agent<Bytes>> {
        self.places[node].process.as_mut()?.agent.as_mut()
    }

    fn check_the_end(&mut self) {
        if !self.violations.is_empty() {
            return;
        }
        let mut wrong = Vec::new();
        match &self.ended {
            None => {
                let is_open = |task: u64| self.answered[task as usize].0 == 0 && !self.withdrawn[task as usize];
                let left = self.schedule.tasks.iter().filter(|task| is_open(task.task));
                let left: Vec<u64> = left.map(|task| task.task).collect();
                wrong.push(format!("the root waits for ever; tasks without an answer: {left:?}"));
                for (node, place) in self.places.iter().enumerate() {
                    let Some(process) = &place.process else { continue };
                    let Some(agent) = &process.agent else { continue };
                    let (tasks, _, results) = agent.holds();
                    let (phase, waiting) = (agent.phase(), agent.waiting());
                    wrong
                        .push(format!("  node {node}: {phase:?}, {tasks} tasks, {waiting} waiting, {results} results"));
                }
            }
            Some(RootEnd::Bye) => {
                for task in &self.schedule.tasks {
                    let (times, withdrawn) = (self.answered[task.task as usize].0, self.withdrawn[task.task as usize]);
                    if times + u32::from(withdrawn) != 1 {
                        wrong.push(format!("task {} was answered {times} times, withdrawn: {withdrawn}", task.task));
                    }
                }
            }
            // Unanswered tasks have failed, with this as the reason.
            Some(RootEnd::AllLost(why)) => {
                if self.schedule.is_gentle() {
                    wrong.push(format!("without any fault: {why}"));
                }
            }
        }
        if self.ended.is_some() {
            for (node, place) in self.places.iter().enumerate() {
                if let Some(agent) = place.process.as_ref().and_then(|process| process.agent.as_ref()) {
                    wrong.push(format!("node {node} waits for ever: {:?}", agent.phase()));
                }
            }
        }
        self.violations = wrong;
    }
}

/// The run's settings for a schedule.
fn settings(schedule: &Schedule) -> RunSettings {
    let known = schedule.nodes.iter().enumerate().filter(|(_, node)| !node.guest);
    let nodes: Vec<_> = known.map(|(at, _)| about(schedule, at)).collect();
    let (heartbeat, silence, start) = schedule.beats_ms;
    let mut run = serde_json::json!({
        "platform": {"schema_version": 1, "name": "drawn", "node": nodes},
        "policy": serde_json::from_str::<serde_json::Value>(&schedule.policy).unwrap_or_default(),
        "mean_size_mb": 0.002, "mean_work": 1.0, "work": {"kind": "callable"},
        "patience": {
            "heartbeat_s": heartbeat as f64 * 1e-3, "silence_s": silence as f64 * 1e-3, "start_s": start as f64 * 1e-3,
        },
        "task_limits": {"retries": schedule.retries},
    });
    if schedule.timeout_ns > 0 {
        run["task_limits"]["timeout_s"] = serde_json::json!(schedule.timeout_ns as f64 * 1e-9);
    }
    if schedule.policy.contains("planned") {
        // The tasks of a node's subtree pass through the node.
        let mut planned: Vec<f64> = schedule.nodes.iter().map(|node| if node.computes { 10.0 } else { 0.0 }).collect();
        for (at, node) in schedule.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent.filter(|_| !node.guest) {
                planned[parent] += planned[at];
            }
        }
        let known = schedule.nodes.iter().zip(planned).filter(|(node, _)| !node.guest);
        run["planned_tasks_per_s"] = known.map(|(_, rate)| rate).collect();
    }
    #[expect(clippy::expect_used, reason = "drawn settings are right by construction; a test runs thousands of them")]
    serde_json::from_value(run).expect("settings")
}

/// A node as JSON, in the format of the platform's file.
fn about(schedule: &Schedule, node: usize) -> serde_json::Value {
    let plan = &schedule.nodes[node];
    let mut about = serde_json::json!({
        "name": format!("n{node}"), "compute_per_s": if plan.computes { 10.0 } else { 0.0 },
    });
    if let Some(parent) = plan.parent {
        about["parent"] = format!("n{parent}").into();
        about["receive_limit_mb_per_s"] = (plan.bytes_per_ms as f64 * 1e-3).into();
    }
    about
}
