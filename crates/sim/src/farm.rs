//! A farm in virtual time: every node runs the policy's [`Node`], and this drives them.
//!
//! Events that follow at the same instant (a task that has left arrives, a child that starts to compute asks) are handled
//! in the order in which they came about. New rates are taken up when an instant is over.

use std::collections::VecDeque;

use crosswind_policy::farm::estimate::{Estimator, Revision};
use crosswind_policy::farm::{Child, Command, Event, FarmOptions, Node, Settings};
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange, Tasks, change};
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use crate::agenda::{Agenda, Next};
use crate::error::SimError;
use crate::outcome::{Happened, NodeOutcome, Outcome};
use crate::port::{NO_NODE, Port, SingleSend};
use crate::processor::{Processor, Refreshed};
use crate::results::Uplink;
use crate::shared::Shared;
use crate::time::{NEVER, Nanos, nanos, seconds};
use crate::trace::Trace;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Farm<'a> {
    /// On what.
    pub platform: &'a Platform,
    /// The tasks, all at the root at the start.
    pub tasks: &'a Tasks,
    /// The order of service and the other options of the policy.
    pub wishes: FarmOptions<'a>,
    /// Bytes after which a send may be held, KiB.
    pub chunk_kib: u64,
    /// Result of each task, MB, which goes back to the root.
    pub result_size_mb: f64,
}

/// What else may happen, and what to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Nodes that leave, join or have other rates, in the order of time.
    pub changes: &'a [PlacedChange],
    /// Whether to keep a trace.
    pub trace: bool,
}

/// Events between two calls of the caller's callback.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 16;

/// Runs a farm to its end.
///
/// `watch` is called now and then with the tasks done; the run stops when it says `false`.
///
/// # Errors
/// What cannot be run, or was interrupted: see [`SimError`].
///
/// # Examples
/// ```
/// use crosswind_policy::farm::{FarmOptions, MeanTask};
/// use crosswind_schema::Platform;
/// use crosswind_schema::experiment::draw::{Column, Tasks};
/// use crosswind_schema::experiment::Policy;
/// use crosswind_sim::{Farm, Options, simulate};
///
/// let text = "schema_version = 1\nname = \"one\"\n[[node]]\nname = \"root\"\ncompute_per_s = 4.0\n";
/// let platform = Platform::from_toml(text.as_bytes(), "one.toml").expect("a right description");
/// let tasks = Tasks { count: 8, size_mb: Column::Same(1.0), work: Column::Same(3.0) };
/// let wishes = FarmOptions::of(&Policy::default(), MeanTask { size_mb: 1.0, work: 3.0 });
/// let farm = Farm { platform: &platform, tasks: &tasks, wishes, chunk_kib: 512, result_size_mb: 0.0 };
/// let outcome = simulate(&farm, Options::default(), &mut |_| true)?;
/// assert_eq!((outcome.makespan_s, outcome.nodes[0].tasks), (6.0, 8));
/// # Ok::<(), crosswind_sim::SimError>(())
/// ```
pub fn simulate(
    farm: &Farm<'_>,
    options: Options<'_>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, SimError> {
    Run::new(farm, options)?.run(watch)
}

/// A node's link to its parent.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub parent: u32,
    /// Its number at the parent.
    pub child: Child,
    /// MB/ns while the node sends nothing.
    pub receive_limit: f64,
    /// MB/s of it lost per MB/s sent.
    pub drop: f64,
    /// Fraction that the parent loses per MB/ns.
    pub ir_send: f64,
    pub latency: Nanos,
    pub received_mb: f64,
    /// The node's own port; [`NO_NODE`] at a leaf.
    pub port: u32,
    /// It has left, and not joined again.
    pub gone: bool,
}

/// What each node estimates, and what it has just learnt; empty without adaptation.
pub(crate) struct Adaptation {
    pub estimators: Vec<Estimator>,
    pub revisions: Vec<Revision>,
}

/// Links, ports and what comes back, and how bytes are cut.
pub(crate) struct Network {
    pub links: Vec<Link>,
    pub ports: Vec<Port>,
    pub uplinks: Vec<Uplink>,
    /// MB of a chunk.
    pub chunk: f64,
    /// Nodes that send more or less than before, and receive the less or more for it.
    pub resized: Vec<u32>,
}

/// What is kept for the outcome.
pub(crate) struct Recorded {
    pub trace: Option<Trace>,
    pub events: Vec<Happened>,
}

pub(crate) struct Run<'a> {
    pub farm: &'a Farm<'a>,
    pub tree: Tree,
    pub settings: Option<Vec<Settings>>,
    pub changes: &'a [PlacedChange],
    pub adaptation: Adaptation,
    pub now: Nanos,
    pub agenda: Agenda,
    pub nodes: Vec<Node>,
    pub processors: Vec<Processor>,
    pub network: Network,
    dirty: Vec<u32>,
    pub inbox: VecDeque<(u32, Event)>,
    commands: Vec<Command>,
    done: u64,
    /// When a quarter and three quarters of the tasks were done.
    quarters: [Nanos; 2],
    pub recorded: Recorded,
}

impl<'a> Run<'a> {
    fn new(farm: &'a Farm<'a>, options: Options<'a>) -> Result<Self, SimError> {
        let platform = farm.platform;
        let count = platform.nodes.len();
        let tree = platform.tree().map_err(Box::new)?;
        let planned = farm.wishes.planned_tasks_per_s;
        if farm.wishes.order == Order::Planned && planned.is_none_or(|rates| rates.len() != count) {
            return Err(SimError::NoPlan { nodes: count });
        }
        change::possible(options.changes, &tree).map_err(|(at, field, why)| SimError::Change {
            at,
            node: options.changes[at].node,
            field,
            why,
        })?;
        let mut wishes = farm.wishes;
        // Results show which node has which task; empty results cost nothing.
        wishes.returns |= farm.result_size_mb > 0.0 || wishes.levels();
        let elastic = options.changes.iter().any(|change| change.kind == ChangeKind::Leaves);
        if elastic {
            wishes = wishes.with_recovery();
        }
        let settings = Settings::of(platform, &tree, &wishes);
        let kept = elastic.then(|| settings.clone());
        let nodes: Vec<Node> = settings.into_iter().map(Node::new).collect();
        let mut ports = Vec::new();
        let mut links: Vec<Link> = Vec::with_capacity(count);
        for (n, node) in platform.nodes.iter().enumerate() {
            let mut port = NO_NODE;
            let children = tree.children(n as u32);
            if !children.is_empty() {
                port = ports.len() as u32;
                let limit = node.send_limit_mb_per_s.map_or(f64::INFINITY, |limit| limit.get() * 1e-9);
                let shared = (wishes.ports == Ports::Multi).then(|| Box::new(Shared::new(limit)));
                let children = children.to_vec();
                ports.push(Port { node: n as u32, children, single: SingleSend::default(), shared });
            }
            links.push(Link {
                parent: tree.parent[n],
                child: 0,
                receive_limit: node.receive_limit_mb_per_s.map_or(0.0, Quantity::get) * 1e-9,
                drop: node.receive_limit_drop.get(),
                ir_send: node.ir_send_s_per_mb.get() * 1e9,
                latency: nanos(node.latency_s.get()),
                received_mb: 0.0,
                port,
                gone: false,
            });
        }
        for port in &mut ports {
            for (number, &child) in port.children.iter().enumerate() {
                let link = &mut links[child as usize];
                link.child = number as Child;
                if let Some(shared) = &mut port.shared {
                    shared.add(link.receive_limit, link.ir_send);
                }
            }
        }
        let processor = |n: usize| {
            let node = &platform.nodes[n];
            Processor::new(node.compute_per_s.get(), node.ir_receive_s_per_mb.get())
        };
        let returns = wishes.returns;
        Ok(Self {
            farm,
            settings: kept,
            changes: options.changes,
            adaptation: Adaptation {
                estimators: if wishes.adapt { Estimator::of(platform, &tree, &wishes) } else { Vec::new() },
                revisions: Vec::new(),
            },
            now: 0,
            agenda: Agenda::new(count + ports.len() + if returns { count } else { 0 } + 1),
            processors: (0..count).map(processor).collect(),
            tree,
            nodes,
            network: Network {
                uplinks: if returns { (0..count).map(|_| Uplink::default()).collect() } else { Vec::new() },
                links,
                ports,
                chunk: farm.chunk_kib as f64 * 1024.0 / 1e6,
                resized: Vec::new(),
            },
            dirty: Vec::new(),
            inbox: VecDeque::new(),
            commands: Vec::new(),
            done: 0,
            quarters: [0; 2],
            recorded: Recorded { trace: options.trace.then(Trace::default), events: Vec::new() },
        })
    }

    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome, SimError> {
        let (count, ports, tasks) = (self.nodes.len() as u32, self.network.ports.len() as u32, self.farm.tasks.count);
        for n in 0..count {
            self.inbox.push_back((n, Event::Started));
        }
        self.empty_inbox();
        self.inbox.push_back((self.tree.root, Event::Given { first: 0, tasks }));
        self.inbox.push_back((self.tree.root, Event::RemainingHint { tasks: 0 }));
        self.empty_inbox();
        self.schedule_change(0);
        let mut steps = 0;
        while self.done < tasks {
            self.take_up_rates();
            let Some((time, next)) = self.agenda.pop() else {
                return Err(SimError::Stuck { done: self.done, tasks, time_s: seconds(self.now) });
            };
            if time >= NEVER {
                return Err(SimError::Endless);
            }
            self.now = time;
            match next {
                Next::Slot(slot) if slot < count => self.end_compute(slot),
                Next::Slot(slot) if slot < count + ports => self.end_send(slot - count),
                Next::Slot(slot) if slot < count + ports + self.network.uplinks.len() as u32 => {
                    self.end_result(slot - count - ports);
                }
                Next::Slot(_) => self.next_change(),
                Next::Message { node, event } => self.deliver(node, event),
            }
            self.empty_inbox();
            steps += 1;
            if steps % STEPS_BETWEEN_LOOKS == 0 && !watch(self.done) {
                return Err(SimError::Interrupted);
            }
        }
        Ok(self.outcome(steps))
    }

    #[inline]
    fn empty_inbox(&mut self) {
        while let Some((node, event)) = self.inbox.pop_front() {
            self.tell(node, event);
        }
    }

    /// Tells a node what happened, and does what it says.
    #[inline]
    pub fn tell(&mut self, node: u32, event: Event) {
        let mut commands = std::mem::take(&mut self.commands);
        self.nodes[node as usize].handle(event, &mut commands);
        for &command in &commands {
            match command {
                Command::Compute { task } => {
                    self.touch(node);
                    self.estimate(node, |estimator, now_s, _| estimator.computes(now_s));
                    let work = self.farm.tasks.work.get(task);
                    self.processors[node as usize].begin(self.now, task, work);
                }
                Command::Send { child, task, limit_mb_per_s } => self.begin_send(node, child, task, limit_mb_per_s),
                Command::Ask { tasks } => {
                    let link = &self.network.links[node as usize];
                    self.message(link.latency, link.parent, Event::Asked { child: link.child, tasks });
                }
                Command::HintRemaining { child, tasks } => {
                    let port = &self.network.ports[self.network.links[node as usize].port as usize];
                    let to = port.children[child as usize];
                    self.message(self.network.links[to as usize].latency, to, Event::RemainingHint { tasks });
                }
                Command::Hold { child } => self.hold(node, child),
                Command::Limit { child, limit_mb_per_s } => self.limit(node, child, limit_mb_per_s),
                Command::Return { task } => self.begin_result(node, task),
                Command::HandBack { task } => {
                    let link = &self.network.links[node as usize];
                    self.message(link.latency, link.parent, Event::HandedBack { child: link.child, task });
                }
            }
        }
        commands.clear();
        self.commands = commands;
    }

    /// Something that a node will hear of.
    #[inline]
    pub fn message(&mut self, latency: Nanos, node: u32, event: Event) {
        if latency == 0 {
            self.inbox.push_back((node, event));
        } else {
            self.agenda.post(self.now.saturating_add(latency), node, event);
        }
    }

    /// Settles a processor's work before a rate of it changes, and remembers that it did.
    #[inline]
    pub fn touch(&mut self, node: u32) {
        let processor = &mut self.processors[node as usize];
        let (links, ports, now) = (&self.network.links, &self.network.ports, self.now);
        processor.settle(now, || progress(links, ports, node, now));
        if !processor.dirty {
            processor.dirty = true;
            self.dirty.push(node);
        }
    }

    #[inline]
    fn take_up_rates(&mut self) {
        while let Some(node) = self.network.resized.pop() {
            self.receiving_changed(node);
        }
        while let Some(node) = self.dirty.pop() {
            match self.processors[node as usize].refresh(self.now) {
                Refreshed::Same => {}
                Refreshed::Ends(time) => self.agenda.at(time, node),
                Refreshed::StandsStill => self.agenda.cancel(node),
            }
        }
    }

    #[inline]
    fn end_compute(&mut self, node: u32) {
        self.touch(node);
        let Some((task, began)) = self.processors[node as usize].end(self.now) else { return };
        if let Some(trace) = &mut self.recorded.trace {
            trace.compute(node, task, (began, self.now), self.farm.tasks.work.get(task));
        }
        if self.network.uplinks.is_empty() {
            self.count_done();
        }
        if !self.adaptation.estimators.is_empty() {
            let work = self.farm.tasks.work.get(task);
            self.estimate(node, |estimator, now_s, revisions| estimator.computed(work, now_s, revisions));
        }
        self.tell(node, Event::Computed { task });
    }

    /// A task is done.
    #[inline]
    pub fn count_done(&mut self) {
        self.done += 1;
        let count = self.farm.tasks.count;
        if self.done == count / 4 {
            self.quarters[0] = self.now;
        }
        if self.done == count - count / 4 {
            self.quarters[1] = self.now;
        }
    }

    fn outcome(mut self, steps: u64) -> Outcome {
        let tasks = self.farm.tasks.count;
        let makespan_s = seconds(self.now);
        let [from, to] = self.quarters;
        let in_between = (tasks - 2 * (tasks / 4)) as f64;
        let throughput_tasks_per_s = tasks as f64 / makespan_s;
        let seen = self.seen();
        let nodes = self.processors.iter_mut().zip(&self.network.links).map(|(processor, link)| {
            let tasks = processor.computed;
            processor.drop_task(self.now);
            NodeOutcome { tasks, busy_s: seconds(processor.busy), received_mb: link.received_mb }
        });
        Outcome {
            tasks,
            makespan_s,
            throughput_tasks_per_s,
            steady_tasks_per_s: if to > from { in_between / seconds(to - from) } else { throughput_tasks_per_s },
            nodes: nodes.collect(),
            seen,
            events: self.recorded.events,
            steps,
            trace: self.recorded.trace,
        }
    }
}

/// MB that each child of the port above a node has received so far.
#[inline]
fn progress(links: &[Link], ports: &[Port], node: u32, now: Nanos) -> f64 {
    let above = links[links[node as usize].parent as usize].port;
    ports[above as usize].shared.as_ref().map_or(0.0, |shared| shared.progress_at(now))
}
